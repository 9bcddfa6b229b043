/*
 * For the targets that run the front without threads, processes and descriptors: a front whose outboxes lead here, and
 * a host that holds every frame to PROTOCOL.md. The target defines fm_engines_pump_locked.
 */
#ifndef TESTS_FUZZ_FRONT_H
#define TESTS_FUZZ_FRONT_H

#include "front/jobs.h"
#include "front/state.h"
#include "tests/fuzz/fuzz.h"

/* The one front; between two inputs it holds no job and no memory that grows. */
extern struct fm_front front;

/* How many frames of jobs the host still has room for; replies are always taken. */
extern unsigned host_room;

/* Begins and ends an input. The end settles what is in flight, takes all, and wants every call answered. */
void front_begin(void);
void front_end(void);

/* Feeds what the host sends; wraps fm_dispatch_handler to note what must be answered. False when the wire is broken. */
bool host_send(const char *bytes, size_t len);

/* The same, as one frame. */
bool host_send_body(const char *body, size_t len);

/* A call that choices build: most of them good, about what is in flight. */
void host_call(struct choices *from);

/* The host takes frames again. */
void host_takes(unsigned frames);

/* The writers' turn: the host gets the frames of jobs that it has room for, the engine its jobs. */
void front_write(void);

/* Every call is answered, or is in flight, once. To be called between any two steps. */
void expect_calls(void);

/* Jobs in the engine, as the jobs' states tell it. */
unsigned jobs_held(void);

/* The `n`th job that is not free, modulo their number; NULL when there is none. */
struct fm_job *nth_job(size_t n);

/* The target's: a frame for the engine's stdin was queued. */
void engine_got(struct json_object *message);

#endif
