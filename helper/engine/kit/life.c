/*
 * The life of an engine program. Three threads: the engine thread waits for the mailbox and calls the engine's ops;
 * the reader (reader.c) fills the mailbox; the watch waits for the end and makes sure that the process ends in time.
 * main waits for the engine thread. The stack of the engine thread does not depend on the host's limits, as main's
 * stack does. The kit is never freed, because the reader may be inside read() when main returns.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/secret.h"
#include "engine/kit/job_read.h"
#include "engine/kit/kit_internal.h"
#include "protocol/gpu.h"
#include "protocol/sandbox.h"
#include "protocol/version.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAVED_END_MS 200 /* ms between the last moment for saving the state and the end */

static struct fm_kit the_kit;

/* ---- the end ---- */

static void *watch(void *argument) {
    struct fm_kit *kit = argument;
    struct fm_waited waited[] = {{.fd = kit->end_fd, .input = true}, {.fd = kit->wake_read, .input = true}};
    fm_wait(waited, 2, -1);
    fm_kit_end(kit, 0);
    int64_t save_ms = fm_kit_save_ms(kit) + SAVED_END_MS;
    fm_sleep_ms(save_ms > FM_KIT_GRACE_MS ? save_ms : FM_KIT_GRACE_MS);
    _exit(fm_kit_end_status(kit));
}

/* ---- the engine thread ---- */

static void send_error(struct fm_kit *kit, const struct fm_rpc_id *id, const struct fm_error *error) {
    struct fm_json_writer w = fm_output_result(kit, id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", false);
    fm_json_key(&w, "error");
    fm_output_error_value(&w, error);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

static enum fm_code check_initialize(struct fm_kit *kit, struct json_object *params, enum fm_log_level *level,
                                     struct fm_error *error) {
    struct json_object *version = NULL;
    struct json_object *word = NULL;
    json_object_object_get_ex(params, "protocol_version", &version);
    json_object_object_get_ex(params, "log_level", &word);
    if (kit->initialized) {
        return fm_fail(error, FM_INVALID_REQUEST, "engine.initialize was called before");
    }
    if (!json_object_is_type(version, json_type_int)) {
        return fm_fail(error, FM_INVALID_REQUEST, "engine.initialize: protocol_version: an integer is expected");
    }
    if (json_object_get_int64(version) != FM_ENGINE_PROTOCOL_VERSION) {
        return fm_fail(error, FM_INVALID_REQUEST, "the engine %s speaks engine protocol version %d, not %lld",
                       kit->ops->name, FM_ENGINE_PROTOCOL_VERSION, (long long)json_object_get_int64(version));
    }
    *level = FM_LOG_OFF;
    bool known = !word || (json_object_is_type(word, json_type_string) &&
                           fm_log_level_parse(json_object_get_string(word), level));
    if (!known) {
        return fm_fail(error, FM_INVALID_REQUEST, "engine.initialize: log_level: a level's name is expected");
    }
    return FM_OK;
}

static void answer_initialize(struct fm_kit *kit, const struct fm_item *item) {
    const struct fm_engine_ops *ops = kit->ops;
    enum fm_log_level level;
    struct fm_error error;
    if (check_initialize(kit, item->params, &level, &error) != FM_OK) {
        send_error(kit, &item->id, &error);
        return;
    }
    fm_log_init(ops->name, level);
    if (getenv("FM_ENGINE_LOG_PREFIX")) { /* fm-proxy sessions sets this variable */
        fm_log_use_prefix(getenv("FM_ENGINE_LOG_PREFIX"));
    }
    kit->initialized = true;
    if (ops->initializing) {
        ops->initializing(ops->state, kit);
    }
    struct fm_json_writer w = fm_output_result(kit, &item->id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    fm_json_key_int(&w, "protocol_version", ops->protocol_version ? ops->protocol_version : FM_ENGINE_PROTOCOL_VERSION);
    fm_json_key_str(&w, "name", ops->name);
    fm_json_key_str(&w, "version", ops->version);
    fm_json_key_int(&w, "slots", ops->slots);
    fm_describe_write(ops, false, &w);
    fm_json_key(&w, "parameters");
    fm_json_array_begin(&w);
    for (int i = FM_PARAM_FIRST_EXTRA; i < FM_PARAM_COUNT && ops->extras; i++) {
        fm_json_str(&w, fm_params[i].name);
    }
    for (int i = 0; i < FM_PASSED_COUNT && ops->passes_on; i++) {
        fm_json_str(&w, fm_passed_names[i]);
    }
    fm_json_array_end(&w);
    fm_json_key(&w, "sandbox");
    fm_sandbox_write(&kit->sandbox, &w);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

/* The path in the member `name`, which may be null. */
static enum fm_code read_path(struct json_object *params, const char *name, const char **path, struct fm_error *error) {
    struct json_object *value = NULL;
    json_object_object_get_ex(params, name, &value);
    *path = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
    bool valid = !value || (*path && strlen(*path) == (size_t)json_object_get_string_len(value));
    return valid ? FM_OK : fm_fail(error, FM_INVALID_REQUEST, "engine.load: %s: a path or null is expected", name);
}

/*
 * Refuses a file that the front could read and the engine can't, because the engine has fewer rights. The engine's
 * `load` reports other faults of the file.
 */
static enum fm_code check_access(const char *path, struct fm_error *error) {
    int failure = path ? fm_file_check_readable(path) : 0;
    bool refused = failure == EACCES || failure == EPERM;
    if (refused && (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "an engine can't read files below /dev and /proc: move the file to another folder: %s", path);
    }
    if (refused && fm_is_root()) {
        return fm_fail(
            error, FM_UNAVAILABLE,
            "an engine that root starts has no capabilities, so it can't read every file: make root the owner "
            "of the file and its folders, or let everybody read them: %s",
            path);
    }
    return FM_OK;
}

/* The member `name` of `saved`, a whole number; `otherwise` if there is none. */
static int64_t saved_number(struct json_object *saved, const char *name, int64_t otherwise) {
    struct json_object *value = NULL;
    json_object_object_get_ex(saved, name, &value);
    return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : otherwise;
}

/* Notes the descriptors for saved state that the front gave this process, if the engine can save its state. */
static void read_saved(const struct fm_kit *kit, struct json_object *params, struct fm_model_files *files) {
    struct json_object *saved = NULL;
    json_object_object_get_ex(params, "saved", &saved);
    bool used = kit->ops->features & FM_FEATURE_SAVED_STATE && json_object_is_type(saved, json_type_object);
    files->saved_read = used ? (int)saved_number(saved, "read", -1) : -1;
    files->saved_write = used ? (int)saved_number(saved, "write", -1) : -1;
    files->saved_max_bytes = used ? saved_number(saved, "max_bytes", 0) : 0;
}

static enum fm_code load_model(struct fm_kit *kit, struct json_object *params, struct fm_model_info *info,
                               struct fm_error *error) {
    struct fm_model_files files;
    if (!kit->initialized) {
        return fm_fail(error, FM_INVALID_REQUEST, "engine.load came before engine.initialize");
    }
    if (kit->loaded) {
        return fm_fail(error, FM_INVALID_REQUEST, "a model is loaded already");
    }
    enum fm_code code = read_path(params, "model", &files.model, error);
    code = code ? code : read_path(params, "mmproj", &files.mmproj, error);
    code = code ? code : read_path(params, "draft_model", &files.draft_model, error);
    code = code ? code : read_path(params, "chat_template", &files.chat_template, error);
    code = code ? code : check_access(files.model, error);
    code = code ? code : check_access(files.mmproj, error);
    code = code ? code : check_access(files.draft_model, error);
    code = code ? code : check_access(files.chat_template, error);
    if (code != FM_OK) {
        return code;
    }
    read_saved(kit, params, &files);
    int64_t start = fm_now_ms();
    code = kit->ops->load(kit->ops->state, kit, &files, info, error);
    fm_log(FM_LOG_INFO, "load: %s after %lld ms", fm_code_name(code), (long long)(fm_now_ms() - start));
    return code;
}

static void answer_load(struct fm_kit *kit, const struct fm_item *item) {
    struct fm_model_info info = {.slots = kit->ops->slots};
    struct fm_error error;
    if (load_model(kit, item->params, &info, &error) != FM_OK) {
        send_error(kit, &item->id, &error);
        return;
    }
    kit->loaded = true;
    kit->images = info.images;
    struct fm_json_writer w = fm_output_result(kit, &item->id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    if (info.context_length > 0) {
        fm_json_key_int(&w, "context_length", info.context_length);
    } else {
        fm_json_key_null(&w, "context_length");
    }
    fm_json_key_int(&w, "slots", info.slots);
    if (info.silent) {
        fm_json_key_bool(&w, "silent", true);
    }
    if (info.memory_bytes > 0) {
        fm_json_key_int(&w, "memory_bytes", info.memory_bytes);
    }
    if (info.gpu) {
        fm_json_key(&w, "gpu");
        fm_gpu_write(info.gpu, &w);
    }
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

static void write_listed(const struct fm_availability *answer, struct fm_json_writer *w) {
    fm_json_key(w, "models");
    fm_json_array_begin(w);
    for (size_t i = 0; i < answer->model_count && i < FM_LISTED_MAX; i++) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", answer->models[i].id);
        if (answer->models[i].context_length > 0) {
            fm_json_key_int(w, "context_length", answer->models[i].context_length);
        }
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static void write_availability(const struct fm_availability *answer, struct fm_json_writer *w) {
    fm_json_key_bool(w, "available", answer->available);
    if (!answer->available) {
        fm_json_key_str(w, "reason_code", answer->reason_code ? answer->reason_code : "HELPER_UNHEALTHY");
    }
    if (answer->detail[0]) {
        fm_json_key_str(w, "detail", answer->detail);
    }
    if (answer->models) {
        write_listed(answer, w);
    }
    if (answer->ttl_ms >= 0) {
        fm_json_key_int(w, "ttl_ms", answer->ttl_ms);
    }
}

static void answer_available(struct fm_kit *kit, const struct fm_item *item) {
    struct fm_availability answer = {.available = !kit->ops->available, .ttl_ms = -1};
    struct fm_error error;
    if (!kit->initialized) {
        (void)fm_fail(&error, FM_INVALID_REQUEST, "engine.available came before engine.initialize");
        send_error(kit, &item->id, &error);
        return;
    }
    if (kit->ops->available) {
        kit->ops->available(kit->ops->state, kit, &answer);
    }
    struct fm_json_writer w = fm_output_result(kit, &item->id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    write_availability(&answer, &w);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

void fm_kit_load_progress(struct fm_kit *kit, double progress) {
    struct fm_json_writer w = fm_output_notification(kit, FM_ENGINE_LOAD_PROGRESS);
    fm_json_object_begin(&w);
    fm_json_key_double(&w, "progress", progress);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

void fm_kit_saved(struct fm_kit *kit, int64_t bytes) {
    struct fm_json_writer w = fm_output_notification(kit, FM_ENGINE_SAVED);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "bytes", bytes);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

void fm_kit_saved_unusable(struct fm_kit *kit, const char *reason) {
    struct fm_json_writer w = fm_output_notification(kit, FM_ENGINE_SAVED_UNUSABLE);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "reason", reason);
    fm_json_object_end(&w);
    fm_output_send_or_end(kit);
}

const char *fm_kit_config(const char **folder) {
    static char *config;
    static char *config_folder;
    static bool read;
    if (!read) {
        config = fm_secret_take("FM_ENGINE_CONFIG");
        config_folder = fm_secret_take("FM_ENGINE_CONFIG_DIR");
        read = true;
    }
    if (folder) {
        *folder = config_folder;
    }
    return config;
}

void fm_kit_gpu_wish(struct fm_gpu_wish *wish) {
    const char *how = getenv("FM_ENGINE_GPU");
    const char *folder = getenv("FM_ENGINE_GPU_DIR");
    bool wanted = how && strcmp(how, "off") != 0 && folder && folder[0];
    wish->folder = wanted ? folder : NULL;
    wish->layers = wanted && strcmp(how, "auto") != 0 ? strtoll(how, NULL, 10) : -1;
}

/* Returns the job if the engine should see it; otherwise finishes it. */
static struct fm_kit_job *admit(struct fm_kit *kit, struct fm_kit_job *job) {
    if (job->fault.code == FM_OK && !kit->loaded) {
        (void)fm_fail(&job->fault, FM_INVALID_REQUEST, "job.start came before a model was loaded");
    } else if (job->fault.code == FM_OK) {
        job->fault.code = fm_admit_check(kit->ops, kit->images, job, &job->fault);
    }
    if (job->fault.code != FM_OK) {
        struct fm_error fault = job->fault;
        fm_kit_job_finish(job, FM_REASON_ERROR, &fault);
        return NULL;
    }
    pthread_mutex_lock(&kit->lock);
    job->taken = true; /* from now on an abort of the job wakes the engine */
    pthread_mutex_unlock(&kit->lock);
    if (fm_kit_job_aborted(job)) {
        fm_kit_job_finish(job, FM_REASON_ABORTED, NULL);
        return NULL;
    }
    return job;
}

/* Handles one item. Returns a job for the engine. */
static struct fm_kit_job *take_item(struct fm_kit *kit, struct fm_item *item) {
    struct fm_kit_job *job = NULL;
    switch (item->kind) {
    case FM_ITEM_INITIALIZE: answer_initialize(kit, item); break;
    case FM_ITEM_AVAILABLE: answer_available(kit, item); break;
    case FM_ITEM_LOAD: answer_load(kit, item); break;
    case FM_ITEM_FAULT: fm_output_fault(kit, &item->id, item->code, item->detail); break;
    case FM_ITEM_JOB: job = admit(kit, item->job); break;
    }
    fm_mailbox_free_item(item);
    return job;
}

static struct fm_kit_job *take_job(struct fm_kit *kit, enum fm_mailbox_wait wait, int64_t until_ms) {
    struct fm_kit_job *job = NULL;
    struct fm_item *item;
    while (!job && (item = fm_mailbox_next(kit, wait, until_ms))) {
        job = take_item(kit, item);
    }
    return job;
}

struct fm_kit_job *fm_kit_take(struct fm_kit *kit, bool wait) {
    return take_job(kit, wait ? FM_WAIT_ITEM : FM_WAIT_NOT, 0);
}

struct fm_kit_job *fm_kit_take_within(struct fm_kit *kit, int64_t ms) {
    return take_job(kit, FM_WAIT_WITHIN, fm_now_ms() + ms);
}

void fm_kit_finish_aborted(struct fm_kit *kit) {
    struct fm_item *item;
    while ((item = fm_mailbox_next_aborted(kit))) {
        fm_kit_job_finish(item->job, FM_REASON_ABORTED, NULL);
        fm_mailbox_free_item(item);
    }
}

static void run_kit(void *argument) {
    struct fm_kit *kit = argument;
    struct fm_item *item;
    while (!kit->loaded && (item = fm_mailbox_next(kit, FM_WAIT_ITEM, 0))) {
        struct fm_kit_job *none = take_item(kit, item); /* no model yet: the job was refused */
        (void)none;
    }
    if (kit->loaded) {
        kit->ops->serve(kit->ops->state, kit);
    }
}

/* ---- the start ---- */

static bool start_kit(struct fm_kit *kit, const struct fm_engine_ops *ops) {
    kit->ops = ops;
    kit->last = &kit->first;
    atomic_init(&kit->ending, false);
    kit->end_fd = fm_watch_for_end();
    kit->wire = fm_claim_stdout();
    fm_inbound_init(&kit->inbound);
    return kit->end_fd >= 0 && kit->wire >= 0 && fm_pipe(&kit->wake_read, &kit->wake_write) == 0 &&
           pthread_mutex_init(&kit->lock, NULL) == 0 && pthread_mutex_init(&kit->output_lock, NULL) == 0 &&
           fm_cond_init(&kit->changed) == 0 && fm_output_init(kit) && fm_thread_start(watch, kit) == 0 &&
           fm_thread_start(fm_reader, kit) == 0;
}

int fm_kit_main(const struct fm_engine_ops *ops, int argc, char *argv[]) {
    struct fm_kit *kit = &the_kit;
    if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
        return fm_describe_print(ops);
    }
    fm_fill_std_fds(); /* opens /dev/null for writing, so it comes first */
    const struct fm_sandbox_needs needs = {
        .network = ops->needs_network, .gpus = ops->needs_gpus, .client = ops->client, .services = ops->needs_services};
    fm_sandbox_enter(&needs, &kit->sandbox);
    if (!start_kit(kit, ops)) {
        return FM_EXIT_NO_MEMORY;
    }
    if (fm_run_on_stack(FM_KIT_STACK, run_kit, kit) != 0) {
        return FM_EXIT_NO_MEMORY;
    }
    return fm_kit_end_status(kit);
}
