/*
 * Hosts that read little: one reads 1 KiB/s for a while and then the rest, one never reads, one floods with pings and
 * never reads. The front keeps reading its input, stays small, and gives up a host that reads nothing.
 */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define STREAMS   8
#define PIECE     1024 /* bytes of a delta */
#define TICK_MS   100
#define PING_MS   1000
#define RATE      1024 /* bytes a second */
#define PEAK_KIB  (24 * 1024)
#define LATE_MS   10000 /* time after the front's own limit */
#define GROWTH_MS 30000 /* time until a flood of pings is cut off */

static void start_streams(struct session *session, unsigned kib) {
    for (unsigned i = 0; i < STREAMS; i++) {
        char piece[PIECE + 1];
        char script[PIECE + 64];
        memset(piece, (int)('a' + i), PIECE);
        piece[PIECE] = '\0';
        snprintf(script, sizeof script, "[{\"repeat\":[\"%s\",%u]}]", piece, kib);
        call_create(&session->calls, CALL_RESPONSES, script, NULL);
    }
}

static void check_streams(struct session *session, unsigned kib) {
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct call *call = call_by_id(&session->calls, session->calls.last_id - STREAMS + 1 + i);
        size_t wrong = 0;
        for (size_t at = 0; at < call->text.len; at++) {
            wrong += call->text.data[at] != (char)('a' + i);
        }
        if (strcmp(call->code, "ok") != 0 || call->text.len != (size_t)kib * PIECE || wrong) {
            report_fault("stream %u: %s, %zu bytes, %zu of them wrong", i, call->code, call->text.len, wrong);
        }
    }
}

/* Sends pings although nothing is read; their order is checked when they are answered. */
static void ping(struct session *session) {
    host_call(&session->host, ++session->probe, "health.ping");
}

static bool has_ended(pid_t pid) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Calls host_turn for a while. The caller decides how much the host may read. */
static void tick(struct session *session, int64_t ms) {
    int64_t end_us = fm_now_us() + ms * 1000;
    for (int64_t left; (left = end_us - fm_now_us()) > 0;) {
        bool deaf = session->host.may_read == 0 || session->host.ended;
        bool idle = deaf && !host_sending(&session->host);
        if (idle) {
            fm_sleep_ms((left + 999) / 1000);
        } else {
            host_turn(&session->host, left);
        }
    }
}

static void report_peak(long peak_kib) {
    if (bounds.memory) {
        report_at_most("peak RSS", (double)peak_kib, PEAK_KIB, "KiB");
    }
}

/* Checks what a host that reads 1 KiB/s has seen, then reads the rest at full speed. */
static void read_the_rest(const struct scale *scale, struct session *session, const char *name) {
    report_part(name);
    report_note("seconds at 1 KiB/s", (double)scale->crawl_ms / 1000, "s");
    report_note("pings sent meanwhile", (double)(session->probe - session->crawl_probe), "");
    report_note("pings answered meanwhile", (double)(session->probe_answered - session->crawl_probe), "");
    report_peak(session->slow_peak_kib);
    report_exactly("the front is still there", !session->host.ended && !has_ended(session->host.pid), 1);
    session->host.may_read = -1;
    session_wait(session, (int64_t)(120000 * bounds.slow));
    check_streams(session, scale->slow_kib);
    report_exactly("streams that ended", (long)session->calls.finished - 1, STREAMS);
    report_note("peak RSS when it has read all", (double)footprint_of(session->host.pid).peak_kib, "KiB");
    session_end(session);
}

/* Tests hosts that read 1 KiB/s over a pipe and over sockets, at the same time. */
static void crawl(const struct scale *scale) {
    static struct session sessions[2];
    report_part("crawl");
    for (size_t i = 0; i < 2; i++) {
        session_start(&sessions[i], i ? WIRE_SOCKET : WIRE_PIPE, -1, scale->seed);
        start_streams(&sessions[i], scale->slow_kib);
        sessions[i].host.may_read = 0;
        sessions[i].crawl_probe = sessions[i].probe;
    }
    for (int64_t ms = 0; ms < scale->crawl_ms; ms += TICK_MS) {
        for (size_t i = 0; i < 2; i++) {
            sessions[i].host.may_read += RATE * TICK_MS / 1000;
            if (ms % PING_MS == 0) {
                ping(&sessions[i]);
            }
            tick(&sessions[i], TICK_MS / 2);
            long peak_kib = footprint_of(sessions[i].host.pid).peak_kib;
            sessions[i].slow_peak_kib = peak_kib ? peak_kib : sessions[i].slow_peak_kib;
        }
    }
    read_the_rest(scale, &sessions[0], "crawl");
    read_the_rest(scale, &sessions[1], "crawl/s");
}

/*
 * Waits for the front's end, at most `wait_ms`. With `flood`, sends as many pings as the front accepts. Reports how the
 * front ended.
 */
static void be_deaf(struct session *session, int64_t wait_ms, bool flood) {
    int64_t before = fm_now_ms();
    pid_t engine = child_of(session->host.pid);
    long peak_kib = 0;
    session->host.may_read = 0;
    while (!has_ended(session->host.pid) && fm_now_ms() - before < wait_ms) {
        if (flood) {
            for (unsigned i = 0; session->host.out.len < PIECE * 64 && i < PIECE; i++) {
                ping(session);
            }
            host_turn(&session->host, 1000);
        } else {
            ping(session);
            tick(session, TICK_MS);
        }
        long now_kib = footprint_of(session->host.pid).peak_kib;
        peak_kib = now_kib > peak_kib ? now_kib : peak_kib;
    }
    report_note("pings sent", (double)(session->probe - PROBE_FIRST), "");
    report_note("left after", (double)(fm_now_ms() - before) / 1000, "s");
    report_peak(peak_kib);
    report_exactly("the front ended", has_ended(session->host.pid), 1);
    host_hang_up(&session->host);
    report_exactly("exit status", host_end(&session->host, (int64_t)(2000 * bounds.slow)), 0);
    report_exactly("the engine is gone", engine && is_gone(engine), 1);
}

static void never(const struct scale *scale) {
    static struct session session;
    report_part("deaf");
    session_start(&session, WIRE_SOCKET, -1, scale->seed);
    start_streams(&session, scale->slow_kib);
    int64_t before = fm_now_ms();
    be_deaf(&session, scale->stall_ms + LATE_MS, false);
    double late = (double)(fm_now_ms() - before - scale->stall_ms) / 1000;
    report_at_most("seconds beyond its 60", late < 0 ? -1 : late, 5, "s");
    samples_free(&session.probes);
    calls_free(&session.calls);
}

static void deaf_flood(const struct scale *scale) {
    static struct session session;
    report_part("flood");
    session_start(&session, WIRE_SOCKET, -1, scale->seed);
    be_deaf(&session, (int64_t)(GROWTH_MS * bounds.slow), true);
    samples_free(&session.probes);
    calls_free(&session.calls);
}

void part_slow(const struct scale *scale) {
    crawl(scale);
    if (scale->stall_ms) {
        never(scale);
    } else {
        puts("a host that never reads: left out of a quick run, because it is waited for during 60 s");
    }
    deaf_flood(scale);
}
