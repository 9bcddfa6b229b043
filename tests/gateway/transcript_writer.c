/*
 * A program that is killed (test_kills.py): it opens the sessions of a folder, which repairs what the last writer left.
 * Then it appends records to two sessions as fast as the disk allows, IN_FLIGHT at a time, and attachments between
 * them. It reports each acknowledged write on stdout at once: "ready RUNS TORN DAMAGED UNUSABLE", "session KEY",
 * "record KEY SEQ", "blob ID", or "failed DETAIL". After a failure it waits a little.
 *
 * usage: transcript_writer FOLDER [RECORDS]    ends after this many; 0: never
 */
#include "base/log.h"
#include "base/platform.h"
#include "sessions/sessions.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT    16
#define SESSIONS     2
#define BLOB_EVERY   25
#define FAILURE_REST 20 /* ms */

static uv_loop_t loop;
static uv_timer_t rest;
static struct gw_journal *journal;
static struct gw_sessions *sessions;
static char keys[SESSIONS][GW_SESSION_KEY_LEN + 1];
static size_t key_count;
static long left;
static long sent;
static size_t flying;

struct flight {
    const char *key;
    int64_t seq;
};

static void say(const char *fmt, ...) FM_PRINTF(1, 2);

static void say(const char *fmt, ...) {
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (!fm_write_all(1, line, (size_t)len)) {
        exit(0); /* the output is not read any more */
    }
}

static void go_on(void);

static void on_rested(uv_timer_t *timer) {
    (void)timer;
    go_on();
}

static void failed(const struct fm_error *error) {
    say("failed %s\n", error->detail);
    uv_timer_start(&rest, on_rested, FAILURE_REST, 0);
}

static void on_record(void *context, const struct fm_error *error) {
    struct flight *flight = context;
    flying--;
    if (error) {
        failed(error);
    } else {
        say("record %s %lld\n", flight->key, (long long)flight->seq);
    }
    free(flight);
    if (!error) {
        go_on();
    }
}

static void on_blob(void *context, const struct fm_error *error, const char *id) {
    (void)context;
    flying--;
    if (error) {
        failed(error);
    } else {
        say("blob %s\n", id);
        go_on();
    }
}

static void on_session(void *context, const struct fm_error *error, const struct gw_session *session) {
    (void)context;
    flying--;
    if (error) {
        failed(error);
        return;
    }
    memcpy(keys[key_count++], session->key, sizeof keys[0]);
    say("session %s\n", session->key);
    go_on();
}

/* The records of a run, in turn: a start, a message, a call. Then they repeat, so that a kill may leave any of them
 * open. */
static void write_members(struct fm_json_writer *w, long number, size_t filler) {
    static char text[9000];
    memset(text, 'a' + (int)(number % 26), filler);
    text[filler] = '\0';
    if (number % 3 == 1) {
        fm_json_key_str(w, "role", number % 2 ? "user" : "assistant");
        fm_json_key_str(w, "content", text);
    } else if (number % 3 == 2) {
        fm_json_key_int(w, "input", number);
        fm_json_key_str(w, "name", "bash");
        fm_json_key_str(w, "callId", "c");
    }
}

static void send_record(void) {
    static const enum gw_record_type types[] = {GW_RECORD_RUN_STARTED, GW_RECORD_MESSAGE, GW_RECORD_TOOL_CALL};
    struct fm_error error;
    char run[24];
    struct flight *flight = calloc(1, sizeof *flight);
    flight->key = keys[sent % (long)key_count];
    snprintf(run, sizeof run, "run%ld", sent / 3);
    struct fm_json_writer *w = gw_session_begin(sessions, flight->key, types[sent % 3], run, &error);
    if (!w) {
        say("failed %s\n", error.detail);
        exit(1);
    }
    write_members(w, sent, (size_t)(sent * 131 % 8191));
    if (gw_session_end(sessions, on_record, flight, &flight->seq, &error) != FM_OK) {
        say("failed %s\n", error.detail);
        exit(1);
    }
}

static void go_on(void) {
    struct fm_error error;
    enum fm_code code = FM_OK;
    while (code == FM_OK && flying < (key_count < SESSIONS ? 1 : IN_FLIGHT) && (!left || sent < left)) {
        flying++;
        if (key_count < SESSIONS) {
            code = gw_session_create(sessions, "assistant", on_session, NULL, &error);
            continue;
        }
        if (sent % BLOB_EVERY == BLOB_EVERY - 1) {
            flying++;
            code = gw_session_attach(sessions, keys[0], &sent, sizeof sent, on_blob, NULL, &error);
        }
        send_record();
        sent++;
    }
}

static bool take_key(void *context, const struct gw_session *session) {
    (void)context;
    memcpy(keys[key_count++], session->key, sizeof keys[0]);
    return key_count < SESSIONS;
}

int main(int argc, char *argv[]) {
    struct fm_error error;
    struct gw_mended mended;
    char path[512];
    char blobs[512];
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        return 2;
    }
    left = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    fm_log_init("transcript_writer", FM_LOG_WARN);
    snprintf(path, sizeof path, "%s/sessions", argv[1]);
    snprintf(blobs, sizeof blobs, "%s/blobs", argv[1]);
    uv_loop_init(&loop);
    uv_timer_init(&loop, &rest);
    if (gw_journal_open(&loop, &journal, &error) != FM_OK ||
        gw_sessions_open(journal, path, blobs, &sessions, &mended, &error) != FM_OK ||
        !gw_sessions_each(sessions, take_key, NULL)) {
        fprintf(stderr, "%s\n", error.detail);
        return 1;
    }
    say("ready %zu %zu %zu %zu\n", mended.runs, mended.torn, mended.damaged, mended.unusable);
    go_on();
    while ((flying || uv_is_active((uv_handle_t *)&rest)) && uv_run(&loop, UV_RUN_ONCE)) {
    }
    gw_sessions_free(sessions);
    gw_journal_close(journal);
    uv_close((uv_handle_t *)&rest, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}
