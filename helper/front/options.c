/*
 * The command line and the environment. One row of the table is all that defines an option: its text in --help, its
 * variable, its default, how its value is read and where it is stored. To add an option: a row, and a member of struct
 * fm_options.
 */
#include "front/options.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "front/engines/aliases.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY_MS       86400000
#define PREFIX_MAX   200 /* bytes: part of a log line's FM_LOG_LINE_MAX */
#define HELP_COLUMN  27  /* the column in which the explanations of --help begin */
#define VARIABLE_MAX 64

enum { SERVE = 1, SESSIONS = 2, BENCH = 4, ALL = SERVE | SESSIONS | BENCH };

struct row;

/* Reads `text` into `value`. False with one line on stderr, which begins with `name`. */
typedef bool read_fn(const struct row *row, const char *name, const char *text, void *value);

struct row {
    const char *name;     /* the option's name without "--" */
    const char *argument; /* the name of its value in --help; NULL: it has no value */
    const char *help;     /* in --help a newline starts a new line; the default is added */
    unsigned modes;
    bool variable; /* FM_PROXY_NAME can set it too */
    read_fn *read;
    size_t offset;     /* offset of the value in struct fm_options */
    const char *usual; /* the default, as a text; NULL: 0, or what fm_options_read finds */
    int64_t least;     /* the least value of a number */
    int64_t most;
};

/* ---- how values are read ---- */

#define REFUSE(...) (fprintf(stderr, "fm-proxy: " __VA_ARGS__), false)

static bool read_flag(const struct row *row, const char *name, const char *text, void *value) {
    (void)row;
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        return REFUSE("%s: \"%s\" is neither 1 nor 0\n", name, text);
    }
    *(bool *)value = text[0] == '1';
    return true;
}

static bool read_text(const struct row *row, const char *name, const char *text, void *value) {
    (void)row;
    (void)name;
    *(const char **)value = text;
    return true;
}

static bool read_file(const struct row *row, const char *name, const char *text, void *value) {
    return text[0] ? read_text(row, name, text, value) : REFUSE("%s: the path is empty; name a file\n", name);
}

/* Reads the path of a file. The path is sent to the engine as JSON. */
static bool read_engine_file(const struct row *row, const char *name, const char *text, void *value) {
    return fm_utf8_valid(text, strlen(text)) ? read_file(row, name, text, value)
                                             : REFUSE("%s: the path is not UTF-8; rename the file\n", name);
}

static bool read_dir(const struct row *row, const char *name, const char *text, void *value) {
    (void)row;
    return text[0] && fm_file_absolute(text, value, PATH_MAX) ? true
                                                              : REFUSE("%s: the path is empty or too long\n", name);
}

static bool read_aliases(const struct row *row, const char *name, const char *text, void *value) {
    if (!fm_utf8_valid(text, strlen(text)) || !fm_aliases_valid(text)) {
        return REFUSE("%s: \"%s\" is not a list NAME=MODEL,NAME=MODEL (1 to %d bytes each)\n", name, text,
                      FM_ALIAS_MAX);
    }
    return read_text(row, name, text, value);
}

/* Whether `text` is an integer within the row's bounds. */
static bool parse_integer(const struct row *row, const char *text, int64_t *number) {
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    return digits && *number >= row->least && *number <= row->most;
}

static bool read_integer(const struct row *row, const char *name, const char *text, void *value) {
    int64_t number;
    if (!parse_integer(row, text, &number)) {
        return REFUSE("%s must be an integer from %lld to %lld, not \"%s\"\n", name, (long long)row->least,
                      (long long)row->most, text);
    }
    *(int64_t *)value = number;
    return true;
}

/* Reads a number of bytes, or of KiB, MiB or GiB. */
static bool read_bytes(const struct row *row, const char *name, const char *text, void *value) {
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    bool plain = text[0] >= '0' && text[0] <= '9' && errno == 0 && (!*end || (unit && !end[1]));
    if (!plain || number > row->most >> shift || number << shift < row->least) {
        return REFUSE("%s must be a number of bytes from %lld on, such as 4G, 512M or 65536K, not \"%s\"\n", name,
                      (long long)row->least, text);
    }
    *(int64_t *)value = number << shift;
    return true;
}

static bool read_temperature(const struct row *row, const char *name, const char *text, void *value) {
    (void)row;
    char *end;
    double number = strtod(text, &end);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0' && !strpbrk(text, "xX");
    if (!digits || !(number <= 2)) {
        return REFUSE("%s must be a number from 0 to 2, not \"%s\"\n", name, text);
    }
    *(double *)value = number;
    return true;
}

static bool read_gpu(const struct row *row, const char *name, const char *text, void *value) {
    int64_t layers;
    bool word = strcmp(text, "auto") == 0 || strcmp(text, "off") == 0;
    if (!word && !parse_integer(row, text, &layers)) {
        return REFUSE("%s must be auto, off, or a number of layers from %lld to %lld, not \"%s\"\n", name,
                      (long long)row->least, (long long)row->most, text);
    }
    return read_text(row, name, text, value);
}

static bool read_truncation(const struct row *row, const char *name, const char *text, void *value) {
    if (strcmp(text, "auto") != 0 && strcmp(text, "disabled") != 0) {
        return REFUSE("%s must be auto or disabled, not \"%s\"\n", name, text);
    }
    return read_text(row, name, text, value);
}

static bool read_log_prefix(const struct row *row, const char *name, const char *text, void *value) {
    if (strlen(text) > PREFIX_MAX || strpbrk(text, "\r\n")) {
        return REFUSE("%s must be one line of at most %d bytes\n", name, PREFIX_MAX);
    }
    return read_text(row, name, text, value);
}

static bool read_log_level(const struct row *row, const char *name, const char *text, void *value) {
    (void)row;
    return fm_log_level_parse(text, value)
               ? true
               : REFUSE("%s must be off, error, warn, info or debug, not \"%s\"\n", name, text);
}

/* ---- the order of the engines ---- */

#define AUTO  "auto"
#define LLAMA "llama"

/* What the options know about an engine by its name. */
static const struct {
    const char *name;
    const char *platform; /* the only platform on which the engine can run; NULL: all */
    size_t config;        /* offset in struct fm_options of the option for the engine's configuration; 0: none */
} known_engines[] = {
    {"apple", "macos", 0},
    {"llama", NULL, 0},
    {"remote", NULL, offsetof(struct fm_options, remote)},
};

enum { KNOWN_ENGINES = sizeof known_engines / sizeof known_engines[0] };

/* The name at `index` of a list; NULL: the list has fewer names. */
static const char *name_at(const char *list, size_t index, size_t *len) {
    while (index-- > 0 && list) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    *len = list ? strcspn(list, ",") : 0;
    return list;
}

/* Reads the order of the engines, a list of their names. */
static const char *order_of(const struct fm_options *options) {
    if (strcmp(options->engine, AUTO) != 0) {
        return options->engine;
    }
    return options->remote ? "apple,llama,remote" : "apple,llama";
}

/* The default of --engine. On macOS it is Apple's model if the system has that model, unless a model file is named. */
static const char *usual_engine(const struct fm_options *options) {
    bool has_apple = strcmp(fm_platform_name(), "macos") == 0;
    bool names_file = options->model && options->model[0];
    return options->remote || (has_apple && !names_file) ? AUTO : LLAMA;
}

bool fm_options_engine(const struct fm_options *options, size_t index, struct fm_engine_choice *choice) {
    size_t len;
    const char *name = name_at(order_of(options), index, &len);
    if (!name) {
        return false;
    }
    *choice = (struct fm_engine_choice){.config = NULL};
    snprintf(choice->name, sizeof choice->name, "%.*s", (int)len, name);
    for (size_t i = 0; i < KNOWN_ENGINES; i++) {
        if (strcmp(choice->name, known_engines[i].name) == 0) {
            const char *platform = known_engines[i].platform;
            size_t config = known_engines[i].config;
            choice->elsewhere = platform && strcmp(platform, fm_platform_name()) != 0;
            choice->config = config ? *(const char *const *)((const char *)options + config) : NULL;
        }
    }
    return true;
}

static bool is_named_before(const char *list, const char *name, size_t len) {
    size_t other_len;
    const char *other = list;
    for (size_t i = 0; (other = name_at(list, i, &other_len)) && other < name; i++) {
        if (other_len == len && memcmp(other, name, len) == 0) {
            return true;
        }
    }
    return false;
}

/* An engine's name becomes part of a file name, so only plain letters are allowed. */
static bool read_engine(const struct row *row, const char *name, const char *text, void *value) {
    const char *at;
    size_t len;
    size_t count = 0;
    while ((at = name_at(text, count, &len))) {
        bool plain = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len && len > 0 && len <= FM_ENGINE_NAME_MAX;
        if (!plain) {
            return REFUSE("%s: \"%.*s\" is not an engine's name (1 to 32 of a-z, 0-9, -)\n", name, (int)len, at);
        }
        if (is_named_before(text, at, len)) {
            return REFUSE("%s: the engine %.*s is named twice\n", name, (int)len, at);
        }
        count++;
    }
    if (count > FM_OPTIONS_ORDER_MAX) {
        return REFUSE("%s: at most %d engines can be named\n", name, FM_OPTIONS_ORDER_MAX);
    }
    return read_text(row, name, text, value);
}

/* ---- the options ---- */

#define AT(member)      offsetof(struct fm_options, member)
#define SESSION(member) offsetof(struct fm_options, sessions.member)

static const struct row rows[] = {
    {"stdio", NULL, "serve, also when stdin is a terminal", SERVE | SESSIONS, false, read_flag, AT(stdio), NULL, 0, 0},
    {"engine", "NAMES",
     "engine programs fm-engine-NAME, separated by commas: a request goes to the first one that can\ndo it; auto: "
     "apple, llama, and with --remote remote (default: llama; auto with --remote,\nand on macOS without --model)",
     ALL, true, read_engine, AT(engine), NULL, 0, 0},
    {"remote", "FILE",
     "the configuration of the engine remote (docs/remote.md): where the servers are;\nenv:NAME: it is in that "
     "variable",
     ALL, true, read_engine_file, AT(remote), NULL, 0, 0},
    {"engine-dir", "DIR", "where engine programs are (default: where fm-proxy is)", ALL, true, read_dir, AT(engine_dir),
     NULL, 0, 0},
    {"model", "PATH_OR_ID", "the default model: a GGUF file, or the name of one in the models folder", ALL, true,
     read_text, AT(model), NULL, 0, 0},
    {"aliases", "LIST",
     "other names of models: NAME=MODEL,... where MODEL is an id or \"default\",\nand the name * is any other name",
     ALL, true, read_aliases, AT(aliases), NULL, 0, 0},
    {"models-dir", "DIR", "the models folder (default: ../models, seen from fm-proxy's folder)", ALL, true, read_dir,
     AT(models_dir), NULL, 0, 0},
    {"mmproj", "FILE",
     "a projector (GGUF): the default model sees images with it\n(default: one that fits, in the model's folder)", ALL,
     true, read_engine_file, AT(mmproj), NULL, 0, 0},
    {"draft-model", "FILE",
     "a much smaller model (GGUF) with the default model's vocabulary, which guesses its tokens;\nthe text stays the "
     "same",
     ALL, true, read_engine_file, AT(draft_model), NULL, 0, 0},
    {"chat-template", "FILE", "a chat template in Jinja in place of the model's own", ALL, true, read_engine_file,
     AT(chat_template), NULL, 0, 0},
    {"gpu", "HOW",
     "auto: as many of the model's layers as fit are computed on a GPU, where one can be used;\nor off, or how many "
     "layers",
     ALL, true, read_gpu, AT(gpu), "auto", 1, FM_GPU_LAYERS_MAX},
    {"gpu-dir", "DIR",
     "where libggml-vulkan is, of the same release of llama.cpp as the engine\n(default: none, so no GPU is used)", ALL,
     true, read_text, AT(gpu_dir), NULL, 0, 0},
    {"idle-unload-ms", "MS",
     "after so long without a request the engine ends, which frees its memory;\nthe next request starts it again; 0: "
     "never",
     ALL, true, read_integer, AT(idle_unload_ms), "600000", 0, DAY_MS},
    {"max-engines", "N", "how many models are loaded at once, each in its own engine", ALL, true, read_integer,
     AT(max_engines), "3", 1, FM_OPTIONS_ENGINES_MAX},
    {"memory-budget", "BYTES",
     "how much memory the loaded models may take together, such as 4G or 512M\n(default: half of the memory, and one "
     "model alone may take more)",
     ALL, true, read_bytes, AT(memory_budget), NULL, 1, INT64_MAX},
    {"store", "FILE", "where responses are stored (default: in memory, as long as fm-proxy runs)", SERVE, true,
     read_file, AT(store_file), NULL, 0, 0},
    {"store-bytes", "BYTES", "how many bytes of responses are stored; 0 stores none", SERVE, true, read_integer,
     AT(store_bytes), "67108864", 0, INT64_MAX},
    {"kv-cache-dir", "DIR",
     "where engines keep what they have computed, for the next one with the same model\n(default: fm-proxy/kv in the "
     "user's folder for caches)",
     SERVE, true, read_file, AT(kv_cache_dir), NULL, 0, 0},
    {"kv-cache-bytes", "BYTES", "how many bytes of that are kept; the prompts and answers are in them", SERVE, true,
     read_integer, AT(kv_cache_bytes), "536870912", 0, INT64_MAX},
    {"no-kv-cache-files", NULL, "engines keep nothing of that", SERVE, true, read_flag, AT(no_kv_cache_files), NULL, 0,
     0},
    {"strict-parameters", NULL, "refuse requests with unknown parameters\n(default: they are ignored and reported)",
     SERVE, true, read_flag, AT(strict_parameters), NULL, 0, 0},
    {"log-level", "LEVEL", "off, error, warn, info or debug, on stderr (default: error; sessions: info)", ALL, true,
     read_log_level, AT(log_level), NULL, 0, 0},
    {"idle-timeout-ms", "MS", "a session without activity for so long is closed", SESSIONS, false, read_integer,
     SESSION(idle_ms), "120000", 1, DAY_MS},
    {"idle-check-ms", "MS", "how often idle sessions are looked for", SESSIONS, false, read_integer, SESSION(check_ms),
     "30000", 1, DAY_MS},
    {"eof-wait-ms", "MS", "how long messages go on after the end of the input", SESSIONS, false, read_integer,
     SESSION(eof_wait_ms), "0", 0, DAY_MS},
    {"max-sessions", "N", "sessions that may be open at once", SESSIONS, false, read_integer, SESSION(max_sessions),
     "64", 1, 10000},
    {"max-turns", "N", "turns of a session", SESSIONS, false, read_integer, SESSION(max_turns), "1000", 1,
     FM_SESSION_TURNS_MAX},
    {"max-session-bytes", "N", "bytes of a session's turns, as JSON", SESSIONS, false, read_integer, SESSION(max_bytes),
     "4194304", 1024, 8 << 20},
    {"max-output-tokens", "N", "tokens of an answer", SESSIONS, false, read_integer, SESSION(max_output_tokens), "1024",
     1, INT32_MAX},
    {"message-timeout-ms", "MS", "time limit of a message, from its line to its answer", SESSIONS, false, read_integer,
     SESSION(timeout_ms), "600000", 1, DAY_MS},
    {"temperature", "T", "how random answers are: 0 (not at all) to 2", SESSIONS, false, read_temperature,
     SESSION(temperature), "1", 0, 0},
    {"truncation", "HOW", "auto: a conversation that no longer fits the context goes on\nwithout its oldest turns",
     SESSIONS, false, read_truncation, SESSION(truncation), "disabled", 0, 0},
    {"log-prefix", "TEXT", "how each log line begins", SESSIONS, false, read_log_prefix, SESSION(log_prefix),
     "[IntelligenceKit] ", 0, 0},
    {"log-user-text", NULL, "prompts and answers are logged too", SESSIONS, false, read_flag, SESSION(log_user_text),
     NULL, 0, 0},
    {"json", NULL, "prints the figures as JSON", BENCH, false, read_flag, AT(json), NULL, 0, 0},
};

enum { ROWS = sizeof rows / sizeof rows[0], OPT_ROW = 256, OPT_HELP = OPT_ROW + ROWS, OPT_VERSION, OPT_LIST };

/* The variable's name: "FM_PROXY_" and the option's name in capitals. */
static const char *write_variable(const struct row *row, char name[VARIABLE_MAX]) {
    int len = snprintf(name, VARIABLE_MAX, "FM_PROXY_%s", row->name);
    for (int i = 0; i < len; i++) {
        bool lower = name[i] >= 'a' && name[i] <= 'z';
        name[i] = name[i] == '-' ? '_' : lower ? (char)(name[i] - 'a' + 'A') : name[i];
    }
    return name;
}

/* ---- reading ---- */

static const struct {
    const char *word;
    enum fm_run_mode mode;
} commands[] = {{"sessions", FM_RUN_SESSIONS}, {"bench", FM_RUN_BENCH}};

/* The values of options on the command line; NULL: not given. */
struct given {
    const char *texts[ROWS];
};

static void fill_long_options(struct option all[ROWS + 4]) {
    for (int i = 0; i < ROWS; i++) {
        int argument = rows[i].argument ? required_argument : no_argument;
        all[i] = (struct option){rows[i].name, argument, NULL, OPT_ROW + i};
    }
    all[ROWS] = (struct option){"help", no_argument, NULL, OPT_HELP};
    all[ROWS + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    all[ROWS + 2] = (struct option){"list-options", no_argument, NULL, OPT_LIST};
    all[ROWS + 3] = (struct option){NULL, 0, NULL, 0};
}

/*
 * Refuses subcommands: the npm package has a command of the same name, with subcommands that this program does not
 * have.
 */
static bool refuse_word(const char *word) {
    static const char *const words[] = {"run", "models", "doctor", "completion", "help"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return REFUSE("%s is a command of the npm package: run npx fm-proxy %s in a project that has the package "
                          "(for this program's options: fm-proxy --help)\n",
                          word, word);
        }
    }
    return REFUSE("unknown argument: %s (see fm-proxy --help)\n", word);
}

static bool read_arguments(struct given *given, struct fm_options *options, int argc, char *argv[]) {
    struct option all[ROWS + 4];
    int key;
    fill_long_options(all);
    while ((key = getopt_long(argc, argv, "", all, NULL)) != -1) {
        switch (key) {
        case OPT_HELP: options->mode = FM_RUN_HELP; return true;
        case OPT_VERSION: options->mode = FM_RUN_VERSION; return true;
        case OPT_LIST: options->mode = FM_RUN_LIST; return true;
        case '?': return false; /* getopt has said what is wrong */
        default: given->texts[key - OPT_ROW] = optarg ? optarg : "1";
        }
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && optind < argc; i++) {
        if (strcmp(argv[optind], commands[i].word) == 0) {
            options->mode = commands[i].mode;
            optind++;
            break;
        }
    }
    return optind == argc || refuse_word(argv[optind]);
}

/* How many rows of the table the mode has; 0: it has no options. */
static unsigned rows_of(enum fm_run_mode mode) {
    return mode == FM_RUN_SERVE ? SERVE : mode == FM_RUN_SESSIONS ? SESSIONS : mode == FM_RUN_BENCH ? BENCH : 0;
}

/* Refuses options of another mode. No option is ignored silently. */
static bool check_mode(unsigned mode, const struct given *given) {
    for (int i = 0; i < ROWS; i++) {
        if (!given->texts[i] || rows[i].modes & mode) {
            continue;
        }
        if (mode == SERVE) {
            return REFUSE("--%s is an option of fm-proxy %s; leave it out\n", rows[i].name,
                          rows[i].modes & BENCH ? "bench" : "sessions");
        }
        return REFUSE("--%s is no option of fm-proxy %s; leave it out\n", rows[i].name,
                      mode == BENCH ? "bench" : "sessions");
    }
    return true;
}

/* The option's value: from the command line, else from its environment variable, else its default. */
static bool read_row(const struct row *row, const char *argument, struct fm_options *options) {
    char name[VARIABLE_MAX];
    void *value = (char *)options + row->offset;
    if (argument) {
        snprintf(name, sizeof name, "--%s", row->name);
        return row->read(row, name, argument, value);
    }
    const char *text = row->variable ? getenv(write_variable(row, name)) : NULL;
    if (text && *text) {
        return row->read(row, name, text, value);
    }
    return !row->usual || row->read(row, name, row->usual, value);
}

/* Finds folders that were not named, starting from the folder of this program. */
static bool find_folders(struct fm_options *options) {
    char dir[PATH_MAX];
    if (!fm_program_dir(dir, sizeof dir)) {
        return REFUSE("can't find my own program file\n");
    }
    int len = 0;
    if (!options->engine_dir[0]) {
        len = snprintf(options->engine_dir, PATH_MAX, "%s", dir);
    }
    if (!options->models_dir[0] && len < PATH_MAX) {
        char parent[PATH_MAX + 3];
        snprintf(parent, sizeof parent, "%s/..", dir);
        char *whole = fm_file_resolve(parent); /* errors show this path */
        len = snprintf(options->models_dir, PATH_MAX, "%s/models", whole ? whole : parent);
        free(whole);
    }
    return len < PATH_MAX || REFUSE("the path of my own program file is too long\n");
}

/* Refuses a configuration for an engine that is not used: it must be a mistake. */
static bool check_configs(const struct fm_options *options) {
    struct fm_engine_choice choice;
    bool used = !options->remote;
    for (size_t i = 0; fm_options_engine(options, i, &choice); i++) {
        used |= choice.config != NULL;
    }
    return used ||
           REFUSE("--remote or FM_PROXY_REMOTE is set, but none of the engines \"%s\" takes it; add remote to the "
                  "engines (--engine), or leave it out\n",
                  options->engine);
}

/* Makes the paths of files absolute: errors show them, and engines may run in another folder. */
static void make_absolute(struct fm_options *options) {
    const char **const paths[] = {&options->mmproj,     &options->draft_model,  &options->chat_template,
                                  &options->store_file, &options->kv_cache_dir, &options->remote};
    static char absolute[sizeof paths / sizeof paths[0]][PATH_MAX];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        bool is_path = *paths[i] && strncmp(*paths[i], "env:", 4) != 0; /* env:NAME is a variable, for --remote */
        if (is_path && fm_file_absolute(*paths[i], absolute[i], sizeof absolute[i])) {
            *paths[i] = absolute[i];
        }
    }
}

bool fm_options_read(struct fm_options *options, int argc, char *argv[]) {
    *options = (struct fm_options){.mode = FM_RUN_SERVE, .log_level = FM_LOG_ERROR};
    struct given given = {{NULL}};
    if (!read_arguments(&given, options, argc, argv)) {
        return false;
    }
    unsigned mode = rows_of(options->mode);
    if (mode == 0) {
        return true;
    }
    if (!check_mode(mode, &given)) {
        return false;
    }
    options->log_level = mode == SESSIONS ? FM_LOG_INFO : FM_LOG_ERROR;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].modes & mode && !read_row(&rows[i], given.texts[i], options)) {
            return false;
        }
    }
    if (!options->engine) {
        options->engine = usual_engine(options);
    }
    make_absolute(options);
    if (!check_configs(options)) {
        return false;
    }
    if (argc == 1 && fm_is_terminal(STDIN_FILENO)) {
        options->mode = FM_RUN_EXPLAIN;
    }
    return find_folders(options);
}

/* ---- --help and --list-options ---- */

/*
 * Writes the rows of the mode `only`. SERVE: all rows of options for serving, including those that other modes share.
 */
static void write_rows(FILE *file, unsigned only) {
    for (int i = 0; i < ROWS; i++) {
        if (only == SERVE ? !(rows[i].modes & SERVE) : rows[i].modes != only) {
            continue;
        }
        int at = fprintf(file, "  --%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                         rows[i].argument ? rows[i].argument : "");
        const char *line = rows[i].help;
        for (size_t len; line[len = strcspn(line, "\n")]; line += len + 1, at = 0) {
            fprintf(file, "%*s%.*s\n", HELP_COLUMN - at, "", (int)len, line);
        }
        fprintf(file, "%*s%s", HELP_COLUMN - at, "", line);
        fprintf(file, rows[i].usual ? " (default: %s)\n" : "\n", rows[i].usual);
    }
}

void fm_options_write_help(FILE *file) {
    fputs(
        "Usage: fm-proxy [--stdio] [OPTION]...\n"
        "       fm-proxy sessions [OPTION]...\n"
        "       fm-proxy bench [OPTION]...\n"
        "\n"
        "Serves a local language model to the program that started it: JSON-RPC in Content-Length frames on stdin and\n"
        "stdout. Applications start it, with the npm package fm-proxy for example.\n"
        "\n",
        file);
    write_rows(file, SERVE);
    fputs(
        "\n"
        "  --help                   prints this, and exits\n"
        "  --version                prints the version, and exits\n"
        "  --list-options           prints the options that are also environment variables, as JSON, and exits\n"
        "\n"
        "fm-proxy sessions: the same model by lines of JSON, for programs in any language (protocol/SESSIONS.md). It\n"
        "stores nothing, takes no --store, --store-bytes and --strict-parameters, and has these options too:\n"
        "\n",
        file);
    write_rows(file, SESSIONS);
    fputs("\n"
          "fm-proxy bench: how fast the model is on this machine, in a minute or two. Takes the options of models, "
          "engines\n"
          "and the log, and this one too:\n"
          "\n",
          file);
    write_rows(file, BENCH);
    fputs("\n"
          "Each option of the first list, except --stdio, is also an environment variable: --models-dir is\n"
          "FM_PROXY_MODELS_DIR. FM_PROXY_STRICT_PARAMETERS is 1 or 0. The command line has priority.\n",
          file);
}

void fm_options_write_list(FILE *file) {
    char variable[VARIABLE_MAX];
    const char *before = "[";
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].variable) {
            fprintf(file, "%s\n  {\"name\": \"%s\", \"argument\": %s%s%s, \"variable\": \"%s\"}", before, rows[i].name,
                    rows[i].argument ? "\"" : "", rows[i].argument ? rows[i].argument : "null",
                    rows[i].argument ? "\"" : "", write_variable(&rows[i], variable));
            before = ",";
        }
    }
    fputs("\n]\n", file);
}
