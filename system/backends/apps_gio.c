/*
 * Installed applications by GIO. GIO knows the desktop entry specification, the folders, the languages and the escapes
 * of command lines. This file keeps the list until GIO reports a change, and starts programs.
 */
#include "backends/apps_gio.h"
#include "base/clock.h"
#include "base/platform.h"
#include "desktop/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gdesktopappinfo.h>
#include <gio/gio.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define START_STACK  (512u * 1024u)
#define START_CPU_MS 500
#define START_MS     2000 /* by the clock */

struct installed {
    GMainContext *context; /* GIO reports changes when this context is iterated */
    GAppInfoMonitor *monitor;
    bool known; /* `apps` is up to date */
    struct sy_apps apps;
};

static int64_t gio_now(void *self) {
    (void)self;
    return fm_now_ms();
}

/* Only sleeps, because no command waits for the installation of an application. */
static enum fm_code wait_until(void *self, int64_t until_ms, struct fm_error *error) {
    (void)self;
    (void)error;
    fm_sleep_ms(until_ms - fm_now_ms());
    return FM_OK;
}

static int gio_descriptor(void *self) {
    (void)self;
    return -1;
}

/* ---- the list ---- */

static void on_changed(GAppInfoMonitor *monitor, void *self) {
    (void)monitor;
    ((struct installed *)self)->known = false;
}

/* A copy for free(); "" for NULL. */
static char *copy(const char *text) {
    return strdup(text ? text : "");
}

static const char *file_name(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

/*
 * Whether a menu shows the application and it opens its own windows. An application that runs in a terminal does not.
 */
static bool is_listed(GAppInfo *info) {
    const char *id = g_app_info_get_id(info);
    return G_IS_DESKTOP_APP_INFO(info) && g_app_info_should_show(info) && id && strlen(id) < SY_ID_MAX &&
           !g_desktop_app_info_get_boolean(G_DESKTOP_APP_INFO(info), "Terminal");
}

/*
 * Reads the part of an entry's command line that does not depend on the opened files: everything before the first field
 * code.
 */
static bool read_runs(GAppInfo *info, struct sy_program *runs) {
    const char *line = g_app_info_get_commandline(info);
    char **words = NULL;
    bool whole = true;
    *runs = (struct sy_program){.items = NULL};
    if (!line || !g_shell_parse_argv(line, NULL, &words, NULL)) {
        return true;
    }
    char *program = g_find_program_in_path(words[0]);
    GString *args = g_string_new(NULL);
    for (size_t i = 1; words[i] && !strchr(words[i], '%'); i++) {
        g_string_append_len(args, words[i], (gssize)strlen(words[i]) + 1);
    }
    if (program) {
        whole = sy_program_make(program, args->str, args->len, runs);
    }
    g_string_free(args, TRUE);
    g_free(program);
    g_strfreev(words);
    return whole;
}

/* Joins GenericName (such as "Web Browser") and Keywords; for free(). NULL: out of memory. */
static char *join_keywords(GDesktopAppInfo *info) {
    const char *generic = g_desktop_app_info_get_generic_name(info);
    const char *const *keywords = g_desktop_app_info_get_keywords(info);
    GString *all = g_string_new(generic ? generic : "");
    for (size_t i = 0; keywords && keywords[i]; i++) {
        g_string_append_printf(all, " %s", keywords[i]);
    }
    char *text = strdup(all->str);
    g_string_free(all, TRUE);
    return text;
}

/* False when out of memory. */
static bool add_app(struct sy_apps *apps, GAppInfo *info) {
    struct sy_app *app = &apps->at[apps->count++];
    memcpy(app->id, g_app_info_get_id(info), strlen(g_app_info_get_id(info)) + 1);
    app->name = copy(g_app_info_get_name(info));
    app->window_class = copy(g_desktop_app_info_get_startup_wm_class(G_DESKTOP_APP_INFO(info)));
    app->program = copy(file_name(g_app_info_get_executable(info)));
    app->keywords = join_keywords(G_DESKTOP_APP_INFO(info));
    return read_runs(info, &app->runs) && app->name && app->window_class && app->program && app->keywords;
}

static bool read_apps(struct sy_apps *apps) {
    GList *all = g_app_info_get_all();
    apps->at = calloc(g_list_length(all) + 1, sizeof *apps->at);
    bool whole = apps->at != NULL;
    for (GList *at = all; at && whole; at = at->next) {
        whole = !is_listed(at->data) || add_app(apps, at->data);
    }
    g_list_free_full(all, g_object_unref);
    return whole;
}

static bool copy_apps(const struct sy_apps *from, struct sy_apps *to) {
    to->at = calloc(from->count + 1, sizeof *to->at);
    bool whole = to->at != NULL;
    for (size_t i = 0; i < from->count && whole; i++) {
        struct sy_app *app = &to->at[to->count++];
        memcpy(app->id, from->at[i].id, sizeof app->id);
        app->name = strdup(from->at[i].name);
        app->window_class = strdup(from->at[i].window_class);
        app->program = strdup(from->at[i].program);
        app->keywords = strdup(from->at[i].keywords);
        whole = sy_program_copy(&from->at[i].runs, &app->runs) && app->name && app->window_class && app->program &&
                app->keywords;
    }
    return whole;
}

/* Lets GIO report changes. Its objects belong to the context that is the thread's default when they are made. */
static void hear_changes(struct installed *installed) {
    while (g_main_context_iteration(installed->context, FALSE)) {
    }
}

static enum fm_code list_apps(void *self, struct sy_apps *apps, struct fm_error *error) {
    struct installed *installed = self;
    hear_changes(installed);
    if (!installed->known) {
        sy_apps_free(&installed->apps);
        installed->known = true; /* set before reading: a change during it counts for the next call */
        installed->known = read_apps(&installed->apps);
    }
    if (!installed->known || !copy_apps(&installed->apps, apps)) {
        sy_apps_free(apps);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

/* ---- starting ---- */

static atomic_int attempts;  /* starts in progress: at most one while the session bus does not answer */
static atomic_bool too_late; /* the caller has stopped waiting for the start */

static enum fm_code not_answering(struct fm_error *error) {
    return fm_fail(error, FM_TIMEOUT, "the application can't be started: the session bus (D-Bus) does not answer");
}

/* Runs in the new process before it becomes the program: only calls that are safe after fork. */
static void set_up_child(void *ignored) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    (void)ignored;
    if (atomic_load(&too_late)) {
        _exit(EX_UNAVAILABLE);
    }
    (void)setsid();
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* this process may block signals that must end the program */
    (void)sigaction(SIGPIPE, &standard, NULL);
    (void)sigaction(SIGXFSZ, &standard, NULL);
}

static enum fm_code start_by_gio(GDesktopAppInfo *info, int null_fd, struct fm_error *error) {
    GError *fault = NULL;
    enum fm_code code = FM_OK;
    if (!g_desktop_app_info_launch_uris_as_manager_with_fds(info, NULL, NULL, G_SPAWN_SEARCH_PATH, set_up_child, NULL,
                                                            NULL, NULL, null_fd, null_fd, null_fd, &fault)) {
        code = fm_fail(error, FM_UNAVAILABLE, "the application can't be started: %s", fault->message);
        g_error_free(fault);
    }
    return code;
}

/* One start, on a thread of its own. If it takes too long, that thread owns and frees it. */
struct attempt {
    char app[SY_ID_MAX];
    enum fm_code code;
    struct fm_error error;
};

static enum fm_code start_app(const char *app, struct fm_error *error) {
    GDesktopAppInfo *info = g_desktop_app_info_new(app);
    if (!info) {
        return sy_refuse(error, "unknown_app", "app_name", "the application is not installed any more");
    }
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    enum fm_code code = null_fd < 0 ? fm_fail(error, FM_UNAVAILABLE, "/dev/null can't be opened: %s", strerror(errno))
                                    : start_by_gio(info, null_fd, error);
    if (null_fd >= 0) {
        close(null_fd);
    }
    g_object_unref(info);
    return code;
}

static void start_body(void *argument) {
    struct attempt *attempt = argument;
    attempt->code = start_app(attempt->app, &attempt->error);
}

static void drop_attempt(void *argument) {
    free(argument);
    atomic_fetch_sub(&attempts, 1);
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0];
}

/* GIO asks the session bus first, and waits for its answer without a limit. */
static enum fm_code launch_app(void *self, const char *app, struct fm_error *error) {
    (void)self;
    if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) {
        return fm_fail(error, FM_UNAVAILABLE, "there is no display on which the application could show itself");
    }
    struct attempt *attempt = atomic_load(&attempts) > 0 ? NULL : calloc(1, sizeof *attempt);
    if (!attempt) {
        return atomic_load(&attempts) > 0 ? not_answering(error) : fm_fail_no_memory(error);
    }
    snprintf(attempt->app, sizeof attempt->app, "%s", app);
    atomic_fetch_add(&attempts, 1);
    atomic_store(&too_late, false);
    int status = fm_run_on_stack_within(START_STACK, START_CPU_MS, START_MS, start_body, drop_attempt, attempt);
    if (status == ETIMEDOUT) {
        atomic_store(&too_late, true);
        return not_answering(error);
    }
    enum fm_code code = status ? fm_fail_no_memory(error) : attempt->code;
    if (status == 0 && code != FM_OK) {
        *error = attempt->error;
    }
    drop_attempt(attempt);
    return code;
}

/* ---- making a backend ---- */

static void free_installed(void *self) {
    struct installed *installed = self;
    g_signal_handlers_disconnect_by_data(installed->monitor, installed);
    g_object_unref(installed->monitor);
    hear_changes(installed);
    g_main_context_unref(installed->context);
    sy_apps_free(&installed->apps);
    free(installed);
}

static const struct sy_backend gio = {
    .name = "GIO",
    .now = gio_now,
    .wait = wait_until,
    .descriptor = gio_descriptor,
    .apps = list_apps,
    .launch = launch_app,
    .free = free_installed,
};

enum fm_code sy_apps_gio_new(struct sy_desktop *desktop, struct fm_error *error) {
    struct installed *installed = calloc(1, sizeof *installed);
    if (!installed) {
        return fm_fail_no_memory(error);
    }
    installed->context = g_main_context_new();
    g_main_context_push_thread_default(installed->context);
    installed->monitor = g_app_info_monitor_get();
    g_main_context_pop_thread_default(installed->context);
    g_signal_connect(installed->monitor, "changed", G_CALLBACK(on_changed), installed);
    *desktop = (struct sy_desktop){&gio, installed};
    return FM_OK;
}
