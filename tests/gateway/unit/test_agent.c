/* Agents: the files of a workspace become a prompt, or an error that names the file and the line. */
#include "agents/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* the last one */
#include <cmocka.h>

static const struct {
    const char *text;
    const char *name; /* NULL: refused */
    enum gw_provider provider;
} refs[] = {
    {"local/default", "default", GW_PROVIDER_LOCAL},
    {"openai/gpt-5.4-mini", "gpt-5.4-mini", GW_PROVIDER_OPENAI},
    {"anthropic/claude", "claude", GW_PROVIDER_ANTHROPIC},
    {"local/org/model:Q4", "org/model:Q4", GW_PROVIDER_LOCAL},
    {"", NULL, 0},
    {"local", NULL, 0},
    {"local/", NULL, 0},
    {"/x", NULL, 0},
    {"Local/x", NULL, 0},
    {"mistral/x", NULL, 0},
    {"locals/x", NULL, 0},
    {"loca/l", NULL, 0},
};

static void model_refs(void **state) {
    (void)state;
    struct gw_model_ref ref;
    struct fm_error error;
    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
        enum fm_code code = gw_model_ref_parse(refs[i].text, strlen(refs[i].text), &ref, &error);
        if (code != (refs[i].name ? FM_OK : FM_INVALID_REQUEST) ||
            (refs[i].name && (strcmp(ref.name, refs[i].name) != 0 || ref.provider != refs[i].provider))) {
            fail_msg("\"%s\": %s, \"%s\"", refs[i].text, fm_code_name(code), ref.name);
        }
        assert_true(refs[i].name || strstr(error.detail, "PROVIDER/NAME"));
    }
    char longest[6 + GW_MODEL_MAX + 1];
    memset(longest, 'm', sizeof longest);
    memcpy(longest, "local/", 6);
    assert_int_equal(gw_model_ref_parse(longest, sizeof longest - 1, &ref, &error), FM_OK);
    assert_int_equal(strlen(ref.name), GW_MODEL_MAX);
    assert_int_equal(gw_model_ref_parse(longest, sizeof longest, &ref, &error), FM_INVALID_REQUEST);
    assert_string_equal(gw_provider_name(GW_PROVIDER_ANTHROPIC), "anthropic");
}

static const struct {
    const char *files[3]; /* AGENTS.md, SOUL.md, TOOLS.md; NULL: the file does not exist */
    const char *prompt;   /* NULL: refused, with this error: */
    const char *detail;
    const char *name;
    const char *model;
    enum gw_provider provider;
} rows[] = {
    {{"one", "two", "three"}, "one\n\ntwo\n\nthree", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{"\n\none\n \n", NULL, "\r\nthree\r\n"}, "one\n\nthree", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{"", " ", "three"}, "three", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{NULL, "two", NULL}, "two", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{"---\nmodel: openai/gpt\nname: Jarvis J.\n---\n# One", NULL, NULL},
     "# One",
     NULL,
     "Jarvis J.",
     "gpt",
     GW_PROVIDER_OPENAI},
    {{"\xef\xbb\xbf---\r\n# a comment\r\n\r\n model :\tanthropic/c \r\n---\r\none", NULL, NULL},
     "one",
     NULL,
     "assistant",
     "c",
     GW_PROVIDER_ANTHROPIC},
    {{"---\n---", "two", NULL}, "two", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{"----\nmodel: x\n---\n", NULL, NULL}, "----\nmodel: x\n---", NULL, "assistant", "default", GW_PROVIDER_LOCAL},
    {{"one\n---\nmodel: x\n---\n", NULL, NULL},
     "one\n---\nmodel: x\n---",
     NULL,
     "assistant",
     "default",
     GW_PROVIDER_LOCAL},
    {{"one", "---\nx: y\n---\n", NULL},
     "one\n\n---\nx: y\n---",
     NULL,
     "assistant",
     "default",
     GW_PROVIDER_LOCAL}, /* only in AGENTS.md */
    {{NULL, NULL, NULL}, NULL, "agents.workspacePath", NULL, NULL, 0},
    {{"---\nmodel: openai/gpt\n", NULL, NULL}, NULL, "AGENTS.md: the front matter has no second line", NULL, NULL, 0},
    {{"---\nname: x\nmodel: gpt\n---\n", NULL, NULL},
     NULL,
     "AGENTS.md, line 3: a model is PROVIDER/NAME",
     NULL,
     NULL,
     0},
    {{"---\n\nmodle: local/x\n---\n", NULL, NULL},
     NULL,
     "AGENTS.md, line 3: the front matter has lines",
     NULL,
     NULL,
     0},
    {{"---\nname:\n---\n", NULL, NULL}, NULL, "AGENTS.md, line 2: a name has 1 to", NULL, NULL, 0},
    {{"---\nmodel\n---\n", NULL, NULL}, NULL, "AGENTS.md, line 2: the front matter", NULL, NULL, 0},
    {{"one", "t\xff", NULL}, NULL, "SOUL.md is not UTF-8 text", NULL, NULL, 0},
};

static char folder[] = "/tmp/fm-agent-XXXXXX";
static const char *const names[] = {"AGENTS.md", "SOUL.md", "TOOLS.md"};

static void path_of(char path[256], int file) {
    snprintf(path, 256, "%s/%s", folder, names[file]);
}

static void write_file(int file, const char *text, size_t len) {
    char path[256];
    path_of(path, file);
    unlink(path);
    rmdir(path);
    if (text) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(text, 1, len, out), len);
        assert_int_equal(fclose(out), 0);
    }
}

static void workspaces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gw_agent agent;
        struct fm_error error = {.code = FM_OK};
        for (int file = 0; file < 3; file++) {
            write_file(file, rows[i].files[file], rows[i].files[file] ? strlen(rows[i].files[file]) : 0);
        }
        enum fm_code code = gw_agent_read(folder, "assistant", &agent, &error);
        if (!rows[i].prompt) {
            if (code == FM_OK || !strstr(error.detail, rows[i].detail)) {
                fail_msg("row %zu: %s, %s", i, fm_code_name(code), error.detail);
            }
            continue;
        }
        bool right = code == FM_OK && agent.prompt.len == strlen(rows[i].prompt) &&
                     memcmp(agent.prompt.data, rows[i].prompt, agent.prompt.len) == 0 &&
                     strcmp(agent.name, rows[i].name) == 0 && strcmp(agent.model.name, rows[i].model) == 0 &&
                     agent.model.provider == rows[i].provider;
        if (!right) {
            fail_msg("row %zu: %s, %s, \"%.*s\"", i, fm_code_name(code), error.detail, (int)agent.prompt.len,
                     agent.prompt.data);
        }
        gw_agent_free(&agent);
    }
}

static void files_that_are_none(void **state) {
    (void)state;
    struct gw_agent agent;
    struct fm_error error;
    char path[256];
    char *text = malloc(GW_AGENT_FILE_MAX + 1);
    assert_non_null(text);
    memset(text, 'a', GW_AGENT_FILE_MAX + 1);
    for (int file = 0; file < 3; file++) {
        write_file(file, text, GW_AGENT_FILE_MAX);
    }
    assert_int_equal(gw_agent_read(folder, "a", &agent, &error), FM_OK);
    assert_int_equal(agent.prompt.len, 3 * GW_AGENT_FILE_MAX + 4);
    gw_agent_free(&agent);
    write_file(2, text, GW_AGENT_FILE_MAX + 1);
    assert_int_equal(gw_agent_read(folder, "a", &agent, &error), FM_INVALID_REQUEST);
    assert_non_null(strstr(error.detail, "TOOLS.md has 262145 bytes"));
    write_file(2, "a\0b", 3);
    assert_int_equal(gw_agent_read(folder, "a", &agent, &error), FM_INVALID_REQUEST);
    write_file(2, NULL, 0);
    path_of(path, 2);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(gw_agent_read(folder, "a", &agent, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "TOOLS.md"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_refs),
        cmocka_unit_test(workspaces),
        cmocka_unit_test(files_that_are_none),
    };
    if (!mkdtemp(folder)) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int file = 0; file < 3; file++) {
        write_file(file, NULL, 0);
    }
    rmdir(folder);
    return failed;
}
