/* Options from the command line and from the environment. */
#include "base/file.h"
#include "base/platform.h"
#include "front/options.h"
#include "wire.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <unistd.h>

static const char *const variables[] = {"FM_PROXY_ENGINE",     "FM_PROXY_ENGINE_DIR", "FM_PROXY_MODEL",
                                        "FM_PROXY_MODELS_DIR", "FM_PROXY_LOG_LEVEL",  "FM_PROXY_CHAT_TEMPLATE"};

/* The system on which the options are read; the linker replaces the real one with this, except on a Mac. */
static const char *platform;
const char *__wrap_fm_platform_name(void);

const char *__wrap_fm_platform_name(void) {
    return platform;
}

static int clear_environment(void **state) {
    (void)state;
    platform = "linux";
    for (size_t i = 0; i < COUNT(variables); i++) {
        unsetenv(variables[i]);
    }
    unsetenv("FM_PROXY_MMPROJ");
    return 0;
}

/* Reads the arguments; `said` is the text that was written to stderr. */
static bool read_options(struct fm_options *options, const char *const *arguments, char *said, size_t size) {
    char *argv[16] = {(char *)"fm-proxy"};
    int argc = 1;
    while (argc < 15 && arguments[argc - 1]) {
        argv[argc] = (char *)arguments[argc - 1];
        argc++;
    }
    int read_end;
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    dup2(write_end, STDERR_FILENO);
    close(write_end);
    optind = 0; /* makes getopt start again */
    bool ok = fm_options_read(options, argc, argv);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t len = fm_read(read_end, said, size - 1);
    assert_true(len >= 0);
    said[len] = '\0';
    close(read_end);
    return ok;
}

/* `path` itself if it is absolute, else that path in the current folder. Valid until the next call. */
static const char *absolute(const char *path) {
    static char whole[PATH_MAX];
    char dir[PATH_MAX - 64];
    assert_non_null(getcwd(dir, sizeof dir));
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    return path[0] == '/' ? path : whole;
}

#define ARGS(...)                                                                                                      \
    (const char *const[]) {                                                                                            \
        __VA_ARGS__, NULL                                                                                              \
    }
#define NO_ARGS                                                                                                        \
    (const char *const[]) {                                                                                            \
        NULL                                                                                                           \
    }

static void defaults(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    char program_dir[PATH_MAX];
    char parent[PATH_MAX + 3];
    char models_dir[PATH_MAX + 16];
    assert_true(fm_program_dir(program_dir, sizeof program_dir));
    snprintf(parent, sizeof parent, "%s/..", program_dir);
    char *whole = fm_file_resolve(parent);
    assert_non_null(whole);
    snprintf(models_dir, sizeof models_dir, "%s/models", whole);
    free(whole);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(said, "");
    assert_int_equal(options.mode, FM_RUN_SERVE);
    assert_string_equal(options.engine, "llama");
    assert_null(options.model);
    assert_string_equal(options.engine_dir, program_dir);
    assert_string_equal(options.models_dir, models_dir);
    assert_int_equal(options.log_level, FM_LOG_ERROR);
}

static void arguments_and_environment(void **state) {
    (void)state;
    static const char *const none[] = {NULL};
    static const char *const all[] = {"--engine",     "fake", "--engine-dir", "/e",    "--model", "m",
                                      "--models-dir", "/m",   "--log-level",  "debug", NULL};
    static const char *const equals[] = {
        "--stdio", "--engine=x-1", "--engine-dir=e/", "--model=/a/b.gguf", "--models-dir=m m", "--log-level=error",
        NULL};
    static const char *const twice[] = {"--engine", "a", "--engine", "b", "--model", "", NULL};
    const struct {
        const char *const *arguments;
        bool env;                                             /* all variables are set, to the values below */
        const char *engine, *engine_dir, *model, *models_dir; /* NULL: not checked, but `model` must then be NULL */
        enum fm_log_level log_level;
    } rows[] = {
        {all, false, "fake", "/e", "m", "/m", FM_LOG_DEBUG},
        {all, true, "fake", "/e", "m", "/m", FM_LOG_DEBUG}, /* the command line wins */
        {none, true, "remote", "/env/e", "env.gguf", "/env/m", FM_LOG_INFO},
        {equals, true, "x-1", "e/", "/a/b.gguf", "m m", FM_LOG_ERROR},
        {twice, false, "b", NULL, "", NULL, FM_LOG_ERROR},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        static const char *const values[] = {"remote", "/env/e", "env.gguf", "/env/m", "info", "/env/t"};
        for (size_t v = 0; v < COUNT(variables); v++) {
            rows[i].env ? setenv(variables[v], values[v], 1) : unsetenv(variables[v]);
        }
        struct fm_options options;
        char said[512];
        assert_true(read_options(&options, rows[i].arguments, said, sizeof said));
        assert_string_equal(said, "");
        assert_string_equal(options.engine, rows[i].engine);
        assert_string_equal(options.model, rows[i].model);
        assert_int_equal(options.log_level, rows[i].log_level);
        if (rows[i].engine_dir) {
            assert_string_equal(options.engine_dir, absolute(rows[i].engine_dir));
            assert_string_equal(options.models_dir, absolute(rows[i].models_dir));
        }
    }
}

/* Which engines are used, and in which order, if --engine is not given or is auto. */
static void engines(void **state) {
    (void)state;
    const struct {
        const char *platform;
        const char *const *arguments;
        const char *order;
    } rows[] = {
        {"linux", ARGS("--stdio"), "llama"},
        {"windows", ARGS("--stdio"), "llama"},
        {"macos", ARGS("--stdio"), "apple,llama"},
        {"macos", ARGS("sessions"), "apple,llama"},
        {"macos", ARGS("bench"), "apple,llama"},
        {"macos", ARGS("--model", ""), "apple,llama"},
        {"macos", ARGS("--model", "a.gguf"), "llama"}, /* a user who names a file wants this engine */
        {"macos", ARGS("--engine", "auto", "--model", "a.gguf"), "apple,llama"},
        {"macos", ARGS("--engine", "llama"), "llama"},
        {"macos", ARGS("--remote", "r.json", "--model", "a.gguf"), "apple,llama,remote"},
        {"linux", ARGS("--remote", "r.json"), "apple,llama,remote"},
        {"linux", ARGS("--engine", "auto"), "apple,llama"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_options options;
        struct fm_engine_choice choice;
        char said[512];
        char order[128] = "";
        platform = rows[i].platform;
        if (strcmp(fm_platform_name(), platform) != 0) {
            continue; /* on a Mac, functions can't be wrapped */
        }
        assert_true(read_options(&options, rows[i].arguments, said, sizeof said));
        for (size_t n = 0; fm_options_engine(&options, n, &choice); n++) {
            snprintf(order + strlen(order), sizeof order - strlen(order), "%s%s", n ? "," : "", choice.name);
            assert_int_equal(choice.elsewhere, strcmp(choice.name, "apple") == 0 && strcmp(platform, "macos") != 0);
        }
        assert_string_equal(order, rows[i].order);
    }
    platform = "macos";
    setenv("FM_PROXY_MODEL", "a.gguf", 1);
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.engine, "llama");
}

static void memory_budget(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes; /* 0: refused */
    } rows[] = {
        {"1", 1},
        {"65536K", 64 << 20},
        {"512M", 512 << 20},
        {"4G", INT64_C(4) << 30},
        {"9223372036854775807", INT64_MAX},
        {"8589934591G", INT64_C(8589934591) << 30},
        {"8589934592G", 0},
        {"9223372036854775808", 0},
        {"0", 0},
        {"0G", 0},
        {"-1", 0},
        {" 1", 0},
        {"1.5G", 0},
        {"5T", 0},
        {"5GB", 0},
        {"M", 0},
        {"", 0},
    };
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_int_equal(options.memory_budget, 0);
    assert_int_equal(options.max_engines, 3);
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool read = read_options(&options, ARGS("--memory-budget", rows[i].text), said, sizeof said);
        assert_int_equal(read, rows[i].bytes > 0);
        assert_int_equal(read ? options.memory_budget : 0, rows[i].bytes);
        assert_true(read || strstr(said, "--memory-budget must be a number of bytes"));
    }
    static const char *const wrong[] = {"0", "9", "x", ""};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_false(read_options(&options, ARGS("--max-engines", wrong[i]), said, sizeof said));
        assert_non_null(strstr(said, "--max-engines must be an integer from 1 to 8"));
    }
}

static void chat_template(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_null(options.chat_template);
    setenv("FM_PROXY_CHAT_TEMPLATE", "/env/t", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.chat_template, "/env/t");
    assert_true(read_options(&options, ARGS("--chat-template", "t"), said, sizeof said));
    assert_string_equal(options.chat_template, absolute("t"));
}

static void relative_paths(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options,
                             ARGS("--store", "s/t", "--kv-cache-dir", "../k", "--remote", "./r.json", "--model", "id"),
                             said, sizeof said));
    assert_string_equal(options.store_file, absolute("s/t"));
    assert_string_equal(options.kv_cache_dir, absolute("../k"));
    assert_string_equal(options.remote, absolute("r.json"));
    assert_string_equal(options.model, "id");
    assert_true(read_options(&options, ARGS("--remote", "env:R", "--store", "/s"), said, sizeof said));
    assert_string_equal(options.remote, "env:R"); /* a variable */
    assert_string_equal(options.store_file, "/s");
}

static void mmproj(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_null(options.mmproj);
    setenv("FM_PROXY_MMPROJ", "/env/p", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.mmproj, "/env/p");
    assert_true(read_options(&options, ARGS("--mmproj", "p"), said, sizeof said));
    assert_string_equal(options.mmproj, absolute("p"));
}

static void draft_model(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_null(options.draft_model);
    setenv("FM_PROXY_DRAFT_MODEL", "/env/d", 1);
    assert_true(read_options(&options, ARGS("sessions"), said, sizeof said));
    assert_string_equal(options.draft_model, "/env/d");
    assert_true(read_options(&options, ARGS("bench", "--draft-model", "d"), said, sizeof said));
    assert_string_equal(options.draft_model, absolute("d"));
}

static void gpu(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.gpu, "auto");
    assert_null(options.gpu_dir);
    setenv("FM_PROXY_GPU", "off", 1);
    setenv("FM_PROXY_GPU_DIR", "/env/d", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.gpu, "off");
    assert_string_equal(options.gpu_dir, "/env/d");
    assert_true(read_options(&options, ARGS("sessions", "--gpu", "100000", "--gpu-dir", ""), said, sizeof said));
    assert_string_equal(options.gpu, "100000");
    assert_string_equal(options.gpu_dir, "");
}

static void strict_parameters(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_false(options.strict_parameters);
    assert_true(read_options(&options, ARGS("--strict-parameters"), said, sizeof said));
    assert_true(options.strict_parameters);
    setenv("FM_PROXY_STRICT_PARAMETERS", "1", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_true(options.strict_parameters);
    assert_true(read_options(&options, ARGS("sessions"), said, sizeof said));
    setenv("FM_PROXY_STRICT_PARAMETERS", "0", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_false(options.strict_parameters);
    assert_true(read_options(&options, ARGS("--strict-parameters"), said, sizeof said));
    assert_true(options.strict_parameters);
    setenv("FM_PROXY_STRICT_PARAMETERS", "yes", 1);
    assert_false(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_non_null(strstr(said, "FM_PROXY_STRICT_PARAMETERS"));
    unsetenv("FM_PROXY_STRICT_PARAMETERS");
    assert_false(read_options(&options, ARGS("sessions", "--strict-parameters"), said, sizeof said));
    assert_non_null(strstr(said, "--strict-parameters"));
}

/* A variable that is set to an empty string counts as not set. */
static void empty_variables(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    for (size_t i = 0; i < COUNT(variables); i++) {
        setenv(variables[i], "", 1);
    }
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(options.engine, "llama");
    assert_null(options.model);
    assert_true(strstr(options.models_dir, "/models") != NULL);
    assert_true(strstr(options.models_dir, "..") == NULL);
    assert_int_equal(options.log_level, FM_LOG_ERROR);
    assert_null(options.chat_template);
}

static void modes(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--help"), said, sizeof said));
    assert_int_equal(options.mode, FM_RUN_HELP);
    assert_true(read_options(&options, ARGS("--version"), said, sizeof said));
    assert_int_equal(options.mode, FM_RUN_VERSION);
    assert_true(read_options(&options, ARGS("--engine", "../x", "--help"), said, sizeof said));
    assert_int_equal(options.mode, FM_RUN_HELP);
    assert_true(read_options(&options, ARGS("--list-options"), said, sizeof said));
    assert_int_equal(options.mode, FM_RUN_LIST);
}

static void session_defaults(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("sessions"), said, sizeof said));
    assert_string_equal(said, "");
    assert_int_equal(options.mode, FM_RUN_SESSIONS);
    assert_int_equal(options.log_level, FM_LOG_INFO);
    assert_int_equal(options.sessions.idle_ms, 120000);
    assert_int_equal(options.sessions.check_ms, 30000);
    assert_int_equal(options.sessions.eof_wait_ms, 0);
    assert_int_equal(options.sessions.max_sessions, 64);
    assert_int_equal(options.sessions.max_turns, 1000);
    assert_int_equal(options.sessions.max_bytes, 4194304);
    assert_int_equal(options.sessions.max_output_tokens, 1024);
    assert_int_equal(options.sessions.timeout_ms, 600000);
    assert_true(options.sessions.temperature == 1);
    assert_string_equal(options.sessions.truncation, "disabled");
    assert_string_equal(options.sessions.log_prefix, "[IntelligenceKit] ");
    assert_false(options.sessions.log_user_text);
}

/*
 * The smallest and the largest value of each option, before the word "sessions" and after it. The error for a value
 * outside of the range names the option.
 */
static void session_numbers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
        int64_t least;
        int64_t most;
    } rows[] = {
        {"--idle-timeout-ms", offsetof(struct fm_session_options, idle_ms), 1, 86400000},
        {"--idle-check-ms", offsetof(struct fm_session_options, check_ms), 1, 86400000},
        {"--eof-wait-ms", offsetof(struct fm_session_options, eof_wait_ms), 0, 86400000},
        {"--max-sessions", offsetof(struct fm_session_options, max_sessions), 1, 10000},
        {"--max-turns", offsetof(struct fm_session_options, max_turns), 1, 10000},
        {"--max-session-bytes", offsetof(struct fm_session_options, max_bytes), 1024, 8388608},
        {"--max-output-tokens", offsetof(struct fm_session_options, max_output_tokens), 1, 2147483647},
        {"--message-timeout-ms", offsetof(struct fm_session_options, timeout_ms), 1, 86400000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_options options;
        char said[512];
        char least[32];
        char most[32];
        char below[32];
        char above[32];
        snprintf(least, sizeof least, "%" PRId64, rows[i].least);
        snprintf(most, sizeof most, "%" PRId64, rows[i].most);
        snprintf(below, sizeof below, "%" PRId64, rows[i].least - 1);
        snprintf(above, sizeof above, "%" PRId64, rows[i].most + 1);
        const int64_t *value = (const int64_t *)((const char *)&options.sessions + rows[i].offset);
        assert_true(read_options(&options, ARGS("sessions", rows[i].name, least), said, sizeof said));
        assert_int_equal(*value, rows[i].least);
        assert_true(read_options(&options, ARGS(rows[i].name, most, "sessions"), said, sizeof said));
        assert_int_equal(*value, rows[i].most);
        const char *const wrong[] = {
            below, above, "", "-1", "+5", " 5", "5 ", "5x", "0x5", "1e3", "99999999999999999999"};
        for (size_t w = 0; w < COUNT(wrong); w++) {
            bool ok = read_options(&options, ARGS("sessions", rows[i].name, wrong[w]), said, sizeof said);
            if (ok || !strstr(said, rows[i].name) || !strstr(said, most)) {
                fail_msg("%s \"%s\": %s, said: %s", rows[i].name, wrong[w], ok ? "accepted" : "refused", said);
            }
        }
    }
}

static void session_words(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    char longest[201];
    memset(longest, 'p', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_true(read_options(&options,
                             ARGS("sessions", "--temperature=0.25", "--truncation", "auto", "--log-user-text",
                                  "--log-prefix", "", "--log-level", "warn", "--model", "m"),
                             said, sizeof said));
    assert_true(options.sessions.temperature == 0.25);
    assert_string_equal(options.sessions.truncation, "auto");
    assert_string_equal(options.sessions.log_prefix, "");
    assert_true(options.sessions.log_user_text);
    assert_int_equal(options.log_level, FM_LOG_WARN);
    assert_string_equal(options.model, "m");
    assert_true(
        read_options(&options, ARGS("sessions", "--temperature", "2", "--log-prefix", longest), said, sizeof said));
    assert_string_equal(options.sessions.log_prefix, longest);
    assert_true(options.sessions.temperature == 2);
    assert_true(read_options(&options, ARGS("sessions", "--temperature", "0"), said, sizeof said));
    assert_true(options.sessions.temperature == 0);
}

/* Without arguments, a pipe on stdin is served. A terminal is only served with --stdio. */
static void stdin_decides(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(null >= 0 && before >= 0);
    dup2(null, STDIN_FILENO);
    assert_true(read_options(&options, NO_ARGS, said, sizeof said));
    assert_int_equal(options.mode, FM_RUN_SERVE);
    if (terminal >= 0 && isatty(terminal)) {
        dup2(terminal, STDIN_FILENO);
        assert_true(read_options(&options, NO_ARGS, said, sizeof said));
        assert_int_equal(options.mode, FM_RUN_EXPLAIN);
        assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
        assert_int_equal(options.mode, FM_RUN_SERVE);
    }
    dup2(before, STDIN_FILENO);
    close(before);
    close(null);
    close(terminal);
}

struct refusal {
    const char *const *arguments;
    const char *names; /* NULL: it is accepted */
};

/* Each row is refused with one line that names the fault. */
static void check_refusals(const struct refusal *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct fm_options options;
        char said[512];
        bool ok = read_options(&options, rows[i].arguments, said, sizeof said);
        if (!rows[i].names) {
            assert_true(ok);
            continue;
        }
        if (ok || !strstr(said, rows[i].names) || !strstr(said, "fm-proxy") ||
            strchr(said, '\n') != strrchr(said, '\n')) {
            fail_msg("row %zu: %s, said: %s", i, ok ? "accepted" : "refused", said);
        }
    }
}

static char long_path[PATH_MAX + 1];

static void refused(void **state) {
    (void)state;
    memset(long_path, 'x', PATH_MAX);
    const struct refusal rows[] = {
        {ARGS("run"), "run"},
        {ARGS("--stdio", "extra"), "extra"},
        {ARGS("--"), NULL},
        {ARGS("--", "--stdio"), "--stdio"},
        {ARGS("--nonsense"), "--nonsense"},
        {ARGS("-x"), "x"},
        {ARGS("--engine"), "--engine"},
        {ARGS("--stdio=yes"), "stdio"},
        {ARGS("--engine", ""), "--engine"},
        {ARGS("--engine", "../evil"), "../evil"},
        {ARGS("--engine", "a/b"), "a/b"},
        {ARGS("--engine", "Llama"), "Llama"},
        {ARGS("--engine", "a.b"), "a.b"},
        {ARGS("--engine", "a b"), "a b"},
        {ARGS("--engine", "a23456789012345678901234567890123"), "--engine"},
        {ARGS("--log-level", "loud"), "loud"},
        {ARGS("--log-level", ""), "--log-level"},
        {ARGS("--chat-template", ""), "--chat-template"},
        {ARGS("--gpu", "0"), "from 1 to 100000, not \"0\""},
        {ARGS("--gpu", "100001"), "--gpu"},
        {ARGS("--gpu", "all"), "auto, off"},
        {ARGS("--mmproj", ""), "--mmproj"},
        {ARGS("--draft-model", ""), "--draft-model"},
        {ARGS("--draft-model", "caf\xE9.gguf"), "--draft-model"},
        {ARGS("--mmproj", "caf\xE9.gguf"), "--mmproj"},
        {ARGS("--chat-template", "caf\xE9.jinja"), "--chat-template"},
        {ARGS("--engine-dir", long_path), "--engine-dir"},
        {ARGS("--models-dir", long_path), "--models-dir"},
    };
    check_refusals(rows, COUNT(rows));
}

static void sessions_refused(void **state) {
    (void)state;
    memset(long_path, 'x', PATH_MAX);
    const struct refusal rows[] = {
        {ARGS("Sessions"), "Sessions"},
        {ARGS("sessions", "sessions"), "sessions"},
        {ARGS("sessions", "--nonsense"), "--nonsense"},
        {ARGS("sessions", "--store", "f"), "--store"},
        {ARGS("sessions", "--store-bytes", "0"), "--store-bytes"},
        {ARGS("sessions", "--temperature", "2.01"), "--temperature"},
        {ARGS("sessions", "--temperature", "-1"), "--temperature"},
        {ARGS("sessions", "--temperature", "nan"), "--temperature"},
        {ARGS("sessions", "--temperature", "0x1"), "--temperature"},
        {ARGS("sessions", "--temperature", "1,5"), "--temperature"},
        {ARGS("sessions", "--temperature", ""), "--temperature"},
        {ARGS("sessions", "--truncation", ""), "--truncation"},
        {ARGS("sessions", "--truncation", "Auto"), "--truncation"},
        {ARGS("sessions", "--log-user-text=yes"), "log-user-text"},
        {ARGS("sessions", "--log-prefix", "a\nb"), "--log-prefix"},
        {ARGS("sessions", "--log-prefix", "a\r"), "--log-prefix"},
        {ARGS("sessions", "--log-prefix", long_path), "--log-prefix"},
        {ARGS("--idle-timeout-ms", "1"), "--idle-timeout-ms is an option of fm-proxy sessions"},
        {ARGS("--idle-check-ms", "1"), "--idle-check-ms is an option of fm-proxy sessions"},
        {ARGS("--eof-wait-ms", "1"), "--eof-wait-ms is an option of fm-proxy sessions"},
        {ARGS("--max-sessions", "1"), "--max-sessions is an option of fm-proxy sessions"},
        {ARGS("--max-turns", "1"), "--max-turns is an option of fm-proxy sessions"},
        {ARGS("--max-session-bytes", "1024"), "--max-session-bytes is an option of fm-proxy sessions"},
        {ARGS("--max-output-tokens", "1"), "--max-output-tokens is an option of fm-proxy sessions"},
        {ARGS("--message-timeout-ms", "1"), "--message-timeout-ms is an option of fm-proxy sessions"},
        {ARGS("--temperature", "1"), "--temperature is an option of fm-proxy sessions"},
        {ARGS("--truncation", "auto"), "--truncation is an option of fm-proxy sessions"},
        {ARGS("--log-prefix", "p"), "--log-prefix is an option of fm-proxy sessions"},
        {ARGS("--stdio", "--log-user-text"), "--log-user-text is an option of fm-proxy sessions"},
    };
    check_refusals(rows, COUNT(rows));
}

static void refused_in_the_environment(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    setenv("FM_PROXY_ENGINE", "../evil", 1);
    assert_false(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_non_null(strstr(said, "../evil"));
    unsetenv("FM_PROXY_ENGINE");
    setenv("FM_PROXY_LOG_LEVEL", "loud", 1);
    assert_false(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_non_null(strstr(said, "loud"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear_environment),
        cmocka_unit_test_setup(arguments_and_environment, clear_environment),
        cmocka_unit_test_setup(engines, clear_environment),
        cmocka_unit_test_setup(memory_budget, clear_environment),
        cmocka_unit_test_setup(chat_template, clear_environment),
        cmocka_unit_test_setup(relative_paths, clear_environment),
        cmocka_unit_test_setup(mmproj, clear_environment),
        cmocka_unit_test_setup(draft_model, clear_environment),
        cmocka_unit_test_setup(gpu, clear_environment),
        cmocka_unit_test_setup(strict_parameters, clear_environment),
        cmocka_unit_test_setup(empty_variables, clear_environment),
        cmocka_unit_test_setup(modes, clear_environment),
        cmocka_unit_test_setup(session_defaults, clear_environment),
        cmocka_unit_test_setup(session_numbers, clear_environment),
        cmocka_unit_test_setup(session_words, clear_environment),
        cmocka_unit_test_setup(stdin_decides, clear_environment),
        cmocka_unit_test_setup(refused, clear_environment),
        cmocka_unit_test_setup(sessions_refused, clear_environment),
        cmocka_unit_test_setup(refused_in_the_environment, clear_environment),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
