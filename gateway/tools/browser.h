/* The internal state of a call of the tool browser, which its files share. The loop's thread. */
#ifndef GW_TOOLS_BROWSER_H
#define GW_TOOLS_BROWSER_H

#include "tools/call.h"
#include "protocol/cdp.h"
#include "tools/proxy.h"

#define GW_BROWSER_ID_MAX      80u
#define GW_BROWSER_STEP_MS     30000 /* for one action */
#define GW_BROWSER_ACTIONS_MAX 20u   /* of a call: maxItems of the schema */

struct json_object;

struct gw_browser {
    struct gw_tool_call *call;
    struct gw_process *process; /* NULL: it has ended, or never ran */
    struct gw_proxy *proxy;
    struct fm_cdp cdp;
    struct gw_output noise; /* what Chromium prints, for the error if it does not start */
    uv_timer_t limit;       /* the time limit of the action */
    uv_timer_t pause;       /* between two checks of the page */
    char session[GW_BROWSER_ID_MAX];
    char frame[GW_BROWSER_ID_MAX];  /* the page's main frame */
    char loader[GW_BROWSER_ID_MAX]; /* the id of the load that a navigate waits for; "": none */
    char loaded[GW_BROWSER_ID_MAX]; /* the id of the load that was completed last */
    size_t step;                    /* the action that runs */
    bool loading;                   /* the main frame */
    bool settling;                  /* a click or key may have begun a navigation, which is waited for */
    bool paused;
    bool finished; /* all actions are done */
    bool failed;
    char failure[1000];
    char refusal[300]; /* the last connection that the proxy refused during this action */
    size_t refusals;
    fm_cdp_answered *then; /* the callback that gets the value of an expression */
    struct fm_buf expression;
    struct gw_process_end end;
    unsigned open; /* how many of the timers and the proxy are still open while the browser closes */
};

/* An action of the table in browser_actions.c. */
struct gw_browser_action {
    const char *name;
    const char *needs[2]; /* members, besides "action" */
    const char *takes[2];
    const char *verb;  /* for the summary: "Navigate to" */
    const char *shown; /* the member that follows the verb; NULL: none */
    void (*run)(struct gw_browser *browser, struct json_object *action);
    void (*late)(struct gw_browser *browser); /* called at the action's time limit; NULL: the limit is a failure */
};

/* The row of the action `name`; NULL: there is no such action. */
const struct gw_browser_action *gw_browser_action_find(const char *name);

/* Return the object of an action, and the text of a member ("" if the action has no such member). */
struct json_object *gw_browser_step(const struct gw_browser *browser);
const char *gw_browser_text(struct json_object *action, const char *member);

/* Finds the ports of the pages of this machine that the actions of `input` open. Returns how many there are. Pure. */
size_t gw_browser_own_ports(struct json_object *input, unsigned ports[GW_BROWSER_ACTIONS_MAX]);

/* The current action is done: begins the next one, or the end. */
void gw_browser_next(struct gw_browser *browser);

/* The current action has failed: lets the call fail. */
void gw_browser_fail(struct gw_browser *browser, const char *fmt, ...) FM_PRINTF(2, 3);

/* Adds one or more lines to the call's output. */
void gw_browser_say(struct gw_browser *browser, const char *fmt, ...) FM_PRINTF(2, 3);

/* Calls a method on the page; a call that can't be written fails the action. */
void gw_browser_ask(struct gw_browser *browser, const char *method, const char *params, fm_cdp_answered *answered);

/*
 * Evaluates `function` (JavaScript) with the texts as arguments, in a world that the page's own scripts can't reach.
 * `then` gets the value, or an error if it threw.
 */
void gw_browser_evaluate(struct gw_browser *browser, const char *function, const char *const *texts, size_t count,
                         fm_cdp_answered *then);

/* Begins the life of a browser (browser_run.c). */
enum fm_code gw_browser_execute(struct gw_tool_call *call, struct fm_error *error);
void gw_browser_abort(struct gw_tool_call *call);

/* Handles an event of the page, for browser_run.c. */
void gw_browser_event(struct gw_browser *browser, const char *method, struct json_object *params);

#endif
