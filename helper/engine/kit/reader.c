/*
 * The reader thread: stdin becomes mailbox items and abort flags. It never writes to the front, so that an abort gets
 * through while every other thread waits for the front to take output.
 *
 * json-c counts references without atomics, so a tree must have one owner: `params` is taken out of its message before
 * it crosses to the engine thread.
 */
#include "engine/kit/kit_internal.h"
#include "base/platform.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fm_item *new_item(struct fm_kit *kit, enum fm_item_kind kind) {
    struct fm_item *item = calloc(1, sizeof *item);
    if (item) {
        item->kind = kind;
    } else {
        fm_kit_end(kit, FM_EXIT_NO_MEMORY);
    }
    return item;
}

static void post_fault(struct fm_kit *kit, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct fm_item *item = new_item(kit, FM_ITEM_FAULT);
    if (item) {
        item->id = *id;
        item->code = code;
        snprintf(item->detail, sizeof item->detail, "%s", detail);
        fm_mailbox_post(kit, item);
    }
}

static struct json_object *take_params(const struct fm_rpc_message *message, struct json_object *root) {
    struct json_object *params = json_object_get(message->params);
    json_object_object_del(root, "params");
    return params;
}

static void post_call(struct fm_kit *kit, enum fm_item_kind kind, const struct fm_rpc_message *message,
                      struct json_object *root) {
    struct fm_item *item = new_item(kit, kind);
    if (item) {
        item->id = message->id;
        item->params = take_params(message, root);
        fm_mailbox_post(kit, item);
    }
}

static void on_initialize(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    post_call(kit, FM_ITEM_INITIALIZE, message, root);
}

static void on_available(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    (void)root; /* the params of this message have no meaning */
    struct fm_item *item = new_item(kit, FM_ITEM_AVAILABLE);
    if (item) {
        item->id = message->id;
        fm_mailbox_post(kit, item);
    }
}

static void on_load(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    post_call(kit, FM_ITEM_LOAD, message, root);
}

/* Reads the job's id. False when the message has no id, so that no answer is possible either. */
static bool job_id(const struct fm_rpc_message *message, int64_t *id) {
    struct json_object *value = NULL;
    json_object_object_get_ex(message->params, "job", &value);
    *id = json_object_get_int64(value);
    return json_object_is_type(value, json_type_int);
}

static void on_job_start(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    int64_t id;
    struct fm_item *item = job_id(message, &id) ? new_item(kit, FM_ITEM_JOB) : NULL;
    if (!item) {
        return;
    }
    struct json_object *params = take_params(message, root);
    item->job = fm_kit_job_new(kit, id, params);
    if (item->job) {
        fm_mailbox_post(kit, item);
        return;
    }
    json_object_put(params);
    free(item);
    fm_kit_end(kit, FM_EXIT_NO_MEMORY);
}

static void on_job_abort(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    (void)root;
    int64_t id;
    if (!job_id(message, &id)) {
        return;
    }
    pthread_mutex_lock(&kit->lock);
    for (struct fm_kit_job *job = kit->jobs; job; job = job->next) {
        if (job->id == id) {
            atomic_store(&job->aborted, true);
            kit->woken |= job->taken;
        }
    }
    pthread_cond_broadcast(&kit->changed);
    fm_kit_tell(kit);
    pthread_mutex_unlock(&kit->lock);
}

static void on_shutdown(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root) {
    (void)root;
    struct json_object *value = NULL;
    json_object_object_get_ex(message->params, "save_ms", &value);
    int64_t save_ms = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;
    fm_kit_end_saved(kit, save_ms < FM_SAVE_MAX_MS ? save_ms : FM_SAVE_MAX_MS);
}

static const struct method {
    const char *name;
    enum fm_rpc_kind kind;
    bool has_params;
    void (*take)(struct fm_kit *kit, const struct fm_rpc_message *message, struct json_object *root);
} methods[] = {
    {FM_ENGINE_INITIALIZE, FM_RPC_REQUEST, true, on_initialize},
    {FM_ENGINE_AVAILABLE, FM_RPC_REQUEST, false, on_available},
    {FM_ENGINE_LOAD, FM_RPC_REQUEST, true, on_load},
    {FM_ENGINE_SHUTDOWN, FM_RPC_NOTIFICATION, false, on_shutdown},
    {FM_JOB_START, FM_RPC_NOTIFICATION, true, on_job_start},
    {FM_JOB_ABORT, FM_RPC_NOTIFICATION, true, on_job_abort},
};

static const struct method *find_method(const struct fm_rpc_message *message) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        const struct method *method = &methods[i];
        if (method->kind == message->kind && strlen(method->name) == message->method_len &&
            memcmp(method->name, message->method, message->method_len) == 0) {
            return method;
        }
    }
    return NULL;
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_kit *kit = context;
    if (message->kind == FM_RPC_RESPONSE) {
        return;
    }
    const struct method *method = find_method(message);
    enum fm_rpc_error code = FM_RPC_OK;
    if (!method) {
        code = FM_RPC_METHOD;
    } else if (method->has_params && !json_object_is_type(message->params, json_type_object)) {
        code = FM_RPC_PARAMS;
    }
    if (code == FM_RPC_OK) {
        method->take(kit, message, root);
    } else if (message->kind == FM_RPC_REQUEST) {
        post_fault(kit, &message->id, code, code == FM_RPC_METHOD ? "no such method" : "params must be an object");
    }
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    post_fault(context, id, code, detail);
}

void *fm_reader(void *argument) {
    struct fm_kit *kit = argument;
    const struct fm_inbound_handler handler = {.context = kit, .message = on_message, .fault = on_fault};
    fm_framer_set_max(&kit->inbound.framer, FM_ENGINE_BODY_MAX);
    kit->inbound.values_max = FM_ENGINE_VALUES_MAX;
    while (!fm_kit_ending(kit)) {
        ssize_t got = fm_read(STDIN_FILENO, kit->input, sizeof kit->input);
        if (got <= 0) {
            fm_kit_end(kit, fm_inbound_at_boundary(&kit->inbound) ? 0 : FM_EXIT_PROTOCOL);
        } else if (fm_inbound_feed(&kit->inbound, kit->input, (size_t)got, &handler)) {
            fm_kit_end(kit, FM_EXIT_PROTOCOL);
        }
    }
    return NULL;
}
