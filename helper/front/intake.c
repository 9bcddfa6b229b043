/* The intake decides which messages wait for a long one. Its thread works on the waiting messages. */
#include "front/intake.h"
#include "base/platform.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

/* Most bytes that may wait; with more, the reader waits too. One message may always wait, whatever its size. */
#define WAITING_MAX (64u << 20)

/* An entry that waits: a body that was not parsed yet, a message, or the fault of a body. */
struct fm_intake_entry {
    struct fm_intake_entry *next;
    size_t size;
    struct fm_buf body;
    struct json_object *root; /* the tree of a parsed message; owned; NULL for other entries */
    struct fm_rpc_message message;
    enum fm_rpc_error fault; /* FM_RPC_OK: the entry is a body or a message */
    struct fm_rpc_id id;
    char detail[256];
};

static void free_entry(struct fm_intake_entry *entry) {
    json_object_put(entry->root);
    fm_buf_free(&entry->body);
    free(entry);
}

/* ---- the thread ---- */

/* Takes the next entry. `done` is the size of the previous entry, which is finished. NULL: nothing waits. */
static struct fm_intake_entry *take_entry(struct fm_intake *intake, size_t done) {
    pthread_mutex_lock(&intake->lock);
    struct fm_intake_entry *entry = intake->ending ? NULL : intake->first;
    intake->bytes -= done;
    if (entry) {
        intake->first = entry->next;
        intake->last = intake->first ? intake->last : &intake->first;
    }
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
    return entry;
}

static void run_entries(struct fm_intake *intake) {
    struct fm_dispatcher dispatcher;
    struct fm_inbound inbound;
    struct fm_inbound_handler handler = fm_dispatch_handler;
    struct fm_intake_entry *entry;
    size_t done = 0;
    handler.context = &dispatcher;
    fm_dispatcher_init(&dispatcher, intake->dispatcher.front);
    fm_inbound_init(&inbound);
    while ((entry = take_entry(intake, done))) {
        if (entry->fault != FM_RPC_OK) {
            handler.fault(handler.context, &entry->id, entry->fault, entry->detail);
        } else if (entry->root) {
            handler.message(handler.context, &entry->message, entry->root);
        } else {
            fm_inbound_body(&inbound, entry->body.data, entry->body.len, &handler);
        }
        if (atomic_load(&dispatcher.front->shutdown_called)) {
            fm_ask_for_end(); /* the reader waits for input, so it must be woken to see the end */
        }
        done = entry->size;
        free_entry(entry);
    }
    fm_inbound_free(&inbound);
    fm_dispatcher_free(&dispatcher);
}

/* Ends the thread, unless more entries wait. */
static bool leave(struct fm_intake *intake) {
    pthread_mutex_lock(&intake->lock);
    intake->running = intake->first && !intake->ending;
    bool left = !intake->running;
    pthread_cond_broadcast(&intake->changed);
    pthread_mutex_unlock(&intake->lock);
    return left;
}

static void *intake_main(void *intake) {
    do {
        run_entries(intake);
    } while (!leave(intake));
    return NULL;
}

/* ---- the reader ---- */

/*
 * Whether the message must wait: another message comes first, or a frame is being built, while which jobs can't change.
 */
static bool must_wait(struct fm_intake *intake) {
    pthread_mutex_lock(&intake->lock);
    bool working = intake->running;
    pthread_mutex_unlock(&intake->lock);
    return working || atomic_load(&intake->dispatcher.front->building);
}

/* Queues the entry, which is taken over. If no thread can be started, the calling thread does its work. */
static void defer(struct fm_intake *intake, struct fm_intake_entry *entry) {
    pthread_mutex_lock(&intake->lock);
    while (intake->running && intake->bytes > 0 && intake->bytes + entry->size > WAITING_MAX) {
        pthread_cond_wait(&intake->changed, &intake->lock);
    }
    *intake->last = entry;
    intake->last = &entry->next;
    intake->bytes += entry->size;
    bool start = !intake->running;
    intake->running = true;
    pthread_mutex_unlock(&intake->lock);
    if (start && fm_thread_start(intake_main, intake) != 0) {
        intake_main(intake);
    }
}

static struct fm_intake_entry *new_entry(struct fm_intake *intake, size_t size) {
    struct fm_intake_entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        fm_front_no_memory(intake->dispatcher.front);
        return NULL;
    }
    entry->size = size;
    fm_buf_init(&entry->body, FM_FRAME_BODY_MAX);
    return entry;
}

/* Handles the body of a message. A long body has to wait, and is not parsed on this thread. */
static bool on_body(void *context, struct fm_buf *body, size_t len) {
    struct fm_intake *intake = context;
    struct fm_intake_entry *entry = len > FM_LARGE ? new_entry(intake, len) : NULL;
    if (entry) {
        entry->body = *body;
        fm_buf_init(body, body->max);
        defer(intake, entry);
    }
    return entry;
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_intake *intake = context;
    bool waits = must_wait(intake) && !fm_dispatch_is_at_once(message);
    struct fm_intake_entry *entry = waits ? new_entry(intake, sizeof *entry) : NULL;
    if (entry) {
        entry->root = json_object_get(root);
        entry->message = *message;
        defer(intake, entry);
    } else if (!waits) {
        fm_dispatch_handler.message(&intake->dispatcher, message, root);
    }
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct fm_intake *intake = context;
    bool waits = must_wait(intake);
    struct fm_intake_entry *entry = waits ? new_entry(intake, sizeof *entry) : NULL;
    if (entry) {
        entry->fault = code;
        entry->id = *id;
        snprintf(entry->detail, sizeof entry->detail, "%s", detail);
        defer(intake, entry);
    } else if (!waits) {
        fm_dispatch_handler.fault(&intake->dispatcher, id, code, detail);
    }
}

const char *fm_intake_feed(struct fm_intake *intake, const char *data, size_t len) {
    const struct fm_inbound_handler handler = {
        .context = intake, .body = on_body, .message = on_message, .fault = on_fault};
    return fm_inbound_feed(&intake->inbound, data, len, &handler);
}

/* ---- start and end ---- */

void fm_intake_init(struct fm_intake *intake, struct fm_front *front) {
    *intake = (struct fm_intake){.last = &intake->first};
    fm_inbound_init(&intake->inbound);
    fm_dispatcher_init(&intake->dispatcher, front);
    pthread_mutex_init(&intake->lock, NULL);
    pthread_cond_init(&intake->changed, NULL);
}

void fm_intake_stop(struct fm_intake *intake, bool finish) {
    pthread_mutex_lock(&intake->lock);
    intake->ending = !finish;
    while (intake->running) {
        pthread_cond_wait(&intake->changed, &intake->lock);
    }
    pthread_mutex_unlock(&intake->lock);
}

void fm_intake_free(struct fm_intake *intake) {
    while (intake->first) {
        struct fm_intake_entry *entry = intake->first;
        intake->first = entry->next;
        free_entry(entry);
    }
    fm_inbound_free(&intake->inbound);
    fm_dispatcher_free(&intake->dispatcher);
    pthread_cond_destroy(&intake->changed);
    pthread_mutex_destroy(&intake->lock);
}
