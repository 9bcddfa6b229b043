#include "front/crash_loop.h"

#include <stdlib.h>
#include <string.h>

static int64_t backoff_ms(unsigned crashes) {
    int64_t backoff = FM_BACKOFF_FIRST_MS;
    for (unsigned i = FM_CRASHES_MAX; i < crashes && backoff < FM_BACKOFF_MAX_MS; i++) {
        backoff *= 2;
    }
    return backoff < FM_BACKOFF_MAX_MS ? backoff : FM_BACKOFF_MAX_MS;
}

void fm_crash_loop_note(struct fm_crash_loop *loop, const char *model, const struct fm_error *error, int64_t now_ms) {
    if (!loop->model || strcmp(loop->model, model) != 0) {
        fm_crash_loop_reset(loop);
        loop->model = strdup(model);
    }
    if (!loop->model) {
        return;
    }
    loop->crashes++;
    loop->last = *error;
    loop->retry_ms = loop->crashes < FM_CRASHES_MAX ? now_ms : now_ms + backoff_ms(loop->crashes);
}

void fm_crash_loop_reset(struct fm_crash_loop *loop) {
    free(loop->model);
    *loop = (struct fm_crash_loop){0};
}

enum fm_code fm_crash_loop_check(const struct fm_crash_loop *loop, const char *model, int64_t now_ms,
                                 struct fm_error *error) {
    if (now_ms >= loop->retry_ms || !loop->model || strcmp(loop->model, model) != 0) {
        return FM_OK;
    }
    return fm_fail(error, FM_UNAVAILABLE,
                   "the engine failed %u times in a row and is tried again in %lld ms; the last time: %s",
                   loop->crashes, (long long)(loop->retry_ms - now_ms), loop->last.detail);
}
