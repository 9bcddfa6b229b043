/*
 * Tabs by CDP. To ask a page something, a function makes a visit: attach to the tab, follow to its page, ask, detach.
 * A visit takes its next step when bytes arrive. It ends within its time limit, whatever the page does; then nothing
 * stays attached. An id that is not one of the browser's present tabs is FM_NOT_FOUND, never another tab.
 */
#include "backends/cdp.h"
#include "backends/cdp_link.h"
#include "backends/cdp_scripts.h"
#include "base/clock.h"
#include "base/platform.h"
#include "desktop/url.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ANSWER_MS   2000 /* ms until the browser itself must have answered */
#define OPENED_MS   40   /* how long a list waits for answers of pages */
#define CLOSE_MS    500  /* until a page has been asked to close */
#define VISIT_MS    3000 /* until a visit ends, whatever the page does */
#define TRIES_MAX   5    /* visits to a tab whose page goes away during the visit */
#define POLL_MS     50   /* between two looks, because some changes cause no event */
#define AT_ONCE     100u /* calls at the same time, and also visits */
#define TARGETS_MAX 10000u
#define PARAMS_MAX  (64u * 1024u)

/* A call to the browser, and its answer. */
struct answer {
    int id;
    bool done;
    bool failed;
    char reason[160];
    struct json_object *result; /* owned; NULL: there is none, or the call failed */
};

enum want { WANT_OPENED, WANT_TEXT, WANT_CLOSE };

enum step { ATTACHING, FOLLOWING, ENTERING, ASKING, CLOSING, OVER };

struct visit {
    struct visit *next;
    enum want want;
    enum step step;
    bool held; /* a function waits for this visit, and then releases it */
    int id;    /* the id of the call whose answer leads to the next step */
    int64_t until_ms;
    char tab[SY_ID_MAX];
    char session[SY_ID_MAX]; /* the session with the tab; "": none */
    char page[SY_ID_MAX];    /* the session with the tab's page; "": none yet */
    char frame[SY_ID_MAX];   /* the page's main frame */
    bool followed;           /* the browser has reported all targets below the tab */
    enum fm_code code;       /* the outcome, once the visit is over */
    char *text;              /* owned */
};

/* What is remembered about a tab. */
struct known {
    char id[SY_ID_MAX];
    char *url;
    char *title;
    double opened_ms;
    bool asked;        /* the tab's page was asked since the tab has this URL and title */
    unsigned failures; /* failed visits since then: the page may be loading */
    bool listed;
};

struct chrome {
    char socket[512];
    char **profiles;
    struct sy_cdp_places places;
    struct sy_link link;
    int epoll;              /* readable when the link is */
    struct answer *answers; /* the answers that are awaited; NULL: none */
    size_t answer_count;
    struct visit *visits;
    struct known *known;
    size_t known_count;
};

/* ---- small things ---- */

static const char *member_text(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    bool there = json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, name, &value) &&
                 json_object_is_type(value, json_type_string);
    return there ? json_object_get_string(value) : "";
}

static struct json_object *object_member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    return json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, name, &value) ? value
                                                                                                            : NULL;
}

/* Whether an id can be written into JSON without escapes. */
static bool is_id(const char *id) {
    size_t len = strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_");
    return len > 0 && !id[len] && len < SY_ID_MAX;
}

static enum fm_code no_such_tab(struct fm_error *error) {
    return fm_fail(error, FM_NOT_FOUND, "there is no such tab");
}

/* ---- visits ---- */

static void on_answer(void *context, struct json_object *result, const char *reason);

static struct known *find_known(struct chrome *chrome, const char *id) {
    for (size_t i = 0; i < chrome->known_count; i++) {
        if (strcmp(chrome->known[i].id, id) == 0) {
            return &chrome->known[i];
        }
    }
    return NULL;
}

static void over(struct chrome *chrome, struct visit *visit, enum fm_code code) {
    char params[SY_ID_MAX + 32];
    if (visit->session[0]) {
        snprintf(params, sizeof params, "{\"sessionId\":\"%s\"}", visit->session);
        visit->session[0] = '\0';
        if (!fm_cdp_call(&chrome->link.cdp, NULL, "Target.detachFromTarget", params, NULL)) {
            code = FM_UNAVAILABLE; /* the link is broken; its next use reports that */
        }
    }
    struct known *known = visit->want == WANT_OPENED ? find_known(chrome, visit->tab) : NULL;
    if (known && code != FM_OK && code != FM_TIMEOUT) {
        known->asked = ++known->failures >= TRIES_MAX;
    }
    fm_cdp_forget(&chrome->link.cdp, visit->id);
    visit->step = OVER;
    visit->id = 0;
    visit->code = code;
}

static void next_step(struct chrome *chrome, struct visit *visit, enum step step, const char *session,
                      const char *method, const char *params) {
    visit->step = step;
    if (fm_cdp_call(&chrome->link.cdp, session, method, params, on_answer)) {
        visit->id = chrome->link.cdp.last_id;
    } else {
        over(chrome, visit, FM_UNAVAILABLE);
    }
}

static struct visit *begin_visit(struct chrome *chrome, const char *tab, enum want want, int64_t until_ms) {
    char params[SY_ID_MAX + 64];
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit) {
        return NULL;
    }
    visit->want = want;
    visit->until_ms = until_ms;
    snprintf(visit->tab, sizeof visit->tab, "%s", tab);
    visit->next = chrome->visits;
    chrome->visits = visit;
    snprintf(params, sizeof params, "{\"targetId\":\"%s\",\"flatten\":true}", tab);
    next_step(chrome, visit, ATTACHING, NULL, "Target.attachToTarget", params);
    return visit;
}

/* Asks the page, once it is known and the browser has reported all targets. */
static void enter(struct chrome *chrome, struct visit *visit) {
    char params[SY_ID_MAX + 64];
    if (!visit->followed || !visit->page[0]) {
        return;
    }
    if (visit->want == WANT_CLOSE) {
        next_step(chrome, visit, CLOSING, visit->page, "Page.close", "{}");
    } else {
        snprintf(params, sizeof params, "{\"frameId\":\"%s\",\"worldName\":\"" SY_CDP_WORLD "\"}", visit->frame);
        next_step(chrome, visit, ENTERING, visit->page, "Page.createIsolatedWorld", params);
    }
}

static void ask_page(struct chrome *chrome, struct visit *visit, struct json_object *result) {
    struct fm_buf params;
    if (!json_object_is_type(object_member(result, "executionContextId"), json_type_int)) {
        over(chrome, visit, FM_UNAVAILABLE);
        return;
    }
    fm_buf_init(&params, PARAMS_MAX);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "expression", visit->want == WANT_TEXT ? SY_CDP_TEXT : SY_CDP_OPENED);
    fm_json_key_int(&w, "contextId", json_object_get_int64(object_member(result, "executionContextId")));
    fm_json_key_bool(&w, "returnByValue", true);
    fm_json_object_end(&w);
    fm_buf_append_char(&params, '\0');
    if (params.failed) {
        over(chrome, visit, FM_INTERNAL);
    } else {
        next_step(chrome, visit, ASKING, visit->page, "Runtime.evaluate", params.data);
    }
    fm_buf_free(&params);
}

static void take_value(struct chrome *chrome, struct visit *visit, struct json_object *result) {
    struct json_object *value = object_member(object_member(result, "result"), "value");
    if (visit->want == WANT_TEXT) {
        visit->text = json_object_is_type(value, json_type_string) ? strdup(json_object_get_string(value)) : NULL;
    }
    struct known *known = visit->want == WANT_OPENED ? find_known(chrome, visit->tab) : NULL;
    if (known) {
        known->opened_ms = json_object_get_double(value);
    }
    over(chrome, visit, FM_OK);
}

static void advance(struct chrome *chrome, struct visit *visit, struct json_object *result, const char *reason) {
    if (reason) {
        over(chrome, visit, visit->step == CLOSING ? FM_OK : FM_NOT_FOUND);
        return;
    }
    switch (visit->step) {
    case ATTACHING:
        if (!is_id(member_text(result, "sessionId"))) {
            over(chrome, visit, FM_UNAVAILABLE);
            return;
        }
        snprintf(visit->session, sizeof visit->session, "%s", member_text(result, "sessionId"));
        next_step(chrome, visit, FOLLOWING, visit->session, "Target.setAutoAttach",
                  "{\"autoAttach\":true,\"waitForDebuggerOnStart\":false,\"flatten\":true}");
        return;
    case FOLLOWING:
        visit->followed = true;
        enter(chrome, visit);
        return;
    case ENTERING: ask_page(chrome, visit, result); return;
    case ASKING: take_value(chrome, visit, result); return;
    case CLOSING:
    case OVER: over(chrome, visit, FM_OK);
    }
}

/* Ends visits whose time is up. Frees visits that are over, unless a function still holds them. */
static void sweep(struct chrome *chrome) {
    for (struct visit **at = &chrome->visits; *at;) {
        struct visit *visit = *at;
        if (visit->step != OVER && fm_now_ms() >= visit->until_ms) {
            over(chrome, visit, FM_TIMEOUT);
        }
        if (visit->step == OVER && !visit->held) {
            *at = visit->next;
            free(visit->text);
            free(visit);
        } else {
            at = &visit->next;
        }
    }
}

/* ---- messages of the browser ---- */

static void on_answer(void *context, struct json_object *result, const char *reason) {
    struct sy_link *link = context;
    struct chrome *chrome = link->context;
    int id = link->cdp.answering;
    for (size_t i = 0; i < chrome->answer_count; i++) {
        struct answer *at = &chrome->answers[i];
        if (at->id == id) {
            at->done = true;
            at->failed = reason != NULL;
            at->result = reason ? NULL : json_object_get(result);
            snprintf(at->reason, sizeof at->reason, "%s", reason ? reason : "");
            return;
        }
    }
    for (struct visit *visit = chrome->visits; visit; visit = visit->next) {
        if (visit->id == id) {
            visit->id = 0;
            advance(chrome, visit, result, reason);
            return;
        }
    }
}

static void on_event(void *context, const char *session, const char *method, struct json_object *params) {
    struct chrome *chrome = context;
    const char *about = member_text(params, "sessionId");
    struct json_object *target = object_member(params, "targetInfo");
    for (struct visit *visit = chrome->visits; visit; visit = visit->next) {
        if (visit->step == OVER || !visit->session[0]) {
            continue;
        }
        if (strcmp(method, "Target.detachedFromTarget") == 0 &&
            (strcmp(about, visit->session) == 0 || (visit->page[0] && strcmp(about, visit->page) == 0))) {
            if (strcmp(about, visit->session) == 0) {
                visit->session[0] = '\0';
            }
            over(chrome, visit, visit->step == CLOSING ? FM_OK : FM_NOT_FOUND);
        } else if (strcmp(method, "Target.attachedToTarget") == 0 && strcmp(session, visit->session) == 0 &&
                   !visit->page[0] && strcmp(member_text(target, "type"), "page") == 0 &&
                   !member_text(target, "subtype")[0] && is_id(about) && is_id(member_text(target, "targetId"))) {
            snprintf(visit->page, sizeof visit->page, "%s", about);
            snprintf(visit->frame, sizeof visit->frame, "%s", member_text(target, "targetId"));
            enter(chrome, visit);
        }
    }
}

/* ---- the link ---- */

static void drop_link(struct chrome *chrome) {
    if (chrome->link.fd >= 0) {
        (void)epoll_ctl(chrome->epoll, EPOLL_CTL_DEL, chrome->link.fd, NULL);
        sy_link_close(&chrome->link);
    }
    for (struct visit *visit = chrome->visits; visit; visit = visit->next) {
        visit->session[0] = '\0';
        if (visit->step != OVER) {
            over(chrome, visit, FM_UNAVAILABLE);
        }
    }
    sweep(chrome);
}

static enum fm_code lost(struct chrome *chrome, struct fm_error *error) {
    drop_link(chrome);
    return fm_fail(error, FM_UNAVAILABLE, "the connection to the browser ended, or what came is no message of it");
}

static enum fm_code pump(struct chrome *chrome, int64_t until_ms, struct fm_error *error) {
    if (!sy_link_pump(&chrome->link, until_ms)) {
        return lost(chrome, error);
    }
    sweep(chrome);
    return FM_OK;
}

/* Takes what arrived between two calls: events, or the end of the browser. (A new browser may run by now.) */
static void catch_up(struct chrome *chrome) {
    struct fm_error ignored;
    int64_t until_ms = fm_now_ms() + ANSWER_MS;
    struct fm_waited input = {.fd = chrome->link.fd, .input = true};
    while (chrome->link.fd >= 0 && fm_now_ms() < until_ms && fm_wait(&input, 1, 0) > 0) {
        (void)!pump(chrome, 0, &ignored);
    }
}

static enum fm_code connect_link(struct chrome *chrome, struct fm_error *error) {
    static const char discover[] = "{\"discover\":true,\"filter\":" SY_CDP_TABS "}";
    catch_up(chrome);
    if (chrome->link.fd >= 0) {
        return FM_OK;
    }
    enum fm_code code = sy_link_open(&chrome->link, &chrome->places, error);
    if (code != FM_OK) {
        return code;
    }
    struct epoll_event interest = {.events = EPOLLIN};
    if (epoll_ctl(chrome->epoll, EPOLL_CTL_ADD, chrome->link.fd, &interest) != 0 ||
        !fm_cdp_call(&chrome->link.cdp, NULL, "Target.setDiscoverTargets", discover, NULL)) {
        return lost(chrome, error);
    }
    return FM_OK;
}

/* ---- asking the browser ---- */

static enum fm_code ask_browser(struct chrome *chrome, struct answer *answer, const char *method, const char *params,
                                struct fm_error *error) {
    *answer = (struct answer){.id = 0};
    if (!fm_cdp_call(&chrome->link.cdp, NULL, method, params, on_answer)) {
        return lost(chrome, error);
    }
    answer->id = chrome->link.cdp.last_id;
    return FM_OK;
}

/* Waits for the answers. Later answers are ignored, after a failure too. The caller releases the results. */
static enum fm_code await(struct chrome *chrome, struct answer *answers, size_t count, struct fm_error *error) {
    int64_t until_ms = fm_now_ms() + ANSWER_MS;
    enum fm_code code = FM_OK;
    chrome->answers = answers;
    chrome->answer_count = count;
    for (size_t i = 0; i < count && code == FM_OK;) {
        if (answers[i].done) {
            i++;
        } else if (fm_now_ms() >= until_ms) {
            code = fm_fail(error, FM_UNAVAILABLE,
                           "the browser does not answer; if it asks whether debugging is allowed, answer it");
        } else {
            code = pump(chrome, until_ms, error);
        }
    }
    for (size_t i = 0; i < count; i++) {
        fm_cdp_forget(&chrome->link.cdp, answers[i].id);
    }
    chrome->answers = NULL;
    chrome->answer_count = 0;
    return code;
}

/*
 * Makes one call of the browser, and waits. FM_NOT_FOUND: the browser refused the call. The caller releases `*result`.
 */
static enum fm_code ask_one(struct chrome *chrome, const char *method, const char *params, struct json_object **result,
                            struct fm_error *error) {
    struct answer answer;
    enum fm_code code = connect_link(chrome, error);
    code = code ? code : ask_browser(chrome, &answer, method, params, error);
    if (code != FM_OK) {
        return code;
    }
    code = await(chrome, &answer, 1, error);
    if (code == FM_OK && answer.failed) {
        code = fm_fail(error, FM_NOT_FOUND, "the browser refused %s: %s", method, answer.reason);
    }
    if (code == FM_OK && result) {
        *result = answer.result;
    } else {
        json_object_put(answer.result);
    }
    return code;
}

/* ---- tabs ---- */

static struct known *know(struct chrome *chrome, const char *id) {
    struct known *known = find_known(chrome, id);
    if (known) {
        return known;
    }
    struct known *more = realloc(chrome->known, (chrome->known_count + 1) * sizeof *more);
    if (!more) {
        return NULL;
    }
    chrome->known = more;
    more += chrome->known_count++;
    *more = (struct known){.url = NULL};
    snprintf(more->id, sizeof more->id, "%s", id);
    return more;
}

static void forget_known(struct known *known) {
    free(known->url);
    free(known->title);
}

static void forget_closed(struct chrome *chrome) {
    size_t kept = 0;
    for (size_t i = 0; i < chrome->known_count; i++) {
        if (chrome->known[i].listed) {
            chrome->known[kept++] = chrome->known[i];
        } else {
            forget_known(&chrome->known[i]);
        }
    }
    chrome->known_count = kept;
}

/* Asks pages when they were loaded, if the tab is new or its URL or title has changed. A late answer counts for a later
 * list. */
static enum fm_code ask_pages(struct chrome *chrome, const struct sy_tabs *tabs, struct fm_error *error) {
    int64_t until_ms = fm_now_ms() + OPENED_MS;
    size_t visits = 0;
    for (size_t i = 0; i < chrome->known_count; i++) {
        chrome->known[i].listed = false;
    }
    for (struct visit *visit = chrome->visits; visit; visit = visit->next) {
        visits++;
    }
    for (size_t i = 0; i < tabs->count; i++) {
        const struct sy_tab *tab = &tabs->at[i];
        struct known *known = know(chrome, tab->id);
        if (!known) {
            return fm_fail_no_memory(error);
        }
        known->listed = true;
        if (!known->url || strcmp(known->url, tab->url) != 0 || strcmp(known->title, tab->title) != 0) {
            forget_known(known);
            known->url = strdup(tab->url);
            known->title = strdup(tab->title);
            known->asked = false;
            known->failures = 0;
            if (!known->url || !known->title) {
                return fm_fail_no_memory(error);
            }
        }
        if (!known->asked && visits < AT_ONCE) {
            known->asked = true;
            visits++;
            if (!begin_visit(chrome, tab->id, WANT_OPENED, fm_now_ms() + VISIT_MS)) {
                return fm_fail_no_memory(error);
            }
            until_ms = fm_now_ms() + OPENED_MS;
        }
    }
    forget_closed(chrome);
    enum fm_code code = FM_OK;
    for (bool asking = true; asking && code == FM_OK && fm_now_ms() < until_ms;) {
        asking = false;
        for (struct visit *visit = chrome->visits; visit; visit = visit->next) {
            asking |= visit->want == WANT_OPENED && visit->step != OVER &&
                      visit->until_ms > fm_now_ms() + VISIT_MS - OPENED_MS - 10; /* begun for this list */
        }
        code = asking ? pump(chrome, until_ms, error) : FM_OK;
    }
    return code;
}

static bool read_tab(struct json_object *target, struct sy_tab *tab) {
    struct json_object *place = object_member(target, "embedderData");
    if (strcmp(member_text(target, "type"), "tab") != 0 || !object_member(place, "tabStripIndex") ||
        !is_id(member_text(target, "targetId"))) {
        return false;
    }
    *tab = (struct sy_tab){.position = json_object_get_int(object_member(place, "tabStripIndex")),
                           .active = json_object_get_boolean(object_member(place, "tabActive")),
                           .title = strdup(member_text(target, "title")),
                           .url = strdup(member_text(target, "url"))};
    snprintf(tab->id, sizeof tab->id, "%s", member_text(target, "targetId"));
    return true;
}

/* Asks for the windows of `count` tabs. A tab that was closed meanwhile has none, and keeps "" as its window. */
static enum fm_code find_windows(struct chrome *chrome, struct sy_tab *tabs, size_t count, struct fm_error *error) {
    struct answer answers[AT_ONCE];
    char params[SY_ID_MAX + 32];
    size_t asked = 0;
    enum fm_code code = FM_OK;
    while (asked < count && code == FM_OK) {
        snprintf(params, sizeof params, "{\"targetId\":\"%s\"}", tabs[asked].id);
        code = ask_browser(chrome, &answers[asked], "Browser.getWindowForTarget", params, error);
        asked += code == FM_OK;
    }
    if (code == FM_OK) {
        code = await(chrome, answers, asked, error);
    }
    for (size_t i = 0; i < asked; i++) {
        struct json_object *window = object_member(answers[i].result, "windowId");
        if (window) {
            snprintf(tabs[i].window_id, sizeof tabs[i].window_id, "%lld", (long long)json_object_get_int64(window));
        }
        json_object_put(answers[i].result);
    }
    return code;
}

static enum fm_code read_tabs(struct chrome *chrome, struct json_object *targets, struct sy_tabs *tabs,
                              struct fm_error *error) {
    size_t count = json_object_is_type(targets, json_type_array) ? json_object_array_length(targets) : 0;
    count = count < TARGETS_MAX ? count : TARGETS_MAX;
    tabs->at = calloc(count + 1, sizeof *tabs->at);
    bool complete = tabs->at != NULL;
    for (size_t i = 0; complete && i < count; i++) {
        if (read_tab(json_object_array_get_idx(targets, i), &tabs->at[tabs->count])) {
            complete = tabs->at[tabs->count].title && tabs->at[tabs->count].url;
            tabs->count++;
        }
    }
    if (!complete) {
        return fm_fail_no_memory(error);
    }
    if (count > 0 && tabs->count == 0) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the browser does not say where its tabs are: it has to be Chrome 150, or later");
    }
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < tabs->count && code == FM_OK; i += AT_ONCE) {
        code = find_windows(chrome, tabs->at + i, tabs->count - i < AT_ONCE ? tabs->count - i : AT_ONCE, error);
    }
    size_t kept = 0;
    for (size_t i = 0; i < tabs->count; i++) {
        if (tabs->at[i].window_id[0]) {
            tabs->at[kept++] = tabs->at[i];
        } else {
            free(tabs->at[i].title);
            free(tabs->at[i].url);
        }
    }
    tabs->count = kept;
    return code;
}

static enum fm_code list_tabs(void *self, struct sy_tabs *tabs, struct fm_error *error) {
    struct chrome *chrome = self;
    struct json_object *result = NULL;
    *tabs = (struct sy_tabs){.count = 0};
    enum fm_code code = ask_one(chrome, "Target.getTargets", "{\"filter\":" SY_CDP_TABS "}", &result, error);
    code = code ? code : read_tabs(chrome, object_member(result, "targetInfos"), tabs, error);
    code = code ? code : ask_pages(chrome, tabs, error);
    for (size_t i = 0; code == FM_OK && i < tabs->count; i++) {
        const struct known *known = know(chrome, tabs->at[i].id);
        tabs->at[i].opened_ms = known ? known->opened_ms : 0;
    }
    json_object_put(result);
    if (code != FM_OK) {
        sy_tabs_free(tabs);
    }
    return code == FM_NOT_FOUND ? fm_fail(error, FM_UNAVAILABLE, "the browser does not list its tabs") : code;
}

static enum fm_code activate(void *self, const char *tab, struct fm_error *error) {
    char params[SY_ID_MAX + 32];
    if (!is_id(tab)) {
        return no_such_tab(error);
    }
    snprintf(params, sizeof params, "{\"targetId\":\"%s\"}", tab);
    return ask_one(self, "Target.activateTarget", params, NULL, error);
}

static enum fm_code open_tab(void *self, const char *url, char tab[SY_ID_MAX], struct fm_error *error) {
    struct json_object *result = NULL;
    struct fm_buf params;
    if (!sy_url_is_web(url)) {
        return fm_fail(error, FM_INVALID_REQUEST, "only http and https are opened");
    }
    fm_buf_init(&params, PARAMS_MAX);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "url", url);
    fm_json_key_bool(&w, "forTab", true);
    fm_json_object_end(&w);
    fm_buf_append_char(&params, '\0');
    enum fm_code code =
        params.failed ? fm_fail_no_memory(error) : ask_one(self, "Target.createTarget", params.data, &result, error);
    fm_buf_free(&params);
    if (code == FM_OK && !is_id(member_text(result, "targetId"))) {
        code = fm_fail(error, FM_UNAVAILABLE, "the browser opened no tab");
    }
    if (code == FM_OK) {
        snprintf(tab, SY_ID_MAX, "%s", member_text(result, "targetId"));
    }
    json_object_put(result);
    return code == FM_NOT_FOUND ? fm_fail(error, FM_UNAVAILABLE, "the browser opened no tab") : code;
}

/*
 * Visits a tab, and waits for the outcome until `until_ms`. At that time the visit ends, but with `text` NULL it goes
 * on.
 */
static enum fm_code visit_tab(struct chrome *chrome, const char *tab, enum want want, int64_t until_ms, char **text,
                              struct fm_error *error) {
    if (!is_id(tab)) {
        return no_such_tab(error);
    }
    enum fm_code code = connect_link(chrome, error);
    struct visit *visit = code == FM_OK ? begin_visit(chrome, tab, want, fm_now_ms() + VISIT_MS) : NULL;
    if (!visit) {
        return code ? code : fm_fail_no_memory(error);
    }
    visit->held = true;
    while (code == FM_OK && visit->step != OVER && fm_now_ms() < until_ms) {
        code = pump(chrome, until_ms, error);
    }
    enum fm_code outcome = visit->step == OVER ? visit->code : FM_TIMEOUT;
    if (text) {
        *text = visit->text;
        visit->text = NULL;
        if (visit->step != OVER) {
            over(chrome, visit, FM_TIMEOUT);
        }
    }
    visit->held = false;
    sweep(chrome);
    if (code != FM_OK || outcome == FM_OK) {
        return code;
    }
    return outcome == FM_NOT_FOUND ? no_such_tab(error)
                                   : fm_fail(error, outcome, "the tab does not answer in its time");
}

static enum fm_code close_tab(void *self, const char *tab, struct fm_error *error) {
    enum fm_code code = visit_tab(self, tab, WANT_CLOSE, fm_now_ms() + CLOSE_MS, NULL, error);
    return code == FM_TIMEOUT ? FM_OK : code; /* the page is slow, or asks the user: the tab stays in the list */
}

static enum fm_code text(void *self, const char *tab, int64_t until_ms, char **out, struct fm_error *error) {
    *out = NULL;
    enum fm_code code = visit_tab(self, tab, WANT_TEXT, until_ms, out, error);
    return code == FM_TIMEOUT ? FM_OK : code;
}

/* ---- the other functions of a backend ---- */

static int64_t chrome_now(void *self) {
    (void)self;
    return fm_now_ms();
}

static enum fm_code wait_for_change(void *self, int64_t until_ms, struct fm_error *error) {
    struct chrome *chrome = self;
    int64_t soon_ms = fm_now_ms() + POLL_MS;
    (void)error;
    soon_ms = soon_ms < until_ms ? soon_ms : until_ms;
    struct fm_waited input = {.fd = chrome->epoll, .input = true};
    int64_t left = soon_ms - fm_now_ms();
    (void)fm_wait(&input, 1, left > 0 ? (int)left : 0);
    return FM_OK;
}

static int chrome_descriptor(void *self) {
    return ((struct chrome *)self)->epoll;
}

static void free_chrome(void *self) {
    struct chrome *chrome = self;
    drop_link(chrome);
    for (size_t i = 0; i < chrome->known_count; i++) {
        forget_known(&chrome->known[i]);
    }
    for (size_t i = 0; chrome->profiles && chrome->profiles[i]; i++) {
        free(chrome->profiles[i]);
    }
    free(chrome->known);
    free(chrome->profiles);
    if (chrome->epoll >= 0) {
        fm_close(chrome->epoll);
    }
    free(chrome);
}

/* ---- making a backend ---- */

/* Known browsers: where each has its profile, below $XDG_CONFIG_HOME or ~/.config. */
static const char *const browsers[] = {"google-chrome", "chromium", "BraveSoftware/Brave-Browser", "microsoft-edge"};

#define BROWSERS (sizeof browsers / sizeof browsers[0])

static bool default_profiles(struct chrome *chrome) {
    char path[4096];
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    bool own = config && config[0] == '/';
    chrome->profiles = calloc(BROWSERS + 1, sizeof *chrome->profiles);
    for (size_t i = 0; chrome->profiles && (own || home) && i < BROWSERS; i++) {
        snprintf(path, sizeof path, "%s%s/%s", own ? config : home, own ? "" : "/.config", browsers[i]);
        chrome->profiles[i] = strdup(path);
        if (!chrome->profiles[i]) {
            return false;
        }
    }
    return chrome->profiles != NULL;
}

static bool copy_places(struct chrome *chrome, const struct sy_cdp_places *places) {
    size_t count = 0;
    if (!places) {
        chrome->places.socket = sy_cdp_socket_path(chrome->socket, sizeof chrome->socket) ? chrome->socket : NULL;
        return default_profiles(chrome);
    }
    while (places->profiles && places->profiles[count]) {
        count++;
    }
    chrome->profiles = calloc(count + 1, sizeof *chrome->profiles);
    for (size_t i = 0; chrome->profiles && i < count; i++) {
        chrome->profiles[i] = strdup(places->profiles[i]);
        if (!chrome->profiles[i]) {
            return false;
        }
    }
    if (places->socket && strlen(places->socket) < sizeof chrome->socket) {
        memcpy(chrome->socket, places->socket, strlen(places->socket) + 1);
        chrome->places.socket = chrome->socket;
    }
    return chrome->profiles != NULL;
}

enum fm_code sy_cdp_new(const struct sy_cdp_places *places, struct sy_desktop *desktop, struct fm_error *error) {
    static const struct sy_backend backend = {.name = "chrome",
                                              .now = chrome_now,
                                              .wait = wait_for_change,
                                              .descriptor = chrome_descriptor,
                                              .tabs = list_tabs,
                                              .activate = activate,
                                              .open = open_tab,
                                              .close_tab = close_tab,
                                              .text = text,
                                              .free = free_chrome};
    struct chrome *chrome = calloc(1, sizeof *chrome);
    if (!chrome) {
        return fm_fail_no_memory(error);
    }
    chrome->link = (struct sy_link){.fd = -1, .context = chrome, .event = on_event};
    chrome->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (chrome->epoll < 0 || !copy_places(chrome, places)) {
        free_chrome(chrome);
        return fm_fail_no_memory(error);
    }
    chrome->places.profiles = (const char *const *)chrome->profiles;
    *desktop = (struct sy_desktop){&backend, chrome};
    return FM_OK;
}
