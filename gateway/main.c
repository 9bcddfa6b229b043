/*
 * fm-gateway: connects the parts. Before it reads anything else, it takes its secrets out of the environment, and out
 * of the reach of other processes.
 */
#include "assistant.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/secret.h"
#include "config/config.h"
#include "config/paths.h"
#include "net/server.h"
#include "net/token.h"
#include "options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#define SIGNALS 3 /* the signals that end it: watch_signals */

struct gateway {
    struct gw_options options;
    struct gw_paths paths;
    struct gw_config config;
    struct gw_secrets secrets;
    char *token; /* the current token, from the environment or the file */
    struct gw_auth auth;
    struct gw_files files;
    struct gw_rpc rpc;
    struct gw_server server;
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_fs_event_t token_watch;
    struct gw_assistant *assistant;
    int lock;
};

static struct gateway gateway;

static int complain(const struct fm_error *error) {
    fprintf(stderr, "fm-gateway: %s\n", error->detail);
    return error->code == FM_INVALID_REQUEST ? EX_CONFIG : EX_UNAVAILABLE;
}

/* The host as an address shows it: "[::1]" for "::1". */
static const char *host_shown(const char *host) {
    return strcmp(host, "::1") == 0 ? "[::1]" : host;
}

static void print_link(const char *host, int port, const char *token) {
    char code[GW_CODE_LEN + 1];
    gw_auth_make_code(token, strlen(token), fm_now_ms(), code);
    printf("http://%s:%d/#code=%s\n", host_shown(host), port, code);
}

/* ---- the token ---- */

static enum fm_code find_token(bool make, struct fm_error *error) {
    if (gateway.secrets.token && strlen(gateway.secrets.token) > GW_TOKEN_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "PROJ_JARVIS_TOKEN must have %u bytes at most", GW_TOKEN_MAX);
    }
    if (gateway.secrets.token && *gateway.secrets.token) {
        gateway.token = fm_secret_copy(gateway.secrets.token, strlen(gateway.secrets.token));
        return gateway.token ? FM_OK : fm_fail_no_memory(error);
    }
    return gw_token_read(gateway.paths.token, make, &gateway.token, error);
}

static void tell_assistant_token(const char *token);

static void on_token_changed(uv_fs_event_t *watch, const char *name, int events, int status) {
    struct fm_error error;
    char *token = NULL;
    (void)watch;
    (void)events;
    if (status != 0 || !name || strcmp(name, "token") != 0) {
        return;
    }
    if (gw_token_read(gateway.paths.token, false, &token, &error) != FM_OK) {
        fm_log(FM_LOG_WARN, "the token stays as it was: %s", error.detail);
        return;
    }
    if (strcmp(token, gateway.token) == 0) {
        fm_secret_free(token);
        return;
    }
    gw_auth_set_token(&gateway.auth, token, strlen(token));
    gw_server_set_token(&gateway.server, token);
    tell_assistant_token(token);
    fm_secret_free(gateway.token);
    gateway.token = token;
}

/* Watches the token's file, unless the token comes from the environment. */
static void watch_token(void) {
    uv_fs_event_init(&gateway.loop, &gateway.token_watch);
    if (!gateway.secrets.token || !*gateway.secrets.token) {
        int status = uv_fs_event_start(&gateway.token_watch, on_token_changed, gateway.paths.home, 0);
        if (status) {
            fm_log(FM_LOG_WARN, "a new token counts after a restart only: can't watch %s: %s", gateway.paths.home,
                   uv_strerror(status));
        }
    }
}

/* ---- the gateway's life ---- */

#ifdef GW_RUNS
static enum fm_code open_assistant(struct fm_error *error) {
    const struct gw_assistant_options options = {
        .loop = &gateway.loop,
        .rpc = &gateway.rpc,
        .paths = &gateway.paths,
        .config = &gateway.config,
        .secrets = &gateway.secrets,
        .token = gateway.token,
        .helper = gateway.options.helper,
        .helper_arguments = gateway.options.helper_arguments,
        .embedding_models = gateway.options.embedding_models,
        .browser = gateway.options.browser,
        .port = &gateway.server.policy.port,
    };
    enum fm_code code = gw_assistant_open(&options, &gateway.assistant, error);
    if (code == FM_OK) {
        gateway.server.on_login = gw_assistant_on_login;
        gateway.server.on_login_context = gateway.assistant;
    }
    return code;
}

static void stop_assistant(void) {
    gw_assistant_stop(gateway.assistant);
}

static void tell_assistant_token(const char *token) {
    gw_assistant_set_token(gateway.assistant, token);
}
#else /* a library is missing (cmake/gateway.cmake): the methods of chats answer "unavailable" */
static enum fm_code open_assistant(struct fm_error *error) {
    (void)error;
    return FM_OK;
}

static void stop_assistant(void) {}

static void tell_assistant_token(const char *token) {
    (void)token;
}
#endif

/* Ctrl-C may come twice, from the terminal and from a script: the second signal changes nothing. */
static void on_signal(uv_signal_t *signal, int number) {
    (void)signal;
    (void)number;
    if (gateway.server.stopping) {
        return;
    }
    gw_server_stop(&gateway.server);
    stop_assistant();
    uv_close((uv_handle_t *)&gateway.token_watch, NULL);
}

static bool is_ignored(int number) {
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void watch_signals(void) {
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so that a file-size limit only makes a write fail, as a full disk does */
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_init(&gateway.loop, &gateway.signals[i]);
        /* under nohup SIGHUP stays ignored: the gateway outlives its terminal */
        if (numbers[i] != SIGHUP || !is_ignored(SIGHUP)) {
            uv_signal_start(&gateway.signals[i], on_signal, numbers[i]);
        }
        uv_unref((uv_handle_t *)&gateway.signals[i]); /* these stay to the end, and must not keep the loop alive */
    }
}

/* Raises the limit of descriptors, because each socket needs one and the usual limit is 1,024. */
static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Without a page the gateway starts all the same: the sockets and /health are there. */
static enum fm_code load_page(struct fm_error *error) {
    char beside[GW_PATH_MAX];
    if (gateway.options.ui) {
        return gw_files_load(&gateway.files, gateway.options.ui, error);
    }
    if (fm_program_dir(beside, sizeof beside - 16)) {
        memcpy(beside + strlen(beside), "/gateway-ui", sizeof "/gateway-ui");
        struct fm_file_info info;
        if (fm_file_examine(beside, &info) == 0) {
            return gw_files_load(&gateway.files, beside, error);
        }
    }
    return FM_OK;
}

/* Prepares everything, up to the listener. */
static enum fm_code prepare_gateway(struct fm_error *error) {
    enum fm_code code = gw_paths_lock(&gateway.paths, &gateway.lock, error);
    code = code == FM_OK ? gw_config_load(&gateway.config, gateway.paths.config, error) : code;
    code = code == FM_OK ? find_token(true, error) : code;
    code = code == FM_OK ? load_page(error) : code;
    if (code != FM_OK) {
        return code;
    }
    allow_descriptors();
    gw_auth_init(&gateway.auth, gateway.token, strlen(gateway.token), fm_now_ms());
    gw_rpc_init(&gateway.rpc);
    if (uv_loop_init(&gateway.loop) != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "no descriptors are left, or no memory");
    }
    gateway.server.loop = &gateway.loop;
    gateway.server.policy.dev = gateway.options.dev;
    gateway.server.rpc = &gateway.rpc;
    gateway.server.auth = &gateway.auth;
    gateway.server.token = gateway.token;
    gateway.server.files = &gateway.files;
    code = open_assistant(error);
    if (code != FM_OK) {
        return code;
    }
    code = gw_server_start(&gateway.server, gateway.config.gateway_host, (int)gateway.config.gateway_port, error);
    return code == FM_OK ? gw_paths_note_port(&gateway.paths, gateway.lock, gateway.server.policy.port, error) : code;
}

/* Prints the code only to a terminal, because a log would keep it. */
static void announce(void) {
    const char *host = gateway.config.gateway_host;
    int port = gateway.server.policy.port;
    if (fm_is_terminal(1)) {
        print_link(host, port, gateway.token);
        puts("The link logs a browser in, once, within 60 s. Another one: fm-gateway --link");
    } else {
        printf("http://%s:%d/\n", host_shown(host), port);
    }
    fflush(stdout);
}

static int serve_gateway(void) {
    struct fm_error error;
    if (prepare_gateway(&error) != FM_OK) {
        return complain(&error);
    }
    watch_signals();
    watch_token();
    announce();
    uv_run(&gateway.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&gateway.signals[i], NULL);
    }
    uv_run(&gateway.loop, UV_RUN_DEFAULT);
    uv_loop_close(&gateway.loop);
    gw_rpc_free(&gateway.rpc);
    gw_files_free(&gateway.files);
    return EX_OK;
}

static int show_link(void) {
    struct fm_error error;
    int port = 0;
    gw_config_defaults(&gateway.config);
    if (gw_paths_find_port(&gateway.paths, &port, &error) != FM_OK ||
        gw_config_load(&gateway.config, gateway.paths.config, &error) != FM_OK || find_token(false, &error) != FM_OK) {
        return complain(&error);
    }
    print_link(gateway.config.gateway_host, port, gateway.token);
    return EX_OK;
}

static int renew_token(void) {
    struct fm_error error;
    if (gateway.secrets.token && *gateway.secrets.token) {
        fputs("fm-gateway: PROJ_JARVIS_TOKEN is the token here: set it to another, and restart the gateway\n", stderr);
        return EX_USAGE;
    }
    return gw_token_renew(gateway.paths.token, &error) == FM_OK ? EX_OK : complain(&error);
}

int main(int argc, char *argv[]) {
    struct fm_error error;
    fm_fill_std_fds();
    fm_process_hide();
    fm_log_init("fm-gateway", FM_LOG_WARN);
    if (!gw_options_read(&gateway.options, argc, argv)) {
        return EX_USAGE;
    }
    if (gateway.options.mode == GW_HELP) {
        gw_options_write_help(stdout);
        return EX_OK;
    }
    if (gateway.options.mode == GW_VERSION) {
        puts("fm-gateway " FM_VERSION);
        return EX_OK;
    }
    gw_secrets_take(&gateway.secrets);
    if (gw_paths_open(&gateway.paths, &error) != FM_OK) {
        return complain(&error);
    }
    int status = gateway.options.mode == GW_LINK        ? show_link()
                 : gateway.options.mode == GW_NEW_TOKEN ? renew_token()
                                                        : serve_gateway();
    fm_secret_free(gateway.token);
    gw_secrets_free(&gateway.secrets);
    return status;
}
