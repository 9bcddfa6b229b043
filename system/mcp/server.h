/*
 * Serves one client: reads and writes lines. Requests about the desktop are handed over as jobs, whose answers come
 * back. All other requests are answered at once. No I/O, no threads, no desktop; one thread at a time. Each request
 * gets exactly one answer; a request that the client has cancelled gets none.
 */
#ifndef SY_MCP_SERVER_H
#define SY_MCP_SERVER_H

#include "mcp/message.h"
#include "mcp/policy.h"

struct sy_server;

/* Writes the members of a result at once. False: `fault` says why it can't. */
typedef bool sy_answer_now(struct sy_server *server, const struct sy_request *request, struct fm_json_writer *w,
                           struct sy_fault *fault);

/* methods.c has the table. */
struct sy_method {
    const char *name;
    enum sy_era first, last; /* the first and the last version that have the method */
    sy_answer_now *answer;   /* NULL: the request is handed over, or the method listens */
    enum sy_keep keep;
    bool listens; /* the method is a subscription: its answer comes when it ends */
};

/* Finds a method; NULL: no version has it. */
const struct sy_method *sy_find_method(const char *name);

#define SY_BATCH_MAX     64 /* requests in an array (2025-03-26) */
#define SY_LISTENERS_MAX 32 /* subscriptions/listen that are open */

struct sy_batch;

/* A request that is answered elsewhere. */
struct sy_job {
    struct sy_job *next; /* the next job in the same list */
    struct fm_rpc_id id;
    enum sy_era era;
    struct sy_batch *batch; /* the server's */
    bool dropped;           /* the client has cancelled the request: the job's lines and its answer are dropped */
    struct fm_buf told;     /* lines that are sent before its answer */
    struct fm_buf answer;   /* one line */
    size_t len;
    char text[]; /* the message as JSON, checked */
};

struct sy_server {
    const struct sy_policy *policy;
    struct fm_buf *out; /* takes whole lines */
    /* Takes the job. The receiver owns it until it calls sy_server_done. */
    void (*hand_over)(void *context, struct sy_job *job);
    /* Reports that the job may stop. A job that has not begun may be given to sy_server_done at once. */
    void (*cancel)(void *context, struct sy_job *job);
    void *context;

    enum sy_era negotiated; /* by initialize */
    struct sy_job **jobs;   /* the jobs that were handed over and are not done; borrowed */
    size_t job_count;
    struct fm_rpc_id listeners[SY_LISTENERS_MAX];
    size_t listener_count;
};

/* Frees a server; all jobs must be done. (To make one, fill the members up to `context`, and zero the rest.) */
void sy_server_free(struct sy_server *server);

/* Takes a line of the client, without its newline. */
void sy_server_line(struct sy_server *server, const char *line, size_t len);

/* Answers a line of the client that was too long to be read. */
void sy_server_long_line(struct sy_server *server);

/* Sends lines about a job that still runs. */
void sy_server_tell(struct sy_server *server, const struct sy_job *job, const struct fm_buf *lines);

/* Sends the job's lines and its answer, and frees the job. */
void sy_server_done(struct sy_server *server, struct sy_job *job);

/* The input has ended: ends the subscriptions. Jobs go on. */
void sy_server_end(struct sy_server *server);

#endif
