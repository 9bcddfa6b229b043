/* 64 streams of 10,000 deltas: all are complete, while pings continue. */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS 20 /* blocks of equal deltas in a stream; each block has a different text */

/* The text of a block; it is not ASCII, so that a merge that cuts a character is noticed. */
static int block_text(char *text, size_t size, int64_t id, unsigned block) {
    return snprintf(text, size, "%lld\xC3\xA9%u ", (long long)id, block);
}

static void make_script(char *script, size_t size, int64_t id, unsigned deltas) {
    size_t len = (size_t)snprintf(script, size, "[");
    for (unsigned block = 0; block < BLOCKS; block++) {
        char text[40];
        block_text(text, sizeof text, id, block);
        len += (size_t)snprintf(script + len, size - len, "%s{\"repeat\":[\"%s\",%u]}", block ? "," : "", text,
                                deltas / BLOCKS);
    }
    snprintf(script + len, size - len, "]");
}

static void check_stream(const struct call *call, unsigned deltas) {
    const char *at = call->text.data;
    size_t left = call->text.len;
    if (strcmp(call->code, "ok") != 0 || strcmp(call->terminal, "response.completed") != 0) {
        report_fault("stream %lld ended with %s, %s", (long long)call->id, call->code, call->terminal);
        return;
    }
    for (unsigned i = 0; i < deltas; i++) {
        char text[40];
        size_t len = (size_t)block_text(text, sizeof text, call->id, i / (deltas / BLOCKS));
        if (left < len || memcmp(at, text, len) != 0) {
            report_fault("stream %lld: its text is wrong from delta %u on", (long long)call->id, i);
            return;
        }
        at += len;
        left -= len;
    }
    if (left) {
        report_fault("stream %lld: %zu bytes too much", (long long)call->id, left);
    }
}

/* Starts `count` streams at once, and waits until all have ended. */
static void run_streams(struct session *session, unsigned count, unsigned deltas) {
    struct call *calls[CALLS_MAX];
    for (unsigned i = 0; i < count; i++) {
        char script[4096];
        make_script(script, sizeof script, session->calls.last_id + 1, deltas);
        calls[i] = call_create(&session->calls, CALL_RESPONSES, script, "{\"queue_timeout_ms\":600000}");
    }
    session_wait(session, (int64_t)(300000 * bounds.slow));
    for (unsigned i = 0; i < count; i++) {
        check_stream(calls[i], deltas);
    }
}

void part_streams(const struct scale *scale) {
    static struct session session;
    int64_t deltas = 0;
    report_part("streams");
    session_start(&session, WIRE_SOCKET, scale->probes_pause_us, scale->seed);
    run_streams(&session, scale->streams / 4, scale->deltas);
    session_warm(&session);
    int64_t before = fm_now_us();
    run_streams(&session, scale->streams, scale->deltas);
    double seconds = (double)(fm_now_us() - before) / 1e6;
    for (unsigned i = 0; i < scale->streams; i++) {
        deltas += call_by_id(&session.calls, session.calls.last_id - i)->deltas;
    }
    report_exactly("streams that ended", (long)(session.calls.finished - session.warm_calls), scale->streams);
    report_note("deltas of the engine", (double)scale->streams * scale->deltas, "");
    report_note("delta events (merged ones count once)", (double)deltas, "");
    report_note("deltas of the engine a second", (double)(int64_t)(scale->streams * scale->deltas / seconds), "");
    report_times("ping", &session.probes, scale->quick ? 500 : 50);
    report_note("peak RSS", (double)footprint_of(session.host.pid).peak_kib, "KiB");
    session_end(&session);
}
