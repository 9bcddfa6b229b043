/* The command line and the environment. */
#include "base/platform.h"
#include "front/options.h"
#include "wire.h"

#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

static const char *const variables[] = {"FM_PROXY_ENGINE",     "FM_PROXY_ENGINE_DIR", "FM_PROXY_MODEL",
                                        "FM_PROXY_MODELS_DIR", "FM_PROXY_LOG_LEVEL",  "FM_PROXY_CHAT_TEMPLATE"};

#define TEMPLATE "FM_ENGINE_LLAMA_TEMPLATE" /* where the engine gets it */

static int clear_environment(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(variables); i++) {
        unsetenv(variables[i]);
    }
    unsetenv(TEMPLATE);
    unsetenv("FM_PROXY_MMPROJ");
    return 0;
}

/* Reads the arguments; what is said on stderr is in `said`. */
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
    optind = 0; /* getopt starts afresh */
    bool ok = fm_options_read(options, argc, argv);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t len = fm_read(read_end, said, size - 1);
    assert_true(len >= 0);
    said[len] = '\0';
    close(read_end);
    return ok;
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
    char models_dir[PATH_MAX + 16];
    assert_true(fm_program_dir(program_dir, sizeof program_dir));
    snprintf(models_dir, sizeof models_dir, "%s/../models", program_dir);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(said, "");
    assert_int_equal(options.mode, FM_RUN_SERVE);
    assert_string_equal(options.engine, "llama");
    assert_null(options.model);
    assert_string_equal(options.engine_dir, program_dir);
    assert_string_equal(options.models_dir, models_dir);
    assert_int_equal(options.log_level, FM_LOG_OFF);
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
        bool env;                                             /* every variable is set, to the values below */
        const char *engine, *engine_dir, *model, *models_dir; /* NULL: not looked at, but a model of NULL */
        enum fm_log_level log_level;
    } rows[] = {
        {all, false, "fake", "/e", "m", "/m", FM_LOG_DEBUG},
        {all, true, "fake", "/e", "m", "/m", FM_LOG_DEBUG}, /* the command line wins */
        {none, true, "remote", "/env/e", "env.gguf", "/env/m", FM_LOG_INFO},
        {equals, true, "x-1", "e/", "/a/b.gguf", "m m", FM_LOG_ERROR},
        {twice, false, "b", NULL, "", NULL, FM_LOG_OFF},
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
            assert_string_equal(options.engine_dir, rows[i].engine_dir);
            assert_string_equal(options.models_dir, rows[i].models_dir);
        }
    }
}

static void chat_template(void **state) {
    (void)state;
    struct fm_options options;
    char said[512];
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_null(getenv(TEMPLATE));
    setenv("FM_PROXY_CHAT_TEMPLATE", "/env/t", 1);
    assert_true(read_options(&options, ARGS("--stdio"), said, sizeof said));
    assert_string_equal(getenv(TEMPLATE), "/env/t");
    assert_true(read_options(&options, ARGS("--chat-template", "t"), said, sizeof said));
    assert_string_equal(getenv(TEMPLATE), "t");
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
    assert_string_equal(options.mmproj, "p");
}

/* A variable that is set to nothing is as good as none. */
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
    assert_true(strstr(options.models_dir, "/../models") != NULL);
    assert_int_equal(options.log_level, FM_LOG_OFF);
    assert_null(getenv(TEMPLATE));
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
    assert_non_null(strstr(fm_options_usage, "--stdio"));
}

/* Without arguments: a pipe on stdin is served, and so is a terminal with --stdio. */
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

/* Each is refused by one line that names what is wrong. */
static void refused(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 1];
    memset(long_path, 'x', PATH_MAX);
    const struct {
        const char *const *arguments;
        const char *names;
    } rows[] = {
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
        {ARGS("--mmproj", ""), "--mmproj"},
        {ARGS("--engine-dir", long_path), "--engine-dir"},
        {ARGS("--models-dir", long_path), "--models-dir"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
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
        cmocka_unit_test_setup(chat_template, clear_environment),
        cmocka_unit_test_setup(mmproj, clear_environment),
        cmocka_unit_test_setup(empty_variables, clear_environment),
        cmocka_unit_test_setup(modes, clear_environment),
        cmocka_unit_test_setup(stdin_decides, clear_environment),
        cmocka_unit_test_setup(refused, clear_environment),
        cmocka_unit_test_setup(refused_in_the_environment, clear_environment),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
