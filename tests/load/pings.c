/* A flood of pings with a limited window, and at the same time a serial probe: one ping at a time, timed. */
#include "base/clock.h"
#include "figures.h"
#include "host.h"
#include "parts.h"
#include "session.h"

#define WINDOW     256   /* pings in flight */
#define WARM_UP    50000 /* pings before memory is measured */
#define GROWTH_KIB 2048
#define STALL_US   ((int64_t)20000000) /* the longest time without a reply */

struct pings {
    struct host host;
    int64_t sent;
    int64_t answered;
    int64_t probe; /* the id of the probe in flight, or of the last probe */
    int64_t probe_sent_us;
    bool probe_out;
    struct samples times;
};

static void take(void *context, const char *body, size_t len) {
    struct pings *pings = context;
    int64_t id = reply_id(body, len);
    if (id >= PROBE_FIRST) {
        if (id != pings->probe || !pings->probe_out) {
            report_fault("an answer to probe %lld, not %lld", (long long)id, (long long)pings->probe);
        }
        samples_add(&pings->times, fm_now_us() - pings->probe_sent_us);
        pings->probe_out = false;
    } else if (id == pings->answered + 1) {
        pings->answered++;
    } else {
        report_fault("ping %lld was answered out of its order: %.*s", (long long)id, len < 200 ? (int)len : 200, body);
    }
}

static void refill(struct pings *pings, int64_t count) {
    while (pings->sent < count && pings->sent - pings->answered < WINDOW) {
        host_call(&pings->host, ++pings->sent, "health.ping");
    }
}

static void probe(struct pings *pings) {
    if (!pings->probe_out) {
        pings->probe_out = true;
        pings->probe_sent_us = fm_now_us();
        host_call(&pings->host, ++pings->probe, "health.ping");
    }
}

/* Sends pings until `count` pings in all have been answered. */
static void flood(struct pings *pings, int64_t count) {
    int64_t last = pings->answered;
    int64_t last_us = fm_now_us();
    while ((pings->answered < count || pings->probe_out) && !pings->host.ended && fm_now_us() - last_us < STALL_US) {
        refill(pings, count);
        if (pings->answered < count) {
            probe(pings);
        }
        host_turn(&pings->host, 100000);
        if (pings->answered != last) {
            last = pings->answered;
            last_us = fm_now_us();
        }
    }
}

static void run(const struct scale *scale, enum wire wire, const char *name) {
    struct pings pings = {.probe = PROBE_FIRST};
    report_part(name);
    host_start(&pings.host, wire, take, &pings);
    int64_t warm_up = scale->quick ? scale->pings / 2 : WARM_UP;
    flood(&pings, warm_up);
    samples_free(&pings.times);
    struct footprint start = footprint_of(pings.host.pid);
    int64_t before = fm_now_us();
    flood(&pings, warm_up + scale->pings);
    double seconds = (double)(fm_now_us() - before) / 1e6;
    report_exactly("pings answered in order", (long)(pings.answered - warm_up), (long)scale->pings);
    report_note("pings a second", (double)(int64_t)((double)(pings.answered - warm_up) / seconds), "");
    report_times("probe", &pings.times, scale->quick ? 100 : 5);
    long growth = footprint_of(pings.host.pid).rss_kib - start.rss_kib;
    report_note("RSS after the warm-up", (double)start.rss_kib, "KiB");
    if (bounds.memory) {
        report_at_most("RSS growth", growth < 0 ? 0 : (double)growth, GROWTH_KIB, "KiB");
    }
    report_footprint(pings.host.pid, &start);
    host_hang_up(&pings.host);
    report_exactly("exit status", host_end(&pings.host, (int64_t)(2000 * bounds.slow)), 0);
    report_part_end();
    samples_free(&pings.times);
}

void part_pings(const struct scale *scale) {
    run(scale, WIRE_PIPE, "pings");
    run(scale, WIRE_SOCKET, "pings/s");
}
