#include "front/options.h"
#include "base/platform.h"
#include "front/session_options.h"
#include "front/store/store.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char fm_options_usage[] =
    "Usage: fm-proxy [--stdio] [OPTION]...\n"
    "       fm-proxy sessions [OPTION]...\n"
    "\n"
    "Serves a local language model to the program that started it: JSON-RPC in Content-Length frames on stdin and\n"
    "stdout. It is meant to be spawned by an application (npm package fm-proxy), not typed.\n"
    "\n"
    "  --stdio              serve, also when stdin is a terminal\n"
    "  --engine NAME        the engine program fm-engine-NAME (default: llama)\n"
    "  --engine-dir DIR     where engine programs are (default: beside fm-proxy)\n"
    "  --model PATH_OR_ID   the default model: a GGUF file, or the name of one in the models folder\n"
    "  --models-dir DIR     the models folder (default: ../models beside fm-proxy's folder)\n"
    "  --mmproj FILE        a projector (GGUF) with which the default model sees images;\n"
    "                       default: one that fits and lies beside the model\n"
    "  --chat-template FILE a chat template in Jinja in place of the model's own\n"
    "  --store FILE         where responses are stored (default: in memory, as long as fm-proxy runs)\n"
    "  --store-bytes BYTES  how much of them (default: 67108864); 0 stores nothing\n"
    "  --strict-parameters  refuse requests with unknown parameters (default: they are ignored and reported)\n"
    "  --log-level LEVEL    off, error, warn, info or debug, on stderr (default: error)\n"
    "  --version, --help\n"
    "\n"
    "fm-proxy sessions: the same model by lines of JSON, for programs in any language (protocol/SESSIONS.md). It logs\n"
    "at level info, stores nothing, and has options of its own:\n"
    "\n"
    "  --idle-timeout-ms MS     without activity for so long, a session is closed (default: 120000)\n"
    "  --idle-check-ms MS       how often that is looked at (default: 30000)\n"
    "  --eof-wait-ms MS         how long messages go on behind the end of the input (default: 0)\n"
    "  --max-sessions N         open at once (default: 64)\n"
    "  --max-turns N            of a session (default: 1000)\n"
    "  --max-session-bytes N    of a session's turns, as JSON (default: 4194304)\n"
    "  --max-output-tokens N    of an answer (default: 1024)\n"
    "  --message-timeout-ms MS  of a message, all included (default: 600000)\n"
    "  --temperature T          0 to 2 (default: 1)\n"
    "  --truncation HOW         auto: what outgrows the context goes on without its oldest turns (default: disabled)\n"
    "  --log-prefix TEXT        how each log line begins (default: \"[IntelligenceKit] \")\n"
    "  --log-user-text          prompts and answers are logged too\n"
    "\n"
    "Each option can also be set as FM_PROXY_ENGINE, FM_PROXY_ENGINE_DIR, FM_PROXY_MODEL, FM_PROXY_MODELS_DIR,\n"
    "FM_PROXY_MMPROJ, FM_PROXY_CHAT_TEMPLATE, FM_PROXY_STORE, FM_PROXY_STORE_BYTES, FM_PROXY_STRICT_PARAMETERS (1 or\n"
    "0) and FM_PROXY_LOG_LEVEL; the command line wins.\n";

enum option_key {
    OPT_STDIO = 256,
    OPT_ENGINE,
    OPT_ENGINE_DIR,
    OPT_MODEL,
    OPT_MODELS_DIR,
    OPT_MMPROJ,
    OPT_CHAT_TEMPLATE,
    OPT_STORE,
    OPT_STORE_BYTES,
    OPT_STRICT,
    OPT_LOG,
    OPT_HELP,
    OPT_VERSION,
    OPT_SESSION, /* and FM_SESSION_OPTIONS - 1 more */
};

static const struct option long_options[] = {
    {"stdio", no_argument, NULL, OPT_STDIO},
    {"engine", required_argument, NULL, OPT_ENGINE},
    {"engine-dir", required_argument, NULL, OPT_ENGINE_DIR},
    {"model", required_argument, NULL, OPT_MODEL},
    {"models-dir", required_argument, NULL, OPT_MODELS_DIR},
    {"mmproj", required_argument, NULL, OPT_MMPROJ},
    {"chat-template", required_argument, NULL, OPT_CHAT_TEMPLATE},
    {"store", required_argument, NULL, OPT_STORE},
    {"store-bytes", required_argument, NULL, OPT_STORE_BYTES},
    {"strict-parameters", no_argument, NULL, OPT_STRICT},
    {"log-level", required_argument, NULL, OPT_LOG},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {"idle-timeout-ms", required_argument, NULL, OPT_SESSION + FM_SESSION_IDLE},
    {"idle-check-ms", required_argument, NULL, OPT_SESSION + FM_SESSION_CHECK},
    {"eof-wait-ms", required_argument, NULL, OPT_SESSION + FM_SESSION_EOF_WAIT},
    {"max-sessions", required_argument, NULL, OPT_SESSION + FM_SESSION_MAX_SESSIONS},
    {"max-turns", required_argument, NULL, OPT_SESSION + FM_SESSION_MAX_TURNS},
    {"max-session-bytes", required_argument, NULL, OPT_SESSION + FM_SESSION_MAX_BYTES},
    {"max-output-tokens", required_argument, NULL, OPT_SESSION + FM_SESSION_MAX_OUTPUT},
    {"message-timeout-ms", required_argument, NULL, OPT_SESSION + FM_SESSION_TIMEOUT},
    {"temperature", required_argument, NULL, OPT_SESSION + FM_SESSION_TEMPERATURE},
    {"truncation", required_argument, NULL, OPT_SESSION + FM_SESSION_TRUNCATION},
    {"log-prefix", required_argument, NULL, OPT_SESSION + FM_SESSION_LOG_PREFIX},
    {"log-user-text", no_argument, NULL, OPT_SESSION + FM_SESSION_LOG_USER_TEXT},
    {NULL, 0, NULL, 0},
};

/* What the command line said; NULL: nothing. */
struct arguments {
    const char *engine;
    const char *engine_dir;
    const char *model;
    const char *models_dir;
    const char *mmproj;
    const char *chat_template;
    const char *store;
    const char *store_bytes;
    const char *strict;
    const char *log_level;
    bool stdio;
    const char *session[FM_SESSION_OPTIONS];
};

static const char *or_environment(const char *argument, const char *variable) {
    if (argument) {
        return argument;
    }
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool read_arguments(struct arguments *arguments, struct fm_options *options, int argc, char *argv[]) {
    int key;
    while ((key = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (key) {
        case OPT_STDIO: arguments->stdio = true; break;
        case OPT_ENGINE: arguments->engine = optarg; break;
        case OPT_ENGINE_DIR: arguments->engine_dir = optarg; break;
        case OPT_MODEL: arguments->model = optarg; break;
        case OPT_MODELS_DIR: arguments->models_dir = optarg; break;
        case OPT_MMPROJ: arguments->mmproj = optarg; break;
        case OPT_CHAT_TEMPLATE: arguments->chat_template = optarg; break;
        case OPT_STORE: arguments->store = optarg; break;
        case OPT_STORE_BYTES: arguments->store_bytes = optarg; break;
        case OPT_STRICT: arguments->strict = "1"; break;
        case OPT_LOG: arguments->log_level = optarg; break;
        case OPT_HELP: options->mode = FM_RUN_HELP; return true;
        case OPT_VERSION: options->mode = FM_RUN_VERSION; return true;
        default:
            if (key < OPT_SESSION) {
                return false; /* getopt has said what is wrong */
            }
            arguments->session[key - OPT_SESSION] = optarg ? optarg : "";
        }
    }
    if (optind < argc && strcmp(argv[optind], "sessions") == 0) {
        options->mode = FM_RUN_SESSIONS;
        optind++;
    }
    if (optind < argc) {
        fprintf(stderr, "fm-proxy: unknown argument: %s (see fm-proxy --help)\n", argv[optind]);
        return false;
    }
    return true;
}

/* No option is dropped in silence: some are of one mode alone. */
static bool check_mode(const struct fm_options *options, const struct arguments *arguments) {
    if (options->mode == FM_RUN_SESSIONS) {
        bool stores = arguments->store || arguments->store_bytes;
        if (stores) {
            fprintf(stderr, "fm-proxy: --store, --store-bytes: fm-proxy sessions stores nothing; leave them out\n");
        } else if (arguments->strict) {
            fprintf(stderr, "fm-proxy: --strict-parameters: fm-proxy sessions takes no requests of the OpenAI API; "
                            "leave it out\n");
        }
        return !stores && !arguments->strict;
    }
    for (enum fm_session_option i = 0; i < FM_SESSION_OPTIONS; i++) {
        if (arguments->session[i]) {
            fprintf(stderr, "fm-proxy: %s is an option of fm-proxy sessions\n", fm_session_option_name(i));
            return false;
        }
    }
    return true;
}

/* An engine's name becomes part of a file name, so it is kept to plain letters. */
static bool engine_name_valid(const char *name) {
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return len > 0 && len <= 32 && name[len] == '\0';
}

static bool set_dir(char dir[PATH_MAX], const char *given, const char *program_dir, const char *suffix) {
    int len = given ? snprintf(dir, PATH_MAX, "%s", given) : snprintf(dir, PATH_MAX, "%s%s", program_dir, suffix);
    return len > 0 && len < PATH_MAX;
}

static bool set_store(struct fm_options *options, const char *file, const char *bytes) {
    options->store_file = file;
    options->store_bytes = FM_STORE_BYTES_DEFAULT;
    if (file && !file[0]) {
        fprintf(stderr, "fm-proxy: --store: the path is empty\n");
        return false;
    }
    if (bytes) {
        char *end;
        errno = 0;
        options->store_bytes = strtoll(bytes, &end, 10);
        bool digits = bytes[0] >= '0' && bytes[0] <= '9' && *end == '\0';
        if (!digits || errno != 0) {
            fprintf(stderr, "fm-proxy: --store-bytes: \"%s\" is no number of bytes\n", bytes);
            return false;
        }
    }
    return true;
}

static bool set_strict(struct fm_options *options, const char *value) {
    bool valid = !value || strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    options->strict_parameters = value && value[0] == '1';
    if (!valid) {
        fprintf(stderr, "fm-proxy: FM_PROXY_STRICT_PARAMETERS: \"%s\" is neither 1 nor 0\n", value);
    }
    return valid;
}

static bool set_mmproj(struct fm_options *options, const char *path) {
    options->mmproj = path;
    if (path && !path[0]) {
        fprintf(stderr, "fm-proxy: --mmproj: the path is empty\n");
        return false;
    }
    return true;
}

/* To the engine, by its environment: the llama engine alone has templates. */
static bool pass_chat_template(const char *path) {
    if (path && !path[0]) {
        fprintf(stderr, "fm-proxy: --chat-template: the path is empty\n");
        return false;
    }
    if (path && setenv("FM_ENGINE_LLAMA_TEMPLATE", path, 1) != 0) {
        fprintf(stderr, "fm-proxy: --chat-template: out of memory\n");
        return false;
    }
    return true;
}

static bool apply(struct fm_options *options, const struct arguments *arguments) {
    char program_dir[PATH_MAX];
    if (!fm_program_dir(program_dir, sizeof program_dir)) {
        fprintf(stderr, "fm-proxy: can't find my own program file\n");
        return false;
    }
    const char *engine = or_environment(arguments->engine, "FM_PROXY_ENGINE");
    options->engine = engine ? engine : "llama";
    if (!engine_name_valid(options->engine)) {
        fprintf(stderr, "fm-proxy: --engine: \"%s\" is not an engine's name (a-z, 0-9, -)\n", options->engine);
        return false;
    }
    const char *level = or_environment(arguments->log_level, "FM_PROXY_LOG_LEVEL");
    if (level && !fm_log_level_parse(level, &options->log_level)) {
        fprintf(stderr, "fm-proxy: --log-level: \"%s\" is none of off, error, warn, info, debug\n", level);
        return false;
    }
    options->model = or_environment(arguments->model, "FM_PROXY_MODEL");
    const char *engine_dir = or_environment(arguments->engine_dir, "FM_PROXY_ENGINE_DIR");
    const char *models_dir = or_environment(arguments->models_dir, "FM_PROXY_MODELS_DIR");
    if (!set_dir(options->engine_dir, engine_dir, program_dir, "") ||
        !set_dir(options->models_dir, models_dir, program_dir, "/../models")) {
        fprintf(stderr, "fm-proxy: --engine-dir or --models-dir: the path is empty or too long\n");
        return false;
    }
    bool stores = options->mode != FM_RUN_SESSIONS;
    bool set = !stores || set_store(options, or_environment(arguments->store, "FM_PROXY_STORE"),
                                    or_environment(arguments->store_bytes, "FM_PROXY_STORE_BYTES"));
    set = set && (!stores || set_strict(options, or_environment(arguments->strict, "FM_PROXY_STRICT_PARAMETERS")));
    if (!set || !set_mmproj(options, or_environment(arguments->mmproj, "FM_PROXY_MMPROJ"))) {
        return false;
    }
    if (!stores) {
        options->log_level = level ? options->log_level : FM_LOG_INFO;
        if (!fm_session_options_read(&options->sessions, arguments->session)) {
            return false;
        }
    }
    return pass_chat_template(or_environment(arguments->chat_template, "FM_PROXY_CHAT_TEMPLATE"));
}

bool fm_options_read(struct fm_options *options, int argc, char *argv[]) {
    *options = (struct fm_options){.mode = FM_RUN_SERVE, .log_level = FM_LOG_ERROR};
    struct arguments arguments = {0};
    if (!read_arguments(&arguments, options, argc, argv)) {
        return false;
    }
    if (options->mode == FM_RUN_HELP || options->mode == FM_RUN_VERSION) {
        return true;
    }
    if (argc == 1 && isatty(STDIN_FILENO)) {
        options->mode = FM_RUN_EXPLAIN;
    }
    return check_mode(options, &arguments) && apply(options, &arguments);
}
