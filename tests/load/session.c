/* A host with calls and a serial probe of pings; reports counts, times and memory at the end. */
#include "session.h"
#include "base/clock.h"

#define MORE_THREADS 3 /* threads of the front that read from the engine, write to it, and use the store */
#define GROWTH_KIB   2048
#define SETTLE_MS    5000 /* the time for an answer or for a thread's end */

static void take(void *context, const char *body, size_t len) {
    struct session *session = context;
    int64_t id = reply_id(body, len);
    if (id < PROBE_FIRST) {
        calls_take(&session->calls, body, len);
        return;
    }
    if (id != ++session->probe_answered) {
        report_fault("ping %lld was answered instead of %lld", (long long)id, (long long)session->probe_answered);
    }
    samples_add(&session->probes, fm_now_us() - session->probe_sent_us);
    session->probe_next_us = fm_now_us() + session->probe_pause_us;
}

static void take_other(void *context, int64_t id, struct json_object *message) {
    struct session *session = context;
    if (session->other) {
        session->other(session->context, id, message);
    } else {
        report_fault("a reply to nothing that was asked: %lld", (long long)id);
    }
}

static void wait_probe(struct session *session) {
    int64_t deadline = fm_now_ms() + (int64_t)(SETTLE_MS * bounds.slow);
    while (session->probe != session->probe_answered && !session->host.ended && fm_now_ms() < deadline) {
        host_turn(&session->host, 10000);
    }
}

void session_start(struct session *session, enum wire wire, int64_t probe_pause_us, unsigned seed) {
    *session = (struct session){.probe_pause_us = probe_pause_us,
                                .probe = PROBE_FIRST,
                                .probe_answered = PROBE_FIRST,
                                .random = (int64_t)seed + 1};
    host_start(&session->host, wire, take, session);
    calls_init(&session->calls, &session->host);
    session->calls.other = take_other;
    session->calls.context = session;
    host_call(&session->host, ++session->probe, "health.ping");
    wait_probe(session);
    long idle_threads = footprint_of(session->host.pid).threads;
    calls_warm_up(&session->calls);
    int64_t deadline = fm_now_ms() + (int64_t)(SETTLE_MS * bounds.slow);
    bool settled; /* the last watchdog thread may be about to end */
    do {
        session->start = footprint_of(session->host.pid);
        settled = session->start.threads == idle_threads + MORE_THREADS && session->start.children == 1;
    } while (!settled && fm_now_ms() < deadline);
    samples_free(&session->probes);
}

void session_warm(struct session *session) {
    session->warm = true;
    session->warm_calls = session->calls.finished;
    session->start.rss_kib = footprint_of(session->host.pid).rss_kib;
    samples_free(&session->probes);
}

void session_turn(struct session *session, int64_t wait_us) {
    int64_t now = fm_now_us();
    bool idle = session->probe == session->probe_answered;
    if (session->probe_pause_us >= 0 && idle && now >= session->probe_next_us) {
        session->probe_sent_us = now;
        host_call(&session->host, ++session->probe, "health.ping");
    } else if (session->probe_pause_us >= 0 && idle && session->probe_next_us - now < wait_us) {
        wait_us = session->probe_next_us - now;
    }
    host_turn(&session->host, wait_us);
}

bool session_wait(struct session *session, int64_t wait_ms) {
    int64_t deadline = fm_now_ms() + wait_ms;
    while (session->calls.open && !session->host.ended && fm_now_ms() < deadline) {
        session_turn(session, 10000);
    }
    return calls_wait(&session->calls, 0);
}

int64_t session_random(struct session *session, int64_t below) {
    /* Knuth's MMIX generator; only its high bits are good. */
    session->random = (int64_t)((uint64_t)session->random * 6364136223846793005u + 1442695040888963407u);
    return (int64_t)(((uint64_t)session->random >> 33) % (uint64_t)below);
}

void session_end(struct session *session) {
    wait_probe(session);
    report_exactly("pings without an answer", (long)(session->probe - session->probe_answered), 0);
    long rss_kib = footprint_of(session->host.pid).rss_kib;
    if (session->warm && bounds.memory) {
        long growth = rss_kib - session->start.rss_kib;
        report_at_most("RSS growth since the warm-up", growth < 0 ? 0 : (double)growth, GROWTH_KIB, "KiB");
    }
    report_note("RSS now", (double)rss_kib, "KiB");
    report_footprint(session->host.pid, &session->start);
    host_hang_up(&session->host);
    report_exactly("exit status", host_end(&session->host, (int64_t)(2000 * bounds.slow)), 0);
    report_part_end();
    samples_free(&session->probes);
    calls_free(&session->calls);
}
