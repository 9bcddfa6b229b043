/* A host with calls and a serial probe at the same time: shared by the parts that use an engine. */
#ifndef TESTS_LOAD_SESSION_H
#define TESTS_LOAD_SESSION_H

#include "calls.h"
#include "figures.h"

#define PROBE_FIRST 1000000000 /* ids from here on are pings */

struct session {
    struct host host;
    struct calls calls;
    struct footprint start; /* with a warm engine */
    bool warm;              /* start.rss_kib is from session_warm */
    int64_t warm_calls;     /* calls that had finished before session_warm */
    int64_t probe_pause_us; /* between a pong and the next ping; below 0: no probe */
    int64_t probe;
    int64_t probe_answered;
    int64_t crawl_probe; /* slow.c: the last ping before the host became slow */
    long slow_peak_kib;  /* slow.c: peak RSS during that time */
    int64_t probe_sent_us;
    int64_t probe_next_us;
    struct samples probes;
    int64_t random; /* state of session_random */
    /* Replies that belong neither to a create call nor to a ping. */
    void (*other)(void *context, int64_t id, struct json_object *message);
    void *context;
};

/* Starts a front and warms its engine up. `session` is large: keep it static. */
void session_start(struct session *session, enum wire wire, int64_t probe_pause_us, unsigned seed);

/*
 * Call it after the first round. After this call times count, and memory may grow by 2 MiB (session_end checks that).
 */
void session_warm(struct session *session);

/* Calls host_turn, and sends the probe's pings. */
void session_turn(struct session *session, int64_t wait_us);

/* Calls session_turn until no call is open or `wait_ms` have passed. Reports what is missing. */
bool session_wait(struct session *session, int64_t wait_ms);

/* A random number from 0 up to, but not including, `below`. */
int64_t session_random(struct session *session, int64_t below);

/* Reports rows about counts, memory and the exit; frees the session. */
void session_end(struct session *session);

#endif
