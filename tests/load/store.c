/* 100,000 responses through a store that has room for a few thousand: memory stays the same once the store is full. */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define TEXT 4000 /* bytes of a prompt; it is one word, which comes back as the text */
#define OPEN 32   /* simultaneous calls */

static void create_all(struct session *session, unsigned count) {
    char prompt[TEXT + 1];
    int64_t deadline = fm_now_ms() + (int64_t)(600000 * bounds.slow);
    for (unsigned i = 0; i < count && !session->host.ended && fm_now_ms() < deadline;) {
        if (session->calls.open == OPEN) {
            session_turn(session, 10000);
            continue;
        }
        snprintf(prompt, sizeof prompt, "%0*u", TEXT, i);
        call_create(&session->calls, CALL_RESPONSES, prompt, NULL);
        i++;
    }
    session_wait(session, (int64_t)(60000 * bounds.slow));
}

void part_store(const struct scale *scale) {
    static struct session session;
    const char *before_bytes = host_store_bytes;
    report_part("store");
    host_store_bytes = scale->store_bytes;
    session_start(&session, WIRE_SOCKET, scale->probes_pause_us, scale->seed);
    create_all(&session, scale->responses / 5); /* more responses than the store has room for */
    session_warm(&session);
    int64_t before = fm_now_us();
    create_all(&session, scale->responses);
    double seconds = (double)(fm_now_us() - before) / 1e6;
    report_exactly("responses", (long)(session.calls.finished - session.warm_calls), scale->responses);
    report_note("responses a second", (double)(int64_t)(scale->responses / seconds), "");
    report_times("ping", &session.probes, scale->quick ? 500 : 50);
    session_end(&session);
    host_store_bytes = before_bytes;
}
