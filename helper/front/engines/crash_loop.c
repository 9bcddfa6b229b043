/* Counts the deaths of engines per model, and decides when an engine may be started again. */
#include "front/engines/crash_loop.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MODEL_SHOWN 200 /* bytes of a model's id in an error */

static int64_t backoff_ms(unsigned crashes) {
    int64_t backoff = FM_BACKOFF_FIRST_MS;
    for (unsigned i = FM_CRASHES_MAX; i < crashes && backoff < FM_BACKOFF_MAX_MS; i++) {
        backoff *= 2;
    }
    return backoff < FM_BACKOFF_MAX_MS ? backoff : FM_BACKOFF_MAX_MS;
}

/* The index of `model`; `count` if it is not in the list. */
static size_t find_crashes(const struct fm_crash_loop *loop, const char *model) {
    size_t at = 0;
    while (at < loop->count && strcmp(loop->models[at].model, model) != 0) {
        at++;
    }
    return at;
}

/* Takes the entry out of the list; the caller then owns its contents. */
static struct fm_crashes take_crashes(struct fm_crash_loop *loop, size_t at) {
    struct fm_crashes taken = loop->models[at];
    loop->count--;
    memmove(&loop->models[at], &loop->models[at + 1], (loop->count - at) * sizeof loop->models[0]);
    return taken;
}

static void forget_crashes(struct fm_crash_loop *loop, size_t at) {
    free(take_crashes(loop, at).model);
}

void fm_crash_loop_note(struct fm_crash_loop *loop, const char *model, const struct fm_error *error, int64_t now_ms) {
    size_t at = find_crashes(loop, model);
    struct fm_crashes crashes = {.count = 0};
    if (at < loop->count) {
        crashes = take_crashes(loop, at);
    } else {
        crashes.model = strdup(model);
    }
    if (!crashes.model) {
        return;
    }
    if (loop->count == FM_CRASH_MODELS_MAX) {
        forget_crashes(loop, loop->count - 1);
    }
    crashes.count++;
    crashes.last = *error;
    crashes.retry_ms = crashes.count < FM_CRASHES_MAX ? now_ms : now_ms + backoff_ms(crashes.count);
    memmove(&loop->models[1], &loop->models[0], loop->count * sizeof loop->models[0]);
    loop->models[0] = crashes;
    loop->count++;
}

void fm_crash_loop_reset(struct fm_crash_loop *loop, const char *model) {
    size_t at = find_crashes(loop, model);
    if (at < loop->count) {
        forget_crashes(loop, at);
    }
}

void fm_crash_loop_free(struct fm_crash_loop *loop) {
    while (loop->count > 0) {
        forget_crashes(loop, loop->count - 1);
    }
}

enum fm_code fm_crash_loop_check(const struct fm_crash_loop *loop, const char *model, int64_t now_ms,
                                 struct fm_error *error) {
    size_t at = find_crashes(loop, model);
    if (at == loop->count || now_ms >= loop->models[at].retry_ms) {
        return FM_OK;
    }
    const struct fm_crashes *crashes = &loop->models[at];
    return fm_fail(error, FM_UNAVAILABLE,
                   "the engine failed %u times in a row with the model %.*s and is tried again in %lld ms; "
                   "the last time: %s",
                   crashes->count, fm_utf8_shown(model, MODEL_SHOWN), model, (long long)(crashes->retry_ms - now_ms),
                   crashes->last.detail);
}
