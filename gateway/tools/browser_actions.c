/*
 * What each action does on the page. The scripts run in an isolated world: the page can change its elements, but not
 * the functions that examine them. An action ends by exactly one call of gw_browser_next or gw_browser_fail.
 */
#include "tools/browser.h"
#include "protocol/base64.h"
#include "protocol/json_writer.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MS 100u
#define TEXT_MAX "200000" /* characters that a page may send; the limit of the output applies after that */

static struct json_object *object_member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    return json_object_object_get_ex(object, name, &value) ? value : NULL;
}

static void pause_now(struct gw_browser *browser, uint64_t ms);

/* ---- where the page is ---- */

static void on_place(void *context, struct json_object *value, const char *error) {
    struct gw_browser *browser = context;
    if (error) {
        gw_browser_say(browser, "%zu. %s: done\n", browser->step + 1,
                       gw_browser_text(gw_browser_step(browser), "action"));
    } else {
        gw_browser_say(browser, "%zu. %s: %.1500s \"%.300s\"\n", browser->step + 1,
                       gw_browser_text(gw_browser_step(browser), "action"), gw_browser_text(value, "url"),
                       gw_browser_text(value, "title"));
    }
    gw_browser_next(browser);
}

static void say_place(struct gw_browser *browser) {
    gw_browser_evaluate(browser, "()=>({url:location.href,title:document.title})", NULL, 0, on_place);
}

/* ---- navigate ---- */

static void loaded(struct gw_browser *browser) {
    *browser->loader = '\0';
    say_place(browser);
}

static void on_navigated(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    const char *failure = error ? error : gw_browser_text(result, "errorText");
    if (*failure) {
        gw_browser_fail(browser, "%s", failure);
        return;
    }
    snprintf(browser->loader, sizeof browser->loader, "%s", gw_browser_text(result, "loaderId"));
    if (!*browser->loader || strcmp(browser->loader, browser->loaded) == 0) {
        loaded(browser); /* the target is in the same document, or the page was loaded before this answer came */
    }
}

static void run_navigate(struct gw_browser *browser, struct json_object *action) {
    struct fm_buf params;
    fm_buf_init(&params, 128u * 1024u);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "url", gw_browser_text(action, "url"));
    fm_json_object_end(&w);
    fm_buf_append_char(&params, '\0');
    if (params.failed) {
        gw_browser_fail(browser, "no memory is left");
    } else {
        gw_browser_ask(browser, "Page.navigate", params.data, on_navigated);
    }
    fm_buf_free(&params);
}

/*
 * Called at the time limit of a navigation. If the page is there, but parts of it are still loading, that is no
 * failure.
 */
static void late_navigate(struct gw_browser *browser) {
    if (*browser->loader) {
        gw_browser_say(browser, "(The page was still loading after %d s.)\n", GW_BROWSER_STEP_MS / 1000);
        *browser->loader = '\0';
        uv_timer_stop(&browser->limit);
        uv_timer_again(&browser->limit);
        say_place(browser);
    } else {
        gw_browser_fail(browser, "no answer within %d s", GW_BROWSER_STEP_MS / 1000);
    }
}

/* ---- what a click or a key leads to ---- */

/* Waits for a pause. If a navigation follows, it begins within that pause, and its end is waited for too. */
static void settle_page(struct gw_browser *browser) {
    browser->settling = true;
    browser->paused = false;
    pause_now(browser, PAUSE_MS);
}

static void page_settled(struct gw_browser *browser) {
    browser->settling = false;
    say_place(browser);
}

static void late_settle(struct gw_browser *browser) {
    if (browser->settling) {
        page_settled(browser);
    } else {
        gw_browser_fail(browser, "the page does not answer");
    }
}

/* ---- click ---- */

static const char find_to_click[] =
    "(s)=>{const e=document.querySelector(s);if(!e)return{fault:'no element matches the selector'};"
    "e.scrollIntoView({block:'center',inline:'center',behavior:'instant'});"
    "const a=e.closest('[target]');if(a)a.removeAttribute('target');" /* what the click opens shall open in this page */
    "const r=e.getBoundingClientRect();if(!r.width||!r.height)return{fault:'the element is not visible'};"
    "const x=r.left+r.width/2,y=r.top+r.height/2,t=document.elementFromPoint(x,y);"
    "if(!t)return{fault:'the element is outside of the window'};"
    "if(t!==e&&!e.contains(t)&&!t.contains(e))return{fault:'the element is covered by another one: '+t.tagName};"
    "return{x,y}}";

static void on_clicked(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    (void)result;
    if (error) {
        gw_browser_fail(browser, "%s", error);
    } else {
        settle_page(browser);
    }
}

static void mouse(struct gw_browser *browser, const char *type, double x, double y, fm_cdp_answered *answered) {
    char params[240];
    bool moved = strcmp(type, "mouseMoved") == 0;
    snprintf(params, sizeof params, "{\"type\":\"%s\",\"x\":%.2f,\"y\":%.2f,\"button\":\"%s\",\"clickCount\":%d}", type,
             x, y, moved ? "none" : "left", moved ? 0 : 1);
    gw_browser_ask(browser, "Input.dispatchMouseEvent", params, answered);
}

/* The fault that a script found; NULL: none. */
static const char *fault_of(struct json_object *value, const char *error) {
    const char *fault = error ? error : gw_browser_text(value, "fault");
    return *fault ? fault : NULL;
}

static void on_found_to_click(void *context, struct json_object *value, const char *error) {
    struct gw_browser *browser = context;
    const char *fault = fault_of(value, error);
    if (fault) {
        gw_browser_fail(browser, "%s", fault);
        return;
    }
    double x = json_object_get_double(object_member(value, "x"));
    double y = json_object_get_double(object_member(value, "y"));
    mouse(browser, "mouseMoved", x, y, NULL);
    mouse(browser, "mousePressed", x, y, NULL);
    mouse(browser, "mouseReleased", x, y, on_clicked);
}

static void run_click(struct gw_browser *browser, struct json_object *action) {
    const char *texts[] = {gw_browser_text(action, "selector")};
    gw_browser_evaluate(browser, find_to_click, texts, 1, on_found_to_click);
}

/* ---- type ---- */

static const char find_to_type[] =
    "(s)=>{const e=document.querySelector(s);if(!e)return{fault:'no element matches the selector'};"
    "e.scrollIntoView({block:'center',behavior:'instant'});e.focus();"
    "if(document.activeElement!==e)return{fault:'the element takes no text'};"
    "if(e.select)e.select();else getSelection().selectAllChildren(e);return{}}";

static void on_typed(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    (void)result;
    if (error) {
        gw_browser_fail(browser, "%s", error);
    } else if (json_object_get_boolean(object_member(gw_browser_step(browser), "submit"))) {
        static const char key[] =
            "{\"type\":\"%s\",\"key\":\"Enter\",\"code\":\"Enter\",\"windowsVirtualKeyCode\":13%s}";
        char params[160];
        snprintf(params, sizeof params, key, "keyDown", ",\"text\":\"\\r\"");
        gw_browser_ask(browser, "Input.dispatchKeyEvent", params, NULL);
        snprintf(params, sizeof params, key, "keyUp", "");
        gw_browser_ask(browser, "Input.dispatchKeyEvent", params, on_clicked);
    } else {
        gw_browser_say(browser, "%zu. type: done\n", browser->step + 1);
        gw_browser_next(browser);
    }
}

static void on_found_to_type(void *context, struct json_object *value, const char *error) {
    struct gw_browser *browser = context;
    const char *fault = fault_of(value, error);
    struct fm_buf params;
    if (fault) {
        gw_browser_fail(browser, "%s", fault);
        return;
    }
    fm_buf_init(&params, 256u * 1024u);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "text", gw_browser_text(gw_browser_step(browser), "text"));
    fm_json_object_end(&w);
    fm_buf_append_char(&params, '\0');
    if (params.failed) {
        gw_browser_fail(browser, "no memory is left");
    } else {
        gw_browser_ask(browser, "Input.insertText", params.data, on_typed);
    }
    fm_buf_free(&params);
}

static void run_type(struct gw_browser *browser, struct json_object *action) {
    const char *texts[] = {gw_browser_text(action, "selector")};
    gw_browser_evaluate(browser, find_to_type, texts, 1, on_found_to_type);
}

/* ---- wait ---- */

static void look_for(struct gw_browser *browser);

static void waited(struct gw_browser *browser) {
    gw_browser_say(browser, "%zu. wait: done\n", browser->step + 1);
    gw_browser_next(browser);
}

static void on_looked(void *context, struct json_object *value, const char *error) {
    struct gw_browser *browser = context;
    if (error &&
        *error == 't') { /* "the page's answer is an error": an invalid selector; navigations cause other errors */
        gw_browser_fail(browser, "%s", error);
    } else if (!error && json_object_get_boolean(value)) {
        waited(browser);
    } else {
        pause_now(browser, PAUSE_MS);
    }
}

static void look_for(struct gw_browser *browser) {
    const char *texts[] = {gw_browser_text(gw_browser_step(browser), "selector")};
    gw_browser_evaluate(browser, "(s)=>!!document.querySelector(s)", texts, 1, on_looked);
}

static void run_wait(struct gw_browser *browser, struct json_object *action) {
    if (*gw_browser_text(action, "selector")) {
        look_for(browser);
    } else {
        pause_now(browser, (uint64_t)json_object_get_int64(object_member(action, "ms")));
    }
}

static void late_wait(struct gw_browser *browser) {
    gw_browser_fail(browser, "no element matched the selector within %d s", GW_BROWSER_STEP_MS / 1000);
}

/* ---- text ---- */

static void on_text(void *context, struct json_object *value, const char *error) {
    struct gw_browser *browser = context;
    const char *fault = fault_of(value, error);
    if (fault) {
        gw_browser_fail(browser, "%s", fault);
        return;
    }
    const char *text = gw_browser_text(value, "text");
    int64_t length = json_object_get_int64(object_member(value, "length"));
    gw_browser_say(browser, "%zu. text of %.1500s:\n", browser->step + 1, gw_browser_text(value, "url"));
    gw_output_add(&browser->call->output, text, strlen(text));
    gw_browser_say(browser, "\n");
    if (length > strtoll(TEXT_MAX, NULL, 10)) {
        gw_browser_say(browser, "(The text has %" PRId64 " characters; the first " TEXT_MAX " were read.)\n", length);
    }
    gw_browser_next(browser);
}

static void run_text(struct gw_browser *browser, struct json_object *action) {
    const char *texts[] = {gw_browser_text(action, "selector")};
    gw_browser_evaluate(browser,
                        "(s)=>{const e=s?document.querySelector(s):document.body;"
                        "if(!e)return{fault:s?'no element matches the selector':'the page has no body'};"
                        "const t=e.innerText??e.textContent;"
                        "return{url:location.href,text:t.slice(0," TEXT_MAX ").toWellFormed(),length:t.length}}",
                        texts, 1, on_text);
}

/* ---- screenshot ---- */

static void on_picture(void *context, struct json_object *result, const char *error) {
    struct gw_browser *browser = context;
    const char *data = error ? "" : gw_browser_text(result, "data");
    size_t len = strlen(data);
    char name[32];
    if (error || !fm_base64_valid(data, len)) {
        gw_browser_fail(browser, "no picture: %s", error ? error : "what the browser sent is no base64");
        return;
    }
    snprintf(name, sizeof name, "screenshot-%zu.png", browser->step + 1);
    if (!gw_tool_call_attach(browser->call, "image/png", name, strdup(data), len)) {
        gw_browser_fail(browser, "a call has at most %u screenshots, of %u MiB together", GW_ATTACHMENTS_MAX,
                        GW_ATTACHMENT_BYTES >> 20);
        return;
    }
    gw_browser_say(browser, "%zu. screenshot: %s\n", browser->step + 1, name);
    gw_browser_next(browser);
}

static void run_screenshot(struct gw_browser *browser, struct json_object *action) {
    (void)action;
    gw_browser_ask(browser, "Page.captureScreenshot", "{\"format\":\"png\"}", on_picture);
}

/* ---- the table ---- */

static const struct gw_browser_action actions[] = {
    {"navigate", {"url"}, {NULL}, "Navigate to", "url", run_navigate, late_navigate},
    {"click", {"selector"}, {NULL}, "Click", "selector", run_click, late_settle},
    {"type", {"selector", "text"}, {"submit"}, "Type into", "selector", run_type, late_settle},
    {"wait", {NULL}, {"selector", "ms"}, "Wait for", "selector", run_wait, late_wait},
    {"text", {NULL}, {"selector"}, "Read the text of", "selector", run_text, NULL},
    {"screenshot", {NULL}, {NULL}, "Take a screenshot", NULL, run_screenshot, NULL},
};

const struct gw_browser_action *gw_browser_action_find(const char *name) {
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return &actions[i];
        }
    }
    return NULL;
}

/* ---- events and pauses ---- */

static void on_pause(uv_timer_t *timer) {
    struct gw_browser *browser = timer->data;
    struct json_object *action = gw_browser_step(browser);
    if (browser->settling) {
        browser->paused = true;
        if (!browser->loading) {
            page_settled(browser);
        }
    } else if (*gw_browser_text(action, "selector")) {
        look_for(browser);
    } else {
        waited(browser);
    }
}

static void pause_now(struct gw_browser *browser, uint64_t ms) {
    uv_timer_start(&browser->pause, on_pause, ms, 0);
}

static void on_dialog(struct gw_browser *browser, struct json_object *params) {
    bool leaving = strcmp(gw_browser_text(params, "type"), "beforeunload") == 0;
    if (!leaving) {
        gw_browser_say(browser, "(The page opened a dialog, which was closed: %.300s)\n",
                       gw_browser_text(params, "message"));
    }
    gw_browser_ask(browser, "Page.handleJavaScriptDialog", leaving ? "{\"accept\":true}" : "{\"accept\":false}", NULL);
}

/*
 * A second barrier besides the proxy: refuses addresses that are no web addresses. Pages can't open such addresses by
 * themselves anyway.
 */
static void on_frame(struct gw_browser *browser, struct json_object *params) {
    static const char *const schemes[] = {"http:", "https:", "about:", "data:", "blob:", "chrome-error:"};
    const char *url = gw_browser_text(object_member(params, "frame"), "url");
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0) {
            return;
        }
    }
    gw_browser_fail(browser, "the page went to an address that is not of the web: %.100s", url);
}

void gw_browser_event(struct gw_browser *browser, const char *method, struct json_object *params) {
    bool main_frame = strcmp(gw_browser_text(params, "frameId"), browser->frame) == 0;
    if (strcmp(method, "Page.lifecycleEvent") == 0 && main_frame &&
        strcmp(gw_browser_text(params, "name"), "load") == 0) {
        snprintf(browser->loaded, sizeof browser->loaded, "%s", gw_browser_text(params, "loaderId"));
        if (*browser->loader && strcmp(browser->loader, browser->loaded) == 0) {
            loaded(browser);
        }
    } else if (strcmp(method, "Page.frameStartedLoading") == 0 && main_frame) {
        browser->loading = true;
    } else if (strcmp(method, "Page.frameStoppedLoading") == 0 && main_frame) {
        browser->loading = false;
        if (browser->settling && browser->paused) {
            page_settled(browser);
        }
    } else if (strcmp(method, "Page.javascriptDialogOpening") == 0) {
        on_dialog(browser, params);
    } else if (strcmp(method, "Page.frameNavigated") == 0) {
        on_frame(browser, params);
    } else if (strcmp(method, "Inspector.targetCrashed") == 0 || strcmp(method, "Inspector.detached") == 0) {
        gw_browser_fail(browser, "the page crashed");
    }
}
