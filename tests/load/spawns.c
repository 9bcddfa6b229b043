/* Starts and ends the front, again and again. This program adopts orphans, so a leftover process becomes its child. */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct cycles {
    struct samples times; /* from the requested end to the exit */
    long clean;
};

static bool pinged;

static void take(void *context, const char *body, size_t len) {
    (void)context;
    pinged = pinged || reply_id(body, len) == 1;
}

static void end_cycle(struct cycles *cycles, struct host *host, unsigned number) {
    int64_t before = fm_now_us();
    if (number % 2) {
        host_call(host, 2000000001, "process.shutdown");
        while (host_sending(host)) {
            host_turn(host, 1000);
        }
    } else {
        host_hang_up(host);
    }
    int status = host_end(host, (int64_t)(5000 * bounds.slow));
    samples_add(&cycles->times, fm_now_us() - before);
    cycles->clean += status == 0;
    if (status != 0) {
        report_fault("cycle %u (%s): exit status %d", number, number % 2 ? "shutdown" : "end of input", status);
    }
}

static void ping_cycle(struct cycles *cycles, unsigned number) {
    struct host host;
    pinged = false;
    host_start(&host, number % 4 < 2 ? WIRE_PIPE : WIRE_SOCKET, take, NULL);
    host_call(&host, 1, "health.ping");
    int64_t deadline = fm_now_ms() + (int64_t)(5000 * bounds.slow);
    while (!pinged && !host.ended && fm_now_ms() < deadline) {
        host_turn(&host, 10000);
    }
    if (!pinged) {
        report_fault("cycle %u: no answer to the ping", number);
    }
    end_cycle(cycles, &host, number);
}

static void ignore_rest(void *context, int64_t id, struct json_object *message) {
    (void)context; /* the reply to process.shutdown */
    (void)id;
    (void)message;
}

static void feed_calls(void *context, const char *body, size_t len) {
    calls_take(context, body, len);
}

/* Runs a cycle with an engine. In two of three cycles a stream is running. */
static void engine_cycle(struct cycles *cycles, unsigned number) {
    static struct calls calls;
    static const char *const scripts[] = {"[{\"repeat\":[\"x \",100]},{\"hang\":\"soft\"}]",
                                          "[{\"repeat\":[\"x \",100000]}]"};
    struct host host;
    host_start(&host, WIRE_SOCKET, feed_calls, &calls);
    calls_init(&calls, &host);
    calls.other = ignore_rest;
    calls_warm_up(&calls);
    if (number % 3) {
        const struct call *call = call_create(&calls, CALL_RESPONSES, scripts[number % 3 - 1], NULL);
        int64_t deadline = fm_now_ms() + (int64_t)(5000 * bounds.slow);
        while (call->deltas < 10 && !host.ended && fm_now_ms() < deadline) {
            host_turn(&host, 10000);
        }
    }
    pid_t engine = child_of(host.pid);
    end_cycle(cycles, &host, number);
    if (!engine || kill(engine, 0) == 0) {
        report_fault("cycle %u: the engine %d %s", number, (int)engine, engine ? "is still there" : "was not found");
    }
    if (calls.open) {
        report_fault("cycle %u: a stream got no result", number);
    }
    calls_free(&calls);
}

static void report_cycles(struct cycles *cycles, const char *what, unsigned count, double p99_ms) {
    report_exactly(what, cycles->clean, count);
    report_times("end", &cycles->times, p99_ms);
    samples_free(&cycles->times);
}

void part_spawns(const struct scale *scale) {
    struct cycles plain = {.clean = 0};
    struct cycles engines = {.clean = 0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    report_part("spawns");
    int64_t before = fm_now_us();
    for (unsigned i = 0; i < scale->spawns; i++) {
        ping_cycle(&plain, i);
    }
    report_note("cycles a second", (double)scale->spawns * 1e6 / (double)(fm_now_us() - before), "");
    for (unsigned i = 0; i < scale->engine_spawns; i++) {
        engine_cycle(&engines, i);
    }
    report_cycles(&plain, "cycles that exit with 0", scale->spawns, 2000);
    report_cycles(&engines, "cycles with an engine that exit with 0", scale->engine_spawns, 2000);
    long left = 0;
    while (waitpid(-1, NULL, WNOHANG) >= 0 && left < 1000) {
        left++;
    }
    report_exactly("processes left behind, zombies too", errno == ECHILD ? left : left + 1, 0);
    report_part_end();
}
