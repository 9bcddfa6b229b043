/*
 * Races of create and cancel: a cancel is sent with its create call or a random moment later. It names the call's id or
 * the response's id. Each cancel is answered, each create call has one end, and no event follows it (calls.c checks).
 */
#include "base/clock.h"
#include "parts.h"
#include "session.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define IN_FLIGHT    16      /* the fake engine has 8 slots: half of them wait in the queue */
#define CANCEL_FIRST 1000000 /* a cancel's id is its create call's plus this */

static const char *const scripts[] = {
    "[\"a \",{\"sleep_ms\":1},\"b \",{\"sleep_ms\":2},\"c \"]", /* the answer may be finished before the cancel */
    "[\"a \",\"b \",\"c \"]",
    "[{\"repeat\":[\"x \",50]},{\"hang\":\"soft\"}]",
    "[{\"prefill_ms\":30},{\"hang\":\"soft\"}]",
    "[{\"repeat\":[\"y \",3000]},{\"hang\":\"soft\"}]",
};

struct race {
    struct call *call; /* NULL: this slot is free */
    int64_t id;
    int64_t due_us; /* when the cancel is due; 0: it was sent */
    int64_t sent_us;
    bool notified; /* cancelled by a notification, which gets no answer */
    bool answered;
};

struct races {
    struct session session;
    struct race slots[IN_FLIGHT];
    struct samples times;
    int64_t started;
    int64_t answered;
    int64_t notified;
    int64_t stopped; /* create calls that ended as cancelled */
    int64_t done;    /* create calls that had ended before */
    int64_t missed;  /* cancels that found no call */
};

static void send_cancel(struct races *races, struct race *race) {
    struct host *host = &races->session.host;
    int64_t way = session_random(&races->session, 10);
    race->notified = way == 0;
    struct fm_json_writer w = race->notified ? host_begin(host, 0, "$/cancelRequest")
                                             : host_begin(host, race->id + CANCEL_FIRST, "responses.cancel");
    fm_json_object_begin(&w);
    if (race->notified) {
        fm_json_key_int(&w, "id", race->id);
    } else if (way < 5 && race->call->answer_id[0]) {
        fm_json_key_str(&w, "id", race->call->answer_id);
    } else {
        fm_json_key_int(&w, "request_id", race->id);
    }
    fm_json_object_end(&w);
    host_send(host);
    race->due_us = 0;
    race->sent_us = fm_now_us();
    races->notified += race->notified;
}

static void start_race(struct races *races, struct race *race) {
    struct session *session = &races->session;
    size_t script = (size_t)session_random(session, sizeof scripts / sizeof scripts[0]);
    enum call_api api = session_random(session, 4) ? CALL_RESPONSES : CALL_CHAT;
    *race = (struct race){.call = call_create(&session->calls, api, scripts[script], NULL)};
    race->id = race->call->id;
    races->started++;
    int64_t kind = session_random(session, 3);
    race->due_us = fm_now_us() + (kind == 1 ? session_random(session, 500) : session_random(session, 5000));
    if (kind == 0) {
        send_cancel(races, race); /* sent in one write with the create call */
    }
}

static void take_answer(void *context, int64_t id, struct json_object *message) {
    struct races *races = context;
    struct json_object *result = json_object_object_get(message, "result");
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct race *race = &races->slots[i];
        if (!race->call || race->id + CANCEL_FIRST != id || race->answered) {
            continue;
        }
        race->answered = true;
        races->answered++;
        samples_add(&races->times, fm_now_us() - race->sent_us);
        if (!json_object_get_boolean(json_object_object_get(result, "ok"))) {
            const char *code =
                json_object_get_string(json_object_object_get(json_object_object_get(result, "error"), "code"));
            races->missed++;
            /* Too late: the response is gone, or it is stored like a synchronous response that has ended. */
            if (!code || (strcmp(code, "NOT_FOUND") != 0 && strcmp(code, "INVALID_REQUEST") != 0)) {
                report_fault("cancel of %lld: %s", (long long)race->id, code ? code : "no error");
            }
        }
        return;
    }
    report_fault("a reply to nothing that was asked: %.200s", json_object_get_string(message));
}

static void finish_race(struct races *races, struct race *race) {
    bool stopped = strcmp(race->call->code, "CANCELLED") == 0;
    races->stopped += stopped;
    races->done += !stopped;
    if (!stopped && strcmp(race->call->code, "ok") != 0) {
        report_fault("call %lld ended with %s", (long long)race->id, race->call->code);
    }
    race->call = NULL;
}

/* Sends the cancels that are due and starts new races. Returns the time until the next cancel. */
static int64_t step(struct races *races, int64_t count) {
    int64_t wait_us = 10000;
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct race *race = &races->slots[i];
        if (race->call && !race->due_us && race->call->done && (race->answered || race->notified)) {
            finish_race(races, race);
        }
        if (!race->call && races->started < count) {
            start_race(races, race);
        }
        int64_t left_us = race->call && race->due_us ? race->due_us - fm_now_us() : wait_us;
        if (left_us <= 0) {
            send_cancel(races, race);
        } else if (left_us < wait_us) {
            wait_us = left_us;
        }
    }
    return wait_us;
}

static bool racing(const struct races *races) {
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        if (races->slots[i].call) {
            return true;
        }
    }
    return false;
}

static void run_races(struct races *races, int64_t count) {
    int64_t deadline = fm_now_ms() + (int64_t)(300000 * bounds.slow);
    do {
        session_turn(&races->session, step(races, count));
    } while (racing(races) && !races->session.host.ended && fm_now_ms() < deadline);
}

static void forget(struct races *races) {
    samples_free(&races->times);
    races->started = 0;
    races->answered = 0;
    races->notified = 0;
    races->stopped = 0;
    races->done = 0;
    races->missed = 0;
}

void part_cancels(const struct scale *scale) {
    static struct races races;
    races = (struct races){.started = 0};
    report_part("cancels");
    session_start(&races.session, WIRE_SOCKET, 5000, scale->seed);
    races.session.other = take_answer;
    races.session.context = &races;
    run_races(&races, scale->races / 10);
    forget(&races);
    session_warm(&races.session);
    int64_t before = fm_now_us();
    run_races(&races, scale->races);
    double seconds = (double)(fm_now_us() - before) / 1e6;
    report_exactly("races with one end each", (long)(races.stopped + races.done), (long)scale->races);
    report_exactly("cancels answered", (long)races.answered, (long)(scale->races - races.notified));
    report_note("cancelled", (double)races.stopped, "");
    report_note("done before their cancel", (double)races.done, "");
    report_note("cancels that found nothing any more", (double)races.missed, "");
    report_note("races a second", (double)(int64_t)((double)scale->races / seconds), "");
    report_times("answer to a cancel", &races.times, scale->quick ? 1000 : 100);
    report_times("ping", &races.session.probes, scale->quick ? 500 : 50);
    session_end(&races.session);
    samples_free(&races.times);
}
