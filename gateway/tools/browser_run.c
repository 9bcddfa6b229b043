/*
 * The life of a browser: proxy, process, page, actions one after the other, end. Many things can end it: the last
 * action, a failure, an abort, the time limit, a crash. In each case the process ends first. When it is gone, the proxy
 * and the timers close. Only then the call settles.
 */
#include "tools/browser.h"
#include "base/platform.h"
#include "protocol/json_writer.h"
#include "tools/display.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS_SAID 5u
#define NOISE_MAX     1000u
/* RFC 6761, 6.4: used for requests to Chromium's maker, which no user approved */
#define NOWHERE       "https://off.invalid/"
#define PROGRESS_MAX  200u                   /* bytes of a URL or a selector in a line of progress */

/* ---- the end ---- */

/* How the call ended, and the line that says so. */
static enum gw_end say_end(const struct gw_browser *browser, char *note, size_t size) {
    const struct gw_process_end *end = &browser->end;
    if (browser->finished) {
        return GW_END_DONE;
    }
    if (browser->failed && end->why != GW_PROCESS_TIMEOUT) { /* the signal of a timeout looks like a page crash */
        snprintf(note, size, "%s", browser->failure);
        return GW_END_FAILED;
    }
    if (browser->call->aborting) {
        snprintf(note, size, "[The browser was ended: the call was aborted.]");
        return GW_END_ABORTED;
    }
    if (end->why == GW_PROCESS_TIMEOUT) {
        snprintf(note, size,
                 "[The browser was ended in actions[%zu], at the time limit of %" PRId64 " ms (tools.timeout).]",
                 browser->step, browser->call->tools->timeout_ms);
        return GW_END_TIMEOUT;
    }
    if (end->why == GW_PROCESS_LOST) {
        snprintf(note, size, "[The program that runs the browser was killed in actions[%zu].]", browser->step);
        return GW_END_UNKNOWN;
    }
    struct fm_buf noise;
    bool cut;
    fm_buf_init(&noise, NOISE_MAX);
    bool said = gw_output_text(&browser->noise, &noise, &cut) && noise.len;
    snprintf(note, size, "The browser ended in actions[%zu], or did not start%s%s. %.*s", browser->step,
             *end->error ? ": " : "", end->error, said ? (int)noise.len : 0, said ? noise.data : "");
    fm_buf_free(&noise);
    return GW_END_FAILED;
}

static void settle_browser(struct gw_browser *browser) {
    struct gw_tool_call *call = browser->call;
    char note[1800] = "";
    enum gw_end end = say_end(browser, note, sizeof note);
    struct gw_process_end process = browser->end;
    process.why = GW_PROCESS_FAILED; /* Chromium's exit status has no meaning */
    fm_cdp_free(&browser->cdp);
    gw_output_free(&browser->noise);
    fm_buf_free(&browser->expression);
    free(browser);
    call->own = NULL;
    gw_tool_call_settle(call, end, &process, note);
}

static void one_closed(struct gw_browser *browser) {
    if (--browser->open == 0) {
        settle_browser(browser);
    }
}

static void on_timer_closed(uv_handle_t *timer) {
    one_closed(timer->data);
}

static void on_proxy_closed(void *context) {
    one_closed(context);
}

static void on_ended(void *context, const struct gw_process_end *end) {
    struct gw_browser *browser = context;
    browser->process = NULL;
    browser->end = *end;
    browser->open = 3;
    fm_cdp_close(&browser->cdp);
    uv_close((uv_handle_t *)&browser->limit, on_timer_closed);
    uv_close((uv_handle_t *)&browser->pause, on_timer_closed);
    gw_proxy_close(browser->proxy, on_proxy_closed);
}

static void end_process(struct gw_browser *browser) {
    fm_cdp_close(&browser->cdp);
    uv_timer_stop(&browser->limit);
    uv_timer_stop(&browser->pause);
    if (browser->process) {
        gw_process_abort(browser->process);
    }
}

void gw_browser_abort(struct gw_tool_call *call) {
    struct gw_browser *browser = call->own;
    if (browser) {
        end_process(browser);
    }
}

void gw_browser_fail(struct gw_browser *browser, const char *fmt, ...) {
    char reason[400];
    va_list args;
    if (browser->failed || browser->finished) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    browser->failed = true;
    snprintf(browser->failure, sizeof browser->failure, "actions[%zu] (%s) failed: %s%s%s", browser->step,
             gw_browser_text(gw_browser_step(browser), "action"), reason, *browser->refusal ? ". Refused: " : "",
             browser->refusal);
    end_process(browser);
}

/* ---- what actions use ---- */

struct json_object *gw_browser_step(const struct gw_browser *browser) {
    struct json_object *actions = json_object_object_get(browser->call->input, "actions");
    return json_object_array_get_idx(actions, browser->step);
}

const char *gw_browser_text(struct json_object *action, const char *member) {
    struct json_object *value = NULL;
    bool there = json_object_object_get_ex(action, member, &value) && json_object_is_type(value, json_type_string);
    return there ? json_object_get_string(value) : "";
}

void gw_browser_say(struct gw_browser *browser, const char *fmt, ...) {
    char text[2000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    gw_output_add(&browser->call->output, text, strlen(text));
}

void gw_browser_ask(struct gw_browser *browser, const char *method, const char *params, fm_cdp_answered *answered) {
    if (!browser->failed && !browser->finished && !browser->call->aborting &&
        !fm_cdp_call(&browser->cdp, browser->session, method, params, answered)) {
        gw_browser_fail(browser, "the browser takes no more calls");
    }
}

/* ---- expressions ---- */

static void on_value(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    fm_cdp_answered *then = browser->then;
    struct json_object *object = NULL;
    struct json_object *value = NULL;
    if (!error && json_object_object_get_ex(result, "exceptionDetails", &object)) {
        error = "the page's answer is an error; is the selector one of CSS?";
    }
    if (!error && json_object_object_get_ex(result, "result", &object)) {
        json_object_object_get_ex(object, "value", &value);
    }
    then(browser, value, error);
}

static void on_world(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    struct json_object *id = NULL;
    struct fm_buf params;
    if (error || !json_object_object_get_ex(result, "executionContextId", &id)) {
        browser->then(browser, NULL, error ? error : "the page has no world for the tool");
        return;
    }
    fm_buf_init(&params, 256u * 1024u);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key(&w, "expression");
    fm_json_string(&w, browser->expression.data, browser->expression.len);
    fm_json_key_int(&w, "contextId", json_object_get_int64(id));
    fm_json_key_bool(&w, "returnByValue", true);
    fm_json_object_end(&w);
    fm_buf_append_char(&params, '\0');
    if (params.failed) {
        gw_browser_fail(browser, "no memory is left");
    } else {
        gw_browser_ask(browser, "Runtime.evaluate", params.data, on_value);
    }
    fm_buf_free(&params);
}

void gw_browser_evaluate(struct gw_browser *browser, const char *function, const char *const *texts, size_t count,
                         fm_cdp_answered *then) {
    char params[200];
    struct fm_json_writer w = fm_json_writer_on(&browser->expression);
    browser->then = then;
    fm_buf_reset(&browser->expression);
    fm_buf_append_str(&browser->expression, "(");
    fm_buf_append_str(&browser->expression, function);
    fm_buf_append_str(&browser->expression, ")(...");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        fm_json_str(&w, texts[i]);
    }
    fm_json_array_end(&w);
    fm_buf_append_str(&browser->expression, ")");
    snprintf(params, sizeof params, "{\"frameId\":\"%s\",\"worldName\":\"tool\"}", browser->frame);
    gw_browser_ask(browser, "Page.createIsolatedWorld", params, on_world);
}

/* ---- one action after the other ---- */

static void on_limit(uv_timer_t *timer) {
    struct gw_browser *browser = timer->data;
    const struct gw_browser_action *row =
        *browser->session ? gw_browser_action_find(gw_browser_text(gw_browser_step(browser), "action")) : NULL;
    if (row && row->late) {
        row->late(browser);
    } else {
        gw_browser_fail(browser, "it took longer than %d s", GW_BROWSER_STEP_MS / 1000);
    }
}

static void say_step(struct gw_browser *browser, const char *verb, const char *shown) {
    struct fm_buf line;
    fm_buf_init(&line, 16u * PROGRESS_MAX);
    gw_display_line(&line, shown, strlen(shown), PROGRESS_MAX);
    fm_buf_append_char(&line, '\0');
    gw_tool_call_progress(browser->call, "%s%s%s", verb, *shown ? " " : "", line.failed ? "" : line.data);
    fm_buf_free(&line);
}

static void begin_step(struct gw_browser *browser) {
    struct json_object *action = gw_browser_step(browser);
    const struct gw_browser_action *row = gw_browser_action_find(gw_browser_text(action, "action"));
    const char *shown = row->shown ? gw_browser_text(action, row->shown) : "";
    *browser->refusal = '\0';
    browser->settling = false;
    say_step(browser, row->verb, shown);
    uv_timer_start(&browser->limit, on_limit, GW_BROWSER_STEP_MS, 0);
    row->run(browser, action);
}

void gw_browser_next(struct gw_browser *browser) {
    struct json_object *actions = json_object_object_get(browser->call->input, "actions");
    uv_timer_stop(&browser->limit);
    uv_timer_stop(&browser->pause);
    if (++browser->step < json_object_array_length(actions)) {
        begin_step(browser);
    } else {
        browser->finished = true;
        end_process(browser);
    }
}

/* ---- the page ---- */

static void on_page(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    (void)result;
    if (error) {
        gw_browser_fail(browser, "the browser's page can't be controlled: %s", error);
    } else {
        begin_step(browser);
    }
}

static void on_attached(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    if (error || !*gw_browser_text(result, "sessionId")) {
        gw_browser_fail(browser, "the browser's page can't be controlled: %s", error ? error : "no session");
        return;
    }
    snprintf(browser->session, sizeof browser->session, "%s", gw_browser_text(result, "sessionId"));
    gw_browser_ask(browser, "Inspector.enable", NULL, NULL);
    gw_browser_ask(browser, "Page.enable", NULL, NULL);
    gw_browser_ask(browser, "Page.setLifecycleEventsEnabled", "{\"enabled\":true}", on_page);
}

static void on_created(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    char params[200];
    if (error) {
        gw_browser_fail(browser, "the browser opens no page: %s", error);
        return;
    }
    snprintf(browser->frame, sizeof browser->frame, "%s",
             gw_browser_text(result, "targetId")); /* the main frame's id, too */
    snprintf(params, sizeof params, "{\"targetId\":\"%s\",\"flatten\":true}", browser->frame);
    gw_browser_ask(browser, "Target.attachToTarget", params, on_attached);
}

static void on_denied(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    (void)result;
    if (error) {
        gw_browser_fail(browser, "downloads can't be denied: %s", error);
    } else {
        gw_browser_ask(browser, "Target.createTarget", "{\"url\":\"about:blank\"}", on_created);
    }
}

static void on_event(void *context, const char *session, const char *method, struct json_object *params) {
    struct gw_browser *browser = context;
    if (*session && strcmp(session, browser->session) == 0) {
        gw_browser_event(browser, method, params);
    }
}

static bool write_pipe(void *context, const char *data, size_t len) {
    struct gw_browser *browser = context;
    return browser->process && gw_process_write(browser->process, data, len);
}

static void on_message(void *context, const char *data, size_t len) {
    struct gw_browser *browser = context;
    if (!fm_cdp_feed(&browser->cdp, data, len)) {
        gw_browser_fail(browser,
                        "the browser sent what is no message of its protocol, or a message of more than %u MiB",
                        FM_CDP_MESSAGE_MAX >> 20);
    }
}

static void on_noise(void *context, const char *data, size_t len) {
    struct gw_browser *browser = context;
    gw_output_add(&browser->noise, data, len);
}

static void on_refused(void *context, const char *host, const char *reason) {
    struct gw_browser *browser = context;
    bool literal = strncmp(host, reason, strlen(host)) == 0;
    snprintf(browser->refusal, sizeof browser->refusal, "%s%s%s", literal ? "" : host, literal ? "" : ": ", reason);
    if (browser->refusals++ < REFUSALS_SAID) {
        gw_browser_say(browser, "(A connection was refused: %s)\n", browser->refusal);
    }
}

/* ---- the start ---- */

static enum fm_code freeze(struct gw_browser *browser, struct fm_error *error) {
    struct gw_tool_call *call = browser->call;
    char proxy[64];
    char profile[1200];
    char *folder = gw_tool_call_private_path(call);
    if (!folder) {
        return fm_fail_no_memory(error);
    }
    snprintf(proxy, sizeof proxy, "--proxy-server=socks5://127.0.0.1:%d", gw_proxy_port(browser->proxy));
    snprintf(profile, sizeof profile, "--user-data-dir=%s/profile", folder);
    const char *argv[] = {call->tools->browser,
                          "--headless=new",
                          "--remote-debugging-pipe",
                          profile,
                          proxy,
                          "--proxy-bypass-list=<-loopback>", /* the proxy gets these, too, and decides */
                          "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", /* the proxy resolves names */
                          "--webrtc-ip-handling-policy=disable_non_proxied_udp",
                          "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
                          "--disable-quic",
                          "--no-first-run",
                          "--no-default-browser-check",
                          "--disable-background-networking",
                          "--disable-component-update",
                          "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,"
                          "OptimizationGuideModelDownloading,AutofillServerCommunication",
                          "--gaia-url=" NOWHERE, /* for accounts */
                          "--component-updater=url-source=" NOWHERE,
                          "--apps-gallery-update-url=" NOWHERE, /* for extensions */
                          "--disable-default-apps",
                          "--disable-extensions",
                          "--disable-sync",
                          "--disable-breakpad",
                          "--disable-crash-reporter",
                          "--disable-domain-reliability",
                          "--metrics-recording-only",
                          "--password-store=basic",
                          "--use-mock-keychain",
                          "--mute-audio",
                          "--disable-gpu",
                          "--disable-dev-shm-usage",
                          "--window-size=1280,800",
                          "--hide-scrollbars",
                          fm_is_root() ? "--no-sandbox" : "about:blank",
                          fm_is_root() ? "about:blank" : NULL,
                          NULL};
    const struct gw_job_plan plan = {.argv = argv, .private_folder = folder, .pipes = true, .home_private = true};
    enum fm_code code = gw_tool_call_freeze(call, &plan, error);
    free(folder);
    return code;
}

/* Cleans up after a failed start: closes what is open, and frees the browser without settling the call. */
static void forget_one(struct gw_browser *browser) {
    if (--browser->open == 0) {
        fm_cdp_free(&browser->cdp);
        gw_output_free(&browser->noise);
        fm_buf_free(&browser->expression);
        free(browser);
    }
}

static void on_forgotten_timer(uv_handle_t *timer) {
    forget_one(timer->data);
}

static void on_forgotten_proxy(void *context) {
    forget_one(context);
}

static void forget_browser(struct gw_browser *browser) {
    browser->open = browser->proxy ? 3 : 2;
    uv_close((uv_handle_t *)&browser->limit, on_forgotten_timer);
    uv_close((uv_handle_t *)&browser->pause, on_forgotten_timer);
    if (browser->proxy) {
        gw_proxy_close(browser->proxy, on_forgotten_proxy);
    }
}

static enum fm_code start_process(struct gw_browser *browser, struct fm_error *error) {
    struct gw_tool_call *call = browser->call;
    const struct gw_process_start start = {.loop = call->tools->loop,
                                           .runner = call->tools->runner,
                                           .job = call->job,
                                           .folder = call->folder,
                                           .digest = call->job_digest,
                                           .pipes = true};
    const struct gw_process_handlers handlers = {
        .context = browser, .output = on_noise, .message = on_message, .ended = on_ended};
    return gw_process_start(&start, &handlers, &browser->process, error);
}

enum fm_code gw_browser_execute(struct gw_tool_call *call, struct fm_error *error) {
    struct gw_browser *browser = calloc(1, sizeof *browser);
    if (!browser) {
        return fm_fail_no_memory(error);
    }
    browser->call = call;
    fm_cdp_init(&browser->cdp, browser, write_pipe, on_event);
    gw_output_init(&browser->noise, NOISE_MAX);
    fm_buf_init(&browser->expression, 128u * 1024u);
    uv_timer_init(call->tools->loop, &browser->limit);
    uv_timer_init(call->tools->loop, &browser->pause);
    browser->limit.data = browser;
    browser->pause.data = browser;
    unsigned ports[GW_BROWSER_ACTIONS_MAX];
    const struct gw_proxy_policy policy = {
        .exempt = call->tools->exempt_address, .ports = ports, .port_count = gw_browser_own_ports(call->input, ports)};
    enum fm_code code = gw_proxy_open(call->tools->loop, &policy, on_refused, browser, &browser->proxy, error);
    if (code != FM_OK || (code = freeze(browser, error)) != FM_OK || (code = start_process(browser, error)) != FM_OK) {
        forget_browser(browser);
        return code;
    }
    call->own = browser;
    if (fm_is_root()) {
        gw_browser_say(browser, "(Chromium's own sandbox is off, because the gateway runs as root.)\n");
    }
    gw_tool_call_progress(call, fm_is_root() ? "Starting the browser, without its own sandbox: the gateway runs as root"
                                             : "Starting the browser");
    uv_timer_start(&browser->limit, on_limit, GW_BROWSER_STEP_MS, 0);
    gw_browser_ask(browser, "Browser.setDownloadBehavior", "{\"behavior\":\"deny\"}", on_denied);
    return FM_OK;
}
