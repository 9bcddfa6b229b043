/*
 * For targets that run the front without threads, processes and descriptors. Has a front whose outboxes lead here, and
 * a host that checks every frame against PROTOCOL.md. The target defines fm_engines_pump_locked.
 */
#ifndef TESTS_FUZZ_FRONT_H
#define TESTS_FUZZ_FRONT_H

#include "front/jobs.h"
#include "front/state.h"
#include "tests/fuzz/fuzz.h"

/* The only front. Between two inputs it has no jobs, and its memory does not grow. */
extern struct fm_front front;

/* How many frames of jobs the host has room for. The host always takes replies. */
extern unsigned host_room;

/*
 * Call front_begin at the beginning of an input, and front_end at its end. front_end finishes what is in flight, takes
 * all frames, and expects that every call was answered.
 */
void front_begin(void);
void front_end(void);

/* Feeds the host's bytes, and wraps fm_dispatch_handler to note what must be answered. False if the wire is broken. */
bool host_send(const char *bytes, size_t len);

/* Feeds one frame with this body. */
bool host_send_body(const char *body, size_t len);

/* Makes a call from choices. Most calls are valid, and are about what is in flight. */
void host_call(struct choices *from);

/* Gives the host room for more frames. */
void host_takes(unsigned frames);

/* Runs the writers: the host gets as many frames of jobs as it has room for, the engine gets its jobs. */
void front_write(void);

/* Checks that every call was answered once or is in flight once. Call it between any two steps. */
void expect_calls(void);

/* Returns the number of jobs in the engine, according to the jobs' states. */
unsigned jobs_held(void);

/* Returns the `n`th job that is not free, modulo the number of such jobs; NULL if there is none. */
struct fm_job *nth_job(size_t n);

/* Defined by the target, and called when a frame for the engine's stdin was queued. */
void engine_got(struct json_object *message);

#endif
