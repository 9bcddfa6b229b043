/*
 * A desktop made of JSON, for tests. Its clock moves only in `wait`, which jumps to the next event; with "takes_time"
 * true, `wait` really takes that time.
 *
 *     {"monitors": [{"area": [0, 0, 1920, 1080], "primary": true}],
 *      "apps": [{"id": "xterm.desktop", "name": "XTerm", "class": "XTerm", "program": "xterm",
 *                "keywords": "shell prompt"}],
 *      "windows": [{"id": "w1", "class": "XTerm", "title": "sh", "pid": 7, "bounds": [0, 0, 640, 480],
 *                   "active": true}],
 *      "tabs": [{"id": "t1", "window": "1", "active": true, "title": "News", "url": "https://a.example/",
 *                "text": "..."}],
 *      "lacks": ["windows", "monitors", "apps", "tabs"],
 *      "rules": [{"on": "tab.close t3", "do": "refuse"},
 *                {"after_ms": 50, "do": {"tab.open": {"id": "t9", ...}}}]}
 *
 * The first window is the topmost one. Tabs of a window are in the order in which they are listed.
 *
 * A rule's `on` is an action as in the log below, or the beginning of an action up to a space. `do` is "refuse" (the
 * action succeeds and has no effect), "fail" (the action fails with UNAVAILABLE), or an object: what a user does just
 * before the action. With `once` true, the rule is used for one action only. What a user can do: tab.open {a tab},
 * tab.close ID, tab.move {"id", "before": ID or null}, tab.go {"id", "url"} (the tab shows another page), window.open
 * {a window}, window.close ID.
 *
 * "log" names a file to which the log is appended. An application that is launched has a window after 100 ms.
 */
#ifndef SY_FAKE_H
#define SY_FAKE_H

#include "desktop/backend.h"

struct fm_buf;
struct json_object;

/*
 * Makes a fake desktop from `description`, which is borrowed. FM_INVALID_REQUEST says what is wrong in it. On success
 * the caller frees `desktop` by desktop->backend->free(desktop->self).
 */
FM_MUST_USE enum fm_code sy_fake_new(struct json_object *description, struct sy_desktop *desktop,
                                     struct fm_error *error);

/*
 * The log: all actions so far, one in each line. Valid until the next action. Lines are "focus w1",
 * "place w1 0 0 640 480", "close w1", "launch xterm.desktop", "tab.activate t1", "tab.open https://a.example/",
 * "tab.close t1", "tab.text t1".
 */
const struct fm_buf *sy_fake_log(const struct sy_desktop *desktop);

/* Makes `wait` fail with FM_CANCELLED at this time of its clock; -1: never. */
void sy_fake_cancel_at(const struct sy_desktop *desktop, int64_t ms);

/* Makes `wait` fail with FM_CANCELLED while `fd` is readable. */
void sy_fake_cancel_by(const struct sy_desktop *desktop, int fd);

#endif
