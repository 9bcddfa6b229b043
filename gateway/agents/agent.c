/*
 * Reads AGENTS.md, SOUL.md and TOOLS.md. A fault in a file is an error that names file and line; no fault is skipped.
 */
#include "agents/agent.h"
#include "base/file.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4096u

static const char *const providers[] = {"local", "openai", "anthropic"}; /* by enum gw_provider */
static const char *const files[] = {"AGENTS.md", "SOUL.md", "TOOLS.md"};

const char *gw_provider_name(enum gw_provider provider) {
    return providers[provider];
}

enum fm_code gw_model_ref_parse(const char *text, size_t len, struct gw_model_ref *ref, struct fm_error *error) {
    const char *slash = memchr(text, '/', len);
    size_t provider_len = slash ? (size_t)(slash - text) : len;
    size_t name_len = slash ? len - provider_len - 1 : 0;
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        if (provider_len != strlen(providers[i]) || memcmp(text, providers[i], provider_len) != 0) {
            continue;
        }
        if (name_len == 0 || name_len > GW_MODEL_MAX) {
            return fm_fail(error, FM_INVALID_REQUEST,
                           "a model is PROVIDER/NAME, the name 1 to %u bytes long, such as %s/default", GW_MODEL_MAX,
                           providers[i]);
        }
        ref->provider = (enum gw_provider)i;
        memcpy(ref->name, slash + 1, name_len);
        ref->name[name_len] = '\0';
        return FM_OK;
    }
    return fm_fail(error, FM_INVALID_REQUEST,
                   "a model is PROVIDER/NAME, the provider one of local, openai and anthropic");
}

/* ---- front matter ---- */

struct line {
    const char *text;
    size_t len; /* without the line's end */
};

static bool next_line(const char **at, const char *end, struct line *line) {
    if (*at == end) {
        return false;
    }
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    line->text = *at;
    line->len = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : end;
    if (line->len && line->text[line->len - 1] == '\r') {
        line->len--;
    }
    return true;
}

static bool is_mark(const struct line *line) {
    return line->len == 3 && memcmp(line->text, "---", 3) == 0;
}

static void trim(struct line *part) {
    while (part->len && (*part->text == ' ' || *part->text == '\t')) {
        part->text++;
        part->len--;
    }
    while (part->len && (part->text[part->len - 1] == ' ' || part->text[part->len - 1] == '\t')) {
        part->len--;
    }
}

static bool is_word(const struct line *part, const char *word) {
    return part->len == strlen(word) && memcmp(part->text, word, part->len) == 0;
}

/* Reads one member of the front matter, "key: value". */
static enum fm_code take_member(const struct line *line, struct gw_agent *agent, struct fm_error *error) {
    const char *colon = memchr(line->text, ':', line->len);
    struct line key = {line->text, colon ? (size_t)(colon - line->text) : line->len};
    struct line value = {line->text + line->len, 0};
    if (colon) {
        value = (struct line){colon + 1, line->len - key.len - 1};
    }
    trim(&key);
    trim(&value);
    if (colon && is_word(&key, "model")) {
        return gw_model_ref_parse(value.text, value.len, &agent->model, error);
    }
    if (!colon || !is_word(&key, "name")) {
        return fm_fail(error, FM_INVALID_REQUEST,
                       "the front matter has lines \"model: PROVIDER/NAME\" and \"name: NAME\" only");
    }
    if (value.len == 0 || value.len > GW_AGENT_NAME_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "a name has 1 to %u bytes", GW_AGENT_NAME_MAX);
    }
    memcpy(agent->name, value.text, value.len);
    agent->name[value.len] = '\0';
    return FM_OK;
}

/* Moves `*at` past the front matter, if the text begins with one. */
static enum fm_code take_front_matter(const char **at, const char *end, struct gw_agent *agent,
                                      struct fm_error *error) {
    const char *text = *at;
    struct line line;
    struct fm_error wrong = {.code = FM_OK};
    if (!next_line(&text, end, &line) || !is_mark(&line)) {
        return FM_OK;
    }
    for (int number = 2; next_line(&text, end, &line); number++) {
        struct line whole = line;
        trim(&whole);
        if (is_mark(&line)) {
            *at = text;
            return FM_OK;
        }
        if (whole.len && *whole.text != '#' && take_member(&line, agent, &wrong) != FM_OK) {
            return fm_fail(error, FM_INVALID_REQUEST, "AGENTS.md, line %d: %s", number, wrong.detail);
        }
    }
    return fm_fail(error, FM_INVALID_REQUEST, "AGENTS.md: the front matter has no second line \"---\"");
}

/* ---- files ---- */

static void append_part(struct fm_buf *prompt, const char *text, const char *end) {
    while (text < end && (*text == '\n' || *text == '\r')) {
        text++;
    }
    while (end > text && strchr("\n\r \t", end[-1])) {
        end--;
    }
    if (text < end && prompt->len) {
        fm_buf_append_str(prompt, "\n\n");
    }
    fm_buf_append(prompt, text, (size_t)(end - text));
}

static enum fm_code take_file(const char *name, const struct fm_buf *file, struct gw_agent *agent,
                              struct fm_error *error) {
    const char *at = file->len ? file->data : "";
    const char *end = at + file->len;
    if (!fm_utf8_valid(at, file->len) || memchr(at, '\0', file->len)) {
        return fm_fail(error, FM_INVALID_REQUEST, "%s is not UTF-8 text", name);
    }
    at += fm_utf8_mark(at, file->len);
    enum fm_code code = name == files[0] ? take_front_matter(&at, end, agent, error) : FM_OK;
    if (code == FM_OK) {
        append_part(&agent->prompt, at, end);
        code = agent->prompt.failed ? fm_fail_no_memory(error) : FM_OK;
    }
    return code;
}

/* `*found`: whether the file exists. */
static enum fm_code read_file(const char *workspace, const char *name, struct gw_agent *agent, bool *found,
                              struct fm_error *error) {
    char path[PATH_BYTES];
    struct fm_file_info info;
    struct fm_buf file;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", workspace, name) >= sizeof path) {
        return fm_fail(error, FM_UNAVAILABLE, "the path of the workspace is longer than %u bytes", PATH_BYTES);
    }
    int failure = fm_file_examine(path, &info);
    if (failure == ENOENT) {
        return FM_OK;
    }
    *found = true;
    if (info.size > (int64_t)GW_AGENT_FILE_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "%s has %lld bytes; %u are the most", name, (long long)info.size,
                       GW_AGENT_FILE_MAX);
    }
    fm_buf_init(&file, GW_AGENT_FILE_MAX);
    enum fm_code code = fm_file_read(path, &file, error);
    code = code ? code : take_file(name, &file, agent, error);
    fm_buf_free(&file);
    return code;
}

enum fm_code gw_agent_read(const char *workspace, const char *id, struct gw_agent *agent, struct fm_error *error) {
    bool found = false;
    enum fm_code code = FM_OK;
    *agent = (struct gw_agent){.model = {.provider = GW_PROVIDER_LOCAL, .name = "default"}};
    snprintf(agent->name, sizeof agent->name, "%.*s", fm_utf8_shown(id, GW_AGENT_NAME_MAX), id);
    fm_buf_init(&agent->prompt, GW_AGENT_PROMPT_MAX);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && code == FM_OK; i++) {
        code = read_file(workspace, files[i], agent, &found, error);
    }
    if (code == FM_OK && !found) {
        code = fm_fail(error, FM_UNAVAILABLE,
                       "there is no AGENTS.md, SOUL.md or TOOLS.md in %s: set agents.workspacePath", workspace);
    }
    if (code != FM_OK) {
        gw_agent_free(agent);
    }
    return code;
}

void gw_agent_free(struct gw_agent *agent) {
    fm_buf_free(&agent->prompt);
}
