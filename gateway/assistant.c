/* Opens and closes the parts. The last one that was opened is closed first. */
#include "assistant.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/platform.h"
#include "providers/embedder.h"
#include "run/chats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gw_assistant {
    struct gw_assistant_options options;
    char helper[GW_PATH_MAX];
    char rules[GW_PATH_MAX];
    char folder[GW_PATH_MAX];
    struct gw_known *known;
    struct gw_journal *journal;
    struct gw_audit *audit;
    struct gw_sessions *sessions;
    struct gw_embedder_state *embedder;
    struct gw_memory *memory;
    struct gw_providers *providers;
    struct gw_tools *tools;
    struct gw_chats *chats;
    uv_timer_t deadline;
    bool timed;
};

/* ---- opening ---- */

static enum fm_code find_helper(struct gw_assistant *assistant, struct fm_error *error) {
    const char *named = assistant->options.helper;
    size_t room = sizeof assistant->helper;
    if (named) {
        snprintf(assistant->helper, room, "%s", named);
    } else if (!fm_program_dir(assistant->helper, room - sizeof "/fm-proxy")) {
        return fm_fail(error, FM_UNAVAILABLE, "the folder of this program can't be found: name fm-proxy with --helper");
    } else {
        memcpy(assistant->helper + strlen(assistant->helper), "/fm-proxy", sizeof "/fm-proxy");
    }
    struct fm_file_info info;
    if (fm_file_examine(assistant->helper, &info) != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "%s is not there: name fm-proxy with --helper", assistant->helper);
    }
    return FM_OK;
}

static void add_known(struct gw_known *known, const char *secret) {
    if (secret && strlen(secret) >= GW_KNOWN_LEN_MIN && !gw_known_add(known, secret, strlen(secret))) {
        fm_log(FM_LOG_WARN, "a secret is too long for the filter, or one too many, and is not taken out of texts");
    }
}

static enum fm_code know_secrets(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_secrets *secrets = assistant->options.secrets;
    assistant->known = gw_known_new();
    if (!assistant->known) {
        return fm_fail_no_memory(error);
    }
    add_known(assistant->known, assistant->options.token);
    add_known(assistant->known, secrets->openai_key);
    add_known(assistant->known, secrets->anthropic_key);
    return FM_OK;
}

static enum fm_code open_sessions(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_assistant_options *options = &assistant->options;
    struct gw_mended mended;
    enum fm_code code = gw_journal_open(options->loop, &assistant->journal, error);
    code = code ? code
                : gw_audit_open(assistant->journal, options->paths->home, options->config->security_audit_log,
                                assistant->known, &assistant->audit, error);
    code = code ? code
                : gw_sessions_open(assistant->journal, options->paths->sessions, options->paths->blobs,
                                   &assistant->sessions, &mended, error);
    if (code == FM_OK && (mended.torn || mended.damaged || mended.runs || mended.unusable)) {
        fm_log(FM_LOG_WARN, "of %zu sessions %zu were cut, %zu repaired, %zu can't be used; %zu runs were closed",
               mended.sessions, mended.torn, mended.damaged, mended.unusable, mended.runs);
    }
    return code;
}

static struct gw_embedder_state *open_embedder(struct gw_assistant *assistant, bool openai) {
    const struct gw_assistant_options *options = &assistant->options;
    const struct gw_embedder_options embedder = {
        .loop = options->loop,
        .helper = assistant->helper,
        .models = openai ? NULL : options->embedding_models,
        .openai_key = options->secrets->openai_key,
        .openai_url = getenv("OPENAI_BASE_URL"),
        .model = openai ? options->config->memory_embedding_model : NULL,
    };
    return openai || options->embedding_models ? gw_embedder_new(&embedder) : NULL;
}

/*
 * Makes a name for the models of a folder from the names and sizes of its files. Another file there makes other
 * vectors, even if they have the same length.
 */
static void name_models(const char *folder, char *name, size_t size) {
    static const char ending[] = ".gguf";
    struct fm_folder *models = fm_folder_open(folder);
    uint64_t files = 0;
    const char *file;
    while (models && (file = fm_folder_next(models))) {
        char path[2 * GW_PATH_MAX];
        struct fm_file_info info;
        size_t len = strlen(file);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        if (len >= sizeof ending && strcmp(file + len - (sizeof ending - 1), ending) == 0 &&
            fm_file_examine(path, &info) == 0) {
            files += fm_hash(fm_hash(FM_HASH_START, file, len), &info.size, sizeof info.size); /* a sum: in any order */
        }
    }
    if (models) {
        fm_folder_close(models);
    }
    snprintf(name, size, "local/%016" PRIx64, files);
}

static void on_synced(void *context, const struct fm_error *error) {
    (void)context;
    if (error) {
        fm_log(FM_LOG_WARN, "the memory is not up to date: %s", error->detail);
    }
}

static enum fm_code open_memory(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_assistant_options *options = &assistant->options;
    const struct gw_config *config = options->config;
    char model[GW_CONFIG_TEXT_MAX + 16] = "";
    bool openai = strcmp(config->memory_embedding_provider, "openai") == 0;
    if (!config->memory_enabled) {
        return FM_OK;
    }
    assistant->embedder = open_embedder(assistant, openai);
    if (openai) {
        snprintf(model, sizeof model, "openai/%s", config->memory_embedding_model);
    } else if (options->embedding_models) {
        name_models(options->embedding_models, model, sizeof model);
    }
    struct gw_memory_options memory = {.loop = options->loop,
                                       .database = options->paths->memory_db,
                                       .folder = options->paths->sessions,
                                       .model = model};
    if (assistant->embedder) {
        memory.embedder = gw_embedder_of(assistant->embedder);
    }
    enum fm_code code = gw_memory_open(&memory, &assistant->memory, error);
    return code ? code : gw_memory_sync(assistant->memory, on_synced, NULL, error);
}

static enum fm_code open_models(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_assistant_options *options = &assistant->options;
    const struct gw_providers_options providers = {
        .loop = options->loop,
        .helper = assistant->helper,
        .arguments = options->helper_arguments,
        .openai_key = options->secrets->openai_key,
        .anthropic_key = options->secrets->anthropic_key,
        .openai_url = getenv("OPENAI_BASE_URL"),
        .anthropic_url = getenv("ANTHROPIC_BASE_URL"),
    };
    assistant->providers = gw_providers_new(&providers);
    return assistant->providers ? FM_OK : fm_fail_no_memory(error);
}

static enum fm_code open_tools(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_assistant_options *options = &assistant->options;
    struct gw_tools_config tools = {.loop = options->loop,
                                    .browser = options->browser,
                                    .state_folder = options->paths->home,
                                    .own_port = options->port,
                                    .timeout_ms = options->config->tools_timeout,
                                    .output_max = (size_t)options->config->tools_max_output_bytes};
    if (!gw_sandbox_parse(options->config->tools_sandbox, &tools.sandbox)) {
        return fm_fail(error, FM_INVALID_REQUEST, "tools.sandbox must be off, write or strict");
    }
    return gw_tools_new(&tools, &assistant->tools, error);
}

static enum fm_code open_chats(struct gw_assistant *assistant, struct fm_error *error) {
    const struct gw_assistant_options *options = &assistant->options;
    int len = snprintf(assistant->rules, sizeof assistant->rules, "%s/rules.json", options->paths->home);
    if (len >= (int)sizeof assistant->rules || !getcwd(assistant->folder, sizeof assistant->folder)) {
        return fm_fail(error, FM_UNAVAILABLE, "the working folder, or the path of rules.json, can't be used");
    }
    const struct gw_chats_options chats = {
        .loop = options->loop,
        .rpc = options->rpc,
        .sessions = assistant->sessions,
        .audit = assistant->audit,
        .known = options->config->security_secrets_filter ? assistant->known : NULL,
        .memory = assistant->memory,
        .providers = assistant->providers,
        .tools = assistant->tools,
        .approval_timeout_ms = options->config->tools_approval_timeout,
        .workspace = options->config->agents_workspace_path,
        .default_agent = options->config->agents_default,
        .folder = assistant->folder,
        .rules = assistant->rules,
    };
    return gw_chats_new(&chats, &assistant->chats, error);
}

/* ---- closing ---- */

static void close_all(void *context) {
    struct gw_assistant *assistant = context;
    if (assistant->chats) {
        gw_chats_free(assistant->chats);
    }
    if (assistant->providers) {
        gw_providers_free(assistant->providers);
    }
    if (assistant->memory) {
        gw_memory_close(assistant->memory);
    }
    gw_embedder_free(assistant->embedder); /* settles the calls that the memory still waits for */
    if (assistant->tools) {
        gw_tools_free(assistant->tools);
    }
    if (assistant->sessions) {
        gw_sessions_free(assistant->sessions);
    }
    gw_audit_free(assistant->audit);
    if (assistant->journal) {
        gw_journal_close(assistant->journal);
    }
    gw_known_free(assistant->known); /* the audit was its last user */
    if (assistant->timed) {
        uv_close((uv_handle_t *)&assistant->deadline, NULL);
    }
}

enum fm_code gw_assistant_open(const struct gw_assistant_options *options, struct gw_assistant **out,
                               struct fm_error *error) {
    static enum fm_code (*const steps[])(struct gw_assistant *, struct fm_error *) = {
        find_helper, know_secrets, open_sessions, open_memory, open_models, open_tools, open_chats,
    };
    struct gw_assistant *assistant = calloc(1, sizeof *assistant);
    enum fm_code code = assistant ? FM_OK : fm_fail_no_memory(error);
    if (assistant) {
        assistant->options = *options;
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && code == FM_OK; i++) {
        code = steps[i](assistant, error);
    }
    if (code != FM_OK && assistant) {
        close_all(assistant); /* the process ends anyway, so the loop's last round is not waited for */
        return code;
    }
    *out = assistant;
    return code;
}

void gw_assistant_set_token(struct gw_assistant *assistant, const char *token) {
    assistant->options.token = token;
    add_known(assistant->known, token);
}

void gw_assistant_on_login(void *context, enum gw_login result, const char *how) {
    struct gw_assistant *assistant = context;
    struct fm_error error;
    const char *detail = result == GW_LOGIN_LIMITED ? "too many failures" : how;
    if (gw_audit_auth(assistant->audit, result == GW_LOGIN_OK, detail, NULL, NULL, &error) != FM_OK) {
        fm_log(FM_LOG_WARN, "a login is not in the audit: %s", error.detail);
    }
}

/* Unfinished work is not waited for: the helpers and tools end with this process. */
static void on_deadline(uv_timer_t *timer) {
    (void)timer;
    fm_log(FM_LOG_WARN, "a run did not stop in time: the gateway ends without it");
    _exit(0);
}

void gw_assistant_stop(struct gw_assistant *assistant) {
    uv_timer_init(assistant->options.loop, &assistant->deadline);
    uv_timer_start(&assistant->deadline, on_deadline, GW_STOP_MS, 0);
    assistant->timed = true;
    gw_chats_stop(assistant->chats, close_all, assistant);
}
