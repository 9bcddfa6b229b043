/*
 * Everything at once, at random, for the requested time: streams, cancels, limits, bad bodies, and engines that fail,
 * hang, crash and are killed. Prints a line per minute, and checks bounds at the end.
 */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT    24
#define CANCEL_FIRST 500000000 /* a cancel's id is its create call's plus this */
#define ODD_FIRST    900000000 /* ids of calls that are refused */
#define GROWTH_KIB   2048
#define QUIET_MS     30000 /* for the last calls to end */

/*
 * A prompt, its limits, and how it may end. INTERNAL and UNAVAILABLE are always possible, because other calls crash the
 * engine.
 */
static const struct act {
    const char *script;
    const char *limits;
    const char *code;
    unsigned weight;
} acts[] = {
    {"[{\"repeat\":[\"word \",200]}]", NULL, "ok", 300},
    {"[{\"repeat\":[\"w\xC3\xB6rd \",2000]}]", NULL, "ok", 60},
    {"[\"a \",{\"sleep_ms\":20},\"b \",{\"sleep_ms\":50},\"c\"]", NULL, "ok", 200},
    {"[{\"prefill_ms\":30},{\"repeat\":[\"p \",20]},{\"finish\":\"length\"}]", NULL, "ok", 100},
    {"plain words that are echoed one by one", NULL, "ok", 100},
    {"[\"x\",{\"error\":\"the model failed\"}]", NULL, "INTERNAL", 60},
    {"[\"x\",{\"nonsense\":1}]", NULL, "INVALID_REQUEST", 30},
    {"[\"x\",{\"hang\":\"soft\"}]", "{\"timeout_ms\":150}", "TIMEOUT", 60},
    {"[\"x\",{\"hang\":\"soft\"}]", "{\"no_progress_timeout_ms\":80}", "TIMEOUT", 30},
    {"[{\"hang\":\"soft\"}]", "{\"first_token_timeout_ms\":80}", "TIMEOUT", 30},
    {"[\"late\"]", "{\"queue_timeout_ms\":1}", "TIMEOUT or ok", 30},
    {"[\"x\",{\"hang\":\"hard\"}]", "{\"timeout_ms\":100}", "TIMEOUT", 3},
    {"[\"x\",{\"signal\":\"SEGV\"}]", NULL, "INTERNAL", 1},
    {"[\"x\",{\"exit\":0}]", NULL, "INTERNAL", 1},
    {"[\"x\",{\"stdout\":\"Loading...\"}]", NULL, "INTERNAL", 1},
};

static const char *const odd_bodies[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":900000000,\"method\":\"no.such.method\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":900000000,\"method\":\"responses.create\",\"params\":[]}",
    "[]",
    "{\"jsonrpc\":\"2.0\",",
    "\"\xC0\x80\"",
    "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"health.ping\"}",
};

struct task {
    struct call *call; /* NULL: this slot is free */
    const struct act *act;
    int64_t cancel_us; /* when to cancel; 0: no cancel, or it was sent */
    bool cancelled;
    bool awaits; /* waits for the cancel's answer */
};

struct soak {
    struct session session;
    struct task tasks[IN_FLIGHT];
    int64_t started;
    int64_t ok;
    int64_t failed;
    int64_t refused; /* calls that fail at once while the crash loop allows no engine; their number has no bound */
    int64_t cancels;
    int64_t kills;
    int64_t odd_sent;
    int64_t odd_answered;
    int64_t kill_pause_us;
    int64_t next_kill_us;
    int64_t next_odd_us;
    int64_t next_large_us;
};

static const struct act *draw_act(struct soak *soak) {
    int64_t total = 0;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        total += acts[i].weight;
    }
    int64_t at = session_random(&soak->session, total);
    size_t i = 0;
    while (at >= acts[i].weight) {
        at -= acts[i++].weight;
    }
    return &acts[i];
}

static void start_task(struct soak *soak, struct task *task) {
    struct session *session = &soak->session;
    enum call_api api = session_random(session, 3) ? CALL_RESPONSES : CALL_CHAT;
    *task = (struct task){.act = draw_act(soak)};
    task->call = call_create(&session->calls, api, task->act->script, task->act->limits);
    task->cancel_us = session_random(session, 5) ? 0 : fm_now_us() + session_random(session, 40000);
    soak->started++;
}

static void cancel(struct soak *soak, struct task *task) {
    struct host *host = &soak->session.host;
    struct fm_json_writer w = host_begin(host, task->call->id + CANCEL_FIRST, "responses.cancel");
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "request_id", task->call->id);
    fm_json_object_end(&w);
    host_send(host);
    task->cancel_us = 0;
    task->cancelled = true;
    task->awaits = true;
    soak->cancels++;
}

static void finish_task(struct soak *soak, struct task *task) {
    const char *code = task->call->code;
    bool expected = strstr(task->act->code, code) || strcmp(code, "INTERNAL") == 0 ||
                    strcmp(code, "UNAVAILABLE") == 0 || (task->cancelled && strcmp(code, "CANCELLED") == 0);
    if (!expected) {
        report_fault("call %lld, %s: %s", (long long)task->call->id, task->act->script, code);
    }
    soak->ok += strcmp(code, "ok") == 0;
    soak->refused += strcmp(code, "UNAVAILABLE") == 0;
    soak->failed += strcmp(code, "ok") != 0 && strcmp(code, "UNAVAILABLE") != 0;
    task->call = NULL;
}

static void take_other(void *context, int64_t id, struct json_object *message) {
    struct soak *soak = context;
    if (id == 0 || id >= ODD_FIRST) {
        soak->odd_answered += json_object_object_get(message, "error") != NULL;
        return;
    }
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct task *task = &soak->tasks[i];
        if (task->call && task->awaits && task->call->id + CANCEL_FIRST == id) {
            task->awaits = false;
            return;
        }
    }
    report_fault("a reply to nothing that was asked: %.200s", json_object_get_string(message));
}

/* ---- what is not a call ---- */

static void send_body(struct host *host, const char *body, size_t len) {
    char header[64];
    int header_len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", len);
    host_send_raw(host, header, (size_t)header_len);
    host_send_raw(host, body, len);
}

/* One byte more than the limit: the body is skipped and answered with an error. */
static void send_too_large(struct soak *soak) {
    size_t len = FM_FRAME_BODY_MAX + 1;
    char *body = calloc(len, 1);
    if (body) {
        send_body(&soak->session.host, body, len);
        soak->odd_sent++;
    }
    free(body);
}

static bool is_due(struct soak *soak, int64_t *next_us, int64_t mean_us) {
    int64_t now = fm_now_us();
    bool due = *next_us && now >= *next_us;
    if (!*next_us || due) {
        *next_us = now + mean_us / 2 + session_random(&soak->session, mean_us);
    }
    return due;
}

static void disturb(struct soak *soak) {
    if (is_due(soak, &soak->next_odd_us, 100000)) {
        size_t count = sizeof odd_bodies / sizeof odd_bodies[0];
        const char *body = odd_bodies[session_random(&soak->session, (int64_t)count)];
        send_body(&soak->session.host, body, strlen(body));
        soak->odd_sent++;
    }
    if (is_due(soak, &soak->next_large_us, 10000000)) {
        send_too_large(soak);
    }
    if (is_due(soak, &soak->next_kill_us, soak->kill_pause_us)) {
        pid_t engine = child_of(soak->session.host.pid);
        if (engine) {
            kill(engine, SIGKILL);
            soak->kills++;
        }
    }
}

static bool step(struct soak *soak, bool more) {
    bool busy = false;
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct task *task = &soak->tasks[i];
        if (task->call && task->call->done && !task->awaits) {
            finish_task(soak, task);
        }
        if (!task->call && more && session_random(&soak->session, 4) == 0) {
            start_task(soak, task);
        }
        if (task->call && task->cancel_us && fm_now_us() >= task->cancel_us) {
            cancel(soak, task);
        }
        busy = busy || task->call;
    }
    session_turn(&soak->session, 2000);
    return busy;
}

/* ---- the run ---- */

static void minute(const struct soak *soak, int64_t ms) {
    struct footprint now = footprint_of(soak->session.host.pid);
    printf("          %5.1f min: RSS %ld KiB, %ld descriptors, %ld threads; %lld calls, %lld ok, %lld kills\n",
           (double)ms / 60000, now.rss_kib, now.descriptors, now.threads, (long long)soak->started, (long long)soak->ok,
           (long long)soak->kills);
    fflush(stdout);
}

/* Makes calls until an engine answers one, because the last engine may have just been killed. */
static void recover(struct soak *soak) {
    const char *code = "";
    int64_t deadline = fm_now_ms() + (int64_t)(QUIET_MS * bounds.slow);
    while (strcmp(code, "ok") != 0 && fm_now_ms() < deadline && !soak->session.host.ended) {
        const struct call *call = call_create(&soak->session.calls, CALL_RESPONSES, "[\"well\"]", NULL);
        session_wait(&soak->session, QUIET_MS);
        code = call->code;
    }
    report_exactly("a call at the end goes well", strcmp(code, "ok") == 0, 1);
}

static void report(struct soak *soak, long before_kib, bool quick) {
    long growth = footprint_of(soak->session.host.pid).rss_kib - before_kib;
    report_note("calls", (double)soak->started, "");
    report_note("of them ok", (double)soak->ok, "");
    report_note("failed, as they should", (double)soak->failed, "");
    report_note("refused in a crash loop", (double)soak->refused, "");
    report_note("cancels", (double)soak->cancels, "");
    report_note("engines killed", (double)soak->kills, "");
    report_exactly("bad bodies answered", (long)soak->odd_answered, (long)soak->odd_sent);
    double failed = (double)soak->failed / (double)(soak->ok + 1);
    if (quick) { /* a quick run only takes seconds: shares are random, and memory has not settled */
        report_note("calls that failed for each that went well", failed, "");
        report_note("RSS growth since the first line", (double)growth, "KiB");
    } else {
        report_at_most("calls that failed for each that went well", failed, 3, "");
        if (bounds.memory) {
            report_at_most("RSS growth since the first line", growth < 0 ? 0 : (double)growth, GROWTH_KIB, "KiB");
        }
    }
    report_times("ping", &soak->session.probes, 100);
    report_note("peak RSS", (double)footprint_of(soak->session.host.pid).peak_kib, "KiB");
}

void part_soak(const struct scale *scale) {
    static struct soak soak;
    soak = (struct soak){.started = 0};
    int64_t length_ms = scale->soak_ms ? scale->soak_ms : 3000;
    int64_t line_ms = length_ms > 120000 ? 60000 : length_ms / 4 + 1;
    long before_kib = 0;
    report_part("soak");
    session_start(&soak.session, WIRE_SOCKET, 20000, scale->seed);
    soak.kill_pause_us = length_ms > 20000 ? 5000000 : length_ms * 250;
    soak.session.other = take_other;
    soak.session.context = &soak;
    int64_t start = fm_now_ms();
    for (int64_t next = line_ms, ms; (ms = fm_now_ms() - start) < length_ms && !soak.session.host.ended;) {
        disturb(&soak);
        step(&soak, true);
        if (ms >= next) {
            minute(&soak, ms);
            before_kib = before_kib ? before_kib : footprint_of(soak.session.host.pid).rss_kib;
            next += line_ms;
        }
    }
    int64_t deadline = fm_now_ms() + (int64_t)(QUIET_MS * bounds.slow);
    while (step(&soak, false) && fm_now_ms() < deadline && !soak.session.host.ended) {
    }
    recover(&soak);
    report(&soak, before_kib, scale->soak_ms == 0);
    session_end(&soak.session);
}
