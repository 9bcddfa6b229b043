/*
 * Reads an engine's messages (protocol/ENGINE.md): its replies and events become changes of jobs, and of the engine's
 * state.
 */
#include "front/engines/events.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "front/engines/engine.h"
#include "front/engines/lost.h"
#include "front/engines/send.h"
#include "front/engines/table.h"
#include "front/jobs.h"
#include "protocol/params.h"
#include "protocol/version.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_MAX         (INT64_C(1) << 50) /* most bytes that an engine may report, so that sums stay in range */
#define TIMING_MAX_MS      1e12               /* longest time of a job, so that sums stay in range */
#define REPORT_MAX         (1u << 20)         /* bytes of a schema report as JSON; the allowed entries stay below it */
#define REPORT_ENTRIES_MAX 200                /* entries of each list */
#define REPORT_ENTRY_MAX   255                /* bytes of an entry, as of an error's `param` */

/* ---- reading values ---- */

static int64_t get_int(struct json_object *object, const char *key) {
    struct json_object *value;
    return json_object_object_get_ex(object, key, &value) ? json_object_get_int64(value) : 0;
}

/* Reads a count. An invalid count is replaced by the nearest valid one, so that sums stay in range. */
static int64_t get_count(struct json_object *object, const char *key) {
    int64_t count = get_int(object, key);
    return count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : count;
}

/* Reads a count of tokens; FM_UNKNOWN_COUNT if the engine does not report it. */
static int64_t get_tokens(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value ? get_count(object, key) : FM_UNKNOWN_COUNT;
}

static const char *get_string(struct json_object *object, const char *key) {
    struct json_object *value;
    bool found = json_object_object_get_ex(object, key, &value) && json_object_is_type(value, json_type_string);
    return found ? json_object_get_string(value) : NULL;
}

/* The codes that an engine may use; the others are the front's own. */
static enum fm_code read_code(const char *name, enum fm_code fallback) {
    enum fm_code code = name ? fm_code_parse(name) : fallback;
    return code == FM_TIMEOUT || code == FM_CANCELLED ? FM_INTERNAL : code;
}

/* Reads the other members of an engine's error, besides its code and detail. */
static void read_error_more(struct json_object *value, struct fm_error *error) {
    struct json_object *elsewhere = NULL;
    const char *reason = get_string(value, "reason_code");
    int64_t retry_ms = get_int(value, "retry_after_ms");
    json_object_object_get_ex(value, "elsewhere", &elsewhere);
    error->elsewhere = json_object_is_type(elsewhere, json_type_boolean) && json_object_get_boolean(elsewhere);
    error->retry_ms = retry_ms < 0 ? 0 : retry_ms > FM_WAIT_MAX_MS ? FM_WAIT_MAX_MS : retry_ms;
    if (reason && fm_is_reason_code(reason)) {
        snprintf(error->reason_code, sizeof error->reason_code, "%s", reason);
    }
}

/* Reads an engine's {code, detail, param?, reason_code?, retry_after_ms?, elsewhere?}. */
static void read_error(struct json_object *object, enum fm_code fallback, struct fm_error *error) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, "error", &value);
    const char *code = get_string(value, "code");
    const char *detail = get_string(value, "detail");
    const char *param = get_string(value, "param");
    fm_fail(error, read_code(code, fallback), "%s", detail ? detail : "the engine gave no reason");
    param = param ? param : "";
    snprintf(error->param, sizeof error->param, "%.*s", fm_utf8_shown(param, sizeof error->param - 1), param);
    read_error_more(value, error);
}

/* ---- replies ---- */

static bool is_ok(struct json_object *result) {
    struct json_object *ok;
    return json_object_object_get_ex(result, "ok", &ok) && json_object_get_boolean(ok);
}

/* Reads why the engine refused a call: the result's `error`, or a JSON-RPC error. */
static void read_refusal(const struct fm_rpc_message *message, const char *program, struct fm_error *error) {
    const char *text = get_string(message->error, "message");
    if (message->error) {
        fm_fail(error, FM_UNAVAILABLE, "the engine program %s: %s", program,
                text ? text : "an error without a message");
    } else {
        read_error(message->result, FM_UNAVAILABLE, error);
    }
}

/* Reads the extras that a list names. An engine without extras, or an older one, has no list. */
static unsigned read_parameters(struct json_object *list) {
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    unsigned has = 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *name = json_object_array_get_idx(list, i);
        for (unsigned bit = 0; bit < FM_EXTRA_COUNT && json_object_is_type(name, json_type_string); bit++) {
            has |= strcmp(json_object_get_string(name), fm_extra_names[bit]) == 0 ? 1u << bit : 0;
        }
    }
    return has;
}

/*
 * Whether the engine can be used, judged by its reply to engine.initialize. `said`: what the engine reports of itself
 * in the reply.
 */
static enum fm_code judge_initialized(const struct fm_engine *engine, const struct fm_rpc_message *message,
                                      const struct fm_descriptor *said, struct fm_error *error) {
    int64_t version = get_int(message->result, "protocol_version");
    if (!is_ok(message->result)) {
        read_refusal(message, engine->path, error);
        return error->code;
    }
    if (version != FM_ENGINE_PROTOCOL_VERSION) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the engine program %s speaks version %lld of the engine protocol, not %d", engine->path,
                       (long long)version, FM_ENGINE_PROTOCOL_VERSION);
    }
    if (said->reads_files && !engine->program->files.descriptor.reads_files) { /* models were listed before this */
        return fm_fail(error, FM_UNAVAILABLE,
                       "the models of the engine %s are files, but %s.json is missing or says otherwise: write it with "
                       "`fm-engine-%s --describe`, and start fm-proxy again",
                       engine->program->files.name, engine->path, engine->program->files.name);
    }
    return FM_OK;
}

static void on_initialized(struct fm_engine *engine, const struct fm_rpc_message *message) {
    struct fm_program *program = engine->program;
    struct fm_error error;
    struct fm_descriptor said;
    fm_descriptor_take(&said, message->result);
    if (judge_initialized(engine, message, &said, &error) != FM_OK) {
        fm_engine_kill_locked(engine, FM_END_REFUSED, &error);
        return;
    }
    program->descriptor = said;
    engine->initialized = true;
    engine->signs++;
    engine->progress_ms = fm_now_ms();
    engine->load_progress = 0;
    engine->parameters = read_parameters(json_object_object_get(message->result, "parameters"));
    program->has_sandbox = fm_sandbox_read(json_object_object_get(message->result, "sandbox"), &program->sandbox);
    if (engine->probes) {
        fm_engine_send_available_locked(engine);
    } else {
        fm_engine_send_load_locked(engine);
    }
}

/*
 * Handles the reply to engine.available. A process that was started only for this reply has nothing else to do
 * afterwards.
 */
static void on_available(struct fm_engine *engine, const struct fm_rpc_message *message) {
    struct fm_verdict *availability = &engine->program->availability;
    struct fm_error error;
    if (is_ok(message->result)) {
        fm_availability_take(availability, message->result, fm_now_ms());
    } else {
        read_refusal(message, engine->path, &error);
        fm_availability_fail(availability, &error, fm_now_ms());
    }
    engine->program->asking = false;
    fm_fail(&error, FM_INTERNAL, "it has told whether it is available");
    fm_engine_kill_locked(engine, FM_END_ASKED, &error);
}

/*
 * Notes the memory that the engine reports; it counts in place of the estimate. False: no budget can hold it, so the
 * engine is ended.
 */
static bool take_memory(struct fm_engine *engine, int64_t bytes) {
    struct fm_front *front = engine->front;
    struct fm_error error;
    if (bytes <= 0) {
        return true;
    }
    bytes = bytes < MEMORY_MAX ? bytes : MEMORY_MAX;
    engine->memory = bytes;
    fm_needs_note(&engine->program->needs, &engine->model, bytes);
    if (fm_needs_check(&engine->program->needs, &engine->model, front->options.memory_budget, &error) != FM_OK) {
        fm_engine_kill_locked(engine, FM_END_REFUSED, &error);
        return false;
    }
    return true;
}

static void on_loaded(struct fm_engine *engine, const struct fm_rpc_message *message) {
    struct fm_program *program = engine->program;
    if (!is_ok(message->result)) {
        struct fm_error error;
        read_refusal(message, engine->path, &error);
        if (error.reason_code[0]) {
            fm_availability_fail(&program->availability, &error, fm_now_ms());
        }
        fm_engine_kill_locked(engine, FM_END_REFUSED, &error);
        return;
    }
    if (!take_memory(engine, get_int(message->result, "memory_bytes"))) {
        return;
    }
    int64_t slots = get_int(message->result, "slots");
    engine->slots = slots < 1 ? 1 : slots > FM_SLOTS_MAX ? FM_SLOTS_MAX : (unsigned)slots;
    engine->silent = json_object_get_boolean(json_object_object_get(message->result, "silent"));
    engine->loaded = true;
    engine->saves = engine->kv.write >= 0;
    struct json_object *gpu = NULL;
    if (json_object_object_get_ex(message->result, "gpu", &gpu) && engine->gpu_told) {
        program->has_gpu = fm_gpu_read(gpu, &program->gpu);
        engine->gpu_unused = program->has_gpu && !program->gpu.device[0];
    }
    fm_failed_load_clear(&program->failed_loads, &engine->model);
    if (program->files.descriptor.features & FM_FEATURE_AVAILABILITY) {
        fm_availability_good(&program->availability, fm_now_ms());
    }
    engine->signs++;
    engine->context_length = get_count(message->result, "context_length");
    engine->used_us = fm_now_us();
    engine->load_ms = fm_now_ms() - engine->started_ms;
    fm_engine_set_state_locked(engine, FM_ENGINE_READY);
    fm_log(FM_LOG_INFO, "engine %d is ready, %u slots", (int)engine->pid, engine->slots);
}

static void take_reply(struct fm_engine *engine, const struct fm_rpc_message *message) {
    struct fm_rpc_id initialize = fm_rpc_id_int(FM_ENGINE_INITIALIZE_ID);
    struct fm_rpc_id load = fm_rpc_id_int(FM_ENGINE_LOAD_ID);
    struct fm_rpc_id available = fm_rpc_id_int(FM_ENGINE_AVAILABLE_ID);
    if (message->error && !message->id.len) { /* the id does not name a call, so nobody knows which call failed */
        struct fm_error error;
        fm_fail(&error, FM_INTERNAL, "the engine could not read a message");
        fm_engine_kill_locked(engine, FM_END_CRASH, &error);
    } else if (engine->state != FM_ENGINE_STARTING) {
        return;
    } else if (!engine->initialized && fm_rpc_id_equal(&message->id, &initialize)) {
        on_initialized(engine, message);
    } else if (engine->initialized && engine->probes && fm_rpc_id_equal(&message->id, &available)) {
        on_available(engine, message);
    } else if (engine->initialized && !engine->probes && fm_rpc_id_equal(&message->id, &load)) {
        on_loaded(engine, message);
    }
}

/* ---- events of jobs ---- */

/*
 * Copies the strings in the list `name` of a schema report. Other values are left out, and so is what goes beyond the
 * limits.
 */
static void copy_report_list(struct json_object *report, const char *name, struct fm_json_writer *w) {
    struct json_object *list;
    bool found = json_object_object_get_ex(report, name, &list) && json_object_is_type(list, json_type_array);
    size_t count = found ? json_object_array_length(list) : 0;
    size_t written = 0;
    fm_json_key(w, name);
    fm_json_array_begin(w);
    for (size_t i = 0; i < count && written < REPORT_ENTRIES_MAX; i++) {
        struct json_object *entry = json_object_array_get_idx(list, i);
        if (json_object_is_type(entry, json_type_string)) {
            const char *text = json_object_get_string(entry);
            fm_json_string(w, text, (size_t)fm_utf8_shown(text, REPORT_ENTRY_MAX));
            written++;
        }
    }
    fm_json_array_end(w);
}

/* Keeps an engine's `schema_report` for the host, if the request asks for it. False when out of memory. */
static bool take_report(struct fm_answer *answer, struct json_object *params) {
    struct json_object *report;
    bool told =
        json_object_object_get_ex(params, "schema_report", &report) && json_object_is_type(report, json_type_object);
    if (!answer->request.schema_report || !told) {
        return true;
    }
    struct fm_buf members;
    fm_buf_init(&members, REPORT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&members);
    copy_report_list(report, "enforced", &w);
    copy_report_list(report, "checked", &w);
    bool ok = !members.failed;
    if (ok) {
        fm_answer_report(answer, &members);
    }
    fm_buf_free(&members);
    return ok;
}

static bool decides(const struct fm_job *job) {
    return job->answer.request.questions != NULL;
}

static bool embeds(const struct fm_job *job) {
    return job->answer.request.input_count > 0 && !decides(job);
}

/* False when the vectors are not what the request asks for, or do not fit into a reply. The job is stopped then. */
static bool take_dimension(struct fm_job *job, struct json_object *params) {
    struct fm_error error;
    if (fm_answer_expect_vectors(&job->answer, get_int(params, "dimension"), &error) == FM_OK) {
        return true;
    }
    fm_job_stop_locked(job, &error);
    return false;
}

static void on_accepted(struct fm_job *job, struct json_object *params) {
    if (job->state != FM_JOB_SENT) {
        return;
    }
    bool again = fm_answer_has_next(&job->answer) || fm_engine_may_use_gpu_locked(job->engine) || fm_job_may_move(job);
    if (!again) {
        fm_request_take_job(&job->answer.request, job->engine->spent);
    }
    job->state = FM_JOB_RUNNING;
    job->accepted_ms = job->progress_ms;
    job->answer.timings.queue_us += fm_now_us() - job->queued_us;
    job->answer.any_order = job->engine->program->descriptor.any_order;
    if (!job->stopping && !job->answer.opened) { /* the first choice */
        if (embeds(job) && !take_dimension(job, params)) {
            return;
        }
        if (!take_report(&job->answer, params)) {
            struct fm_error error;
            (void)fm_fail_no_memory(&error);
            fm_job_stop_locked(job, &error);
        }
        fm_answer_drop(&job->answer, get_count(params, "dropped"));
    }
    if (!job->stopping) { /* a job that is being stopped fails without a stream */
        fm_answer_open(&job->answer, get_tokens(params, "input_tokens"));
    }
    pthread_cond_broadcast(&job->changed);
}

/*
 * Handles an answer that the engine makes anew, because it lost what it needs to go on. If a reader got a part of the
 * answer, the job ends with the engine's error.
 */
static void on_restarted(struct fm_job *job, struct json_object *params) {
    struct fm_error error;
    read_error(params, FM_INTERNAL, &error);
    if (!fm_job_can_restart(job)) {
        fm_job_stop_locked(job, &error);
    } else if (!job->stopping) {
        fm_log(FM_LOG_INFO, "an answer is made anew: %s", error.detail);
        fm_job_restarted_locked(job);
    }
}

/*
 * Notes progress in the prompt, or a number of tokens whose text is held back. Such tokens count as the first output.
 */
static void on_progress(struct fm_job *job, struct json_object *params) {
    int64_t output = get_count(params, "output_tokens");
    job->answer.usage.cached = get_count(params, "cached");
    if (output > 0 && job->answer.opened) {
        job->produced = true;
        job->answer.usage.output = output;
    } else if (job->answer.opened) {
        fm_answer_progress(&job->answer, get_count(params, "processed"), job->progress_ms - job->accepted_ms);
    }
}

/* Fails the job, because the engine sent something that the protocol does not allow. The engine has to stop the job. */
static void fail_job(struct fm_job *job, const char *detail) {
    struct fm_error error;
    fm_fail(&error, FM_INTERNAL, "%s", detail);
    fm_job_stop_locked(job, &error);
}

/* Returns the text of an output event and notes that output has begun; NULL: no text, or it may not come yet. */
static const char *take_text(struct fm_job *job, struct json_object *params, const char *member, size_t *len) {
    struct json_object *text = NULL;
    json_object_object_get_ex(params, member, &text);
    if (!json_object_is_type(text, json_type_string) || !job->answer.opened) {
        return NULL;
    }
    job->produced = true;
    job->answer.usage.output = get_tokens(params, "output_tokens");
    *len = (size_t)json_object_get_string_len(text);
    return json_object_get_string(text);
}

/* Takes a piece of text, with its log probabilities if the request asks for them. */
static void on_delta(struct fm_job *job, struct json_object *params) {
    size_t len = 0;
    const char *text = take_text(job, params, "text", &len);
    struct fm_error error;
    if (!text) {
        return;
    }
    enum fm_code code = fm_answer_say(&job->answer, FM_PART_TEXT, text, len, &error);
    if (code == FM_OK && len > 0) {
        code = fm_answer_logprobs(&job->answer, json_object_object_get(params, "logprobs"), &error);
    }
    if (code != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static void on_refusal(struct fm_job *job, struct json_object *params) {
    size_t len = 0;
    const char *text = take_text(job, params, "text", &len);
    struct fm_error error;
    if (text && fm_answer_say(&job->answer, FM_PART_REFUSAL, text, len, &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static void on_state(struct fm_job *job, struct json_object *params) {
    struct json_object *state = NULL;
    struct fm_error error;
    json_object_object_get_ex(params, "state", &state);
    bool valid = json_object_is_type(state, json_type_string) && json_object_get_string_len(state) > 0;
    if (!valid || !job->answer.opened) {
        return;
    }
    job->produced = true;
    size_t len = (size_t)json_object_get_string_len(state);
    if (fm_answer_state(&job->answer, json_object_get_string(state), len, &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static void on_reasoning(struct fm_job *job, struct json_object *params) {
    struct json_object *text;
    bool valid = json_object_object_get_ex(params, "text", &text) && json_object_is_type(text, json_type_string);
    struct fm_usage *usage = &job->answer.usage;
    struct fm_error error;
    if (!valid || !job->answer.opened) {
        return;
    }
    job->produced = true;
    usage->output = get_tokens(params, "output_tokens");
    usage->reasoning = usage->output;
    size_t len = (size_t)json_object_get_string_len(text);
    if (fm_answer_reason(&job->answer, json_object_get_string(text), len, &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

/* Whether the index in `params` is `next`, the index of the next call or vector. */
static bool is_index(struct json_object *params, size_t next) {
    struct json_object *index;
    return json_object_object_get_ex(params, "index", &index) && json_object_is_type(index, json_type_int) &&
           json_object_get_int64(index) == (int64_t)next;
}

static void on_tool_call(struct fm_job *job, struct json_object *params) {
    const char *name = get_string(params, "name");
    struct fm_error error;
    if (!job->answer.opened) {
        return;
    }
    if (!name || !is_index(params, job->answer.call_count)) {
        fail_job(job, "the engine began a call without its name, or not in order");
        return;
    }
    job->produced = true;
    job->answer.usage.output = get_tokens(params, "output_tokens");
    if (fm_answer_call(&job->answer, name, &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static void on_tool_delta(struct fm_job *job, struct json_object *params) {
    struct json_object *arguments = NULL;
    json_object_object_get_ex(params, "arguments", &arguments);
    if (!job->answer.opened) {
        return;
    }
    const struct fm_output_part *last = fm_answer_last_part(&job->answer);
    bool open = last && last->kind == FM_PART_CALL && is_index(params, job->answer.call_count - 1);
    size_t len = 0;
    if (!open || !json_object_is_type(arguments, json_type_string)) {
        fail_job(job, "the engine sent arguments of a call that it does not make");
        return;
    }
    const char *text = take_text(job, params, "arguments", &len);
    if (!fm_answer_append(&job->answer, text, len)) {
        fail_job(job, "the answer is too large to hold");
    }
}

static void on_embedding(struct fm_job *job, struct json_object *params) {
    struct fm_error error;
    const char *vector = get_string(params, "vector");
    if (!job->answer.opened) {
        return;
    }
    if (!vector || !is_index(params, job->answer.entry_count)) {
        fail_job(job, "the engine sent a vector without its text, or out of order");
        return;
    }
    job->produced = true;
    if (fm_answer_vector(&job->answer, vector, strlen(vector), &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static void on_decision(struct fm_job *job, struct json_object *params) {
    struct fm_error error;
    struct json_object *logprobs = json_object_object_get(params, "logprobs");
    if (!job->answer.opened) {
        return;
    }
    if (!is_index(params, job->answer.entry_count)) {
        fail_job(job, "the engine sent a decision out of order");
        return;
    }
    job->produced = true;
    if (fm_answer_decide(&job->answer, logprobs, &error) != FM_OK) {
        fm_job_stop_locked(job, &error);
    }
}

static const struct {
    const char *reason;
    enum fm_finish finish;
} finish_reasons[] = {
    {"stop", FM_FINISH_STOP},
    {"length", FM_FINISH_LENGTH},
    {"content_filter", FM_FINISH_CONTENT_FILTER},
};

static void read_usage(struct json_object *params, struct fm_usage *usage) {
    struct json_object *value;
    if (json_object_object_get_ex(params, "usage", &value) && json_object_is_type(value, json_type_object)) {
        usage->input = get_tokens(value, "input_tokens");
        usage->cached = get_tokens(value, "cached_tokens");
        usage->output = get_tokens(value, "output_tokens");
        usage->reasoning = get_tokens(value, "reasoning_tokens");
    }
}

/* Reads a time in ms and returns it in µs. An invalid time is replaced by the nearest valid one. */
static int64_t get_us(struct json_object *object, const char *key) {
    struct json_object *value;
    double ms = json_object_object_get_ex(object, key, &value) ? json_object_get_double(value) : 0;
    return !(ms > 0) ? 0 : ms > TIMING_MAX_MS ? (int64_t)TIMING_MAX_MS * 1000 : (int64_t)(ms * 1000 + 0.5);
}

static void read_timings(struct json_object *params, struct fm_timings *timings) {
    struct json_object *value;
    if (json_object_object_get_ex(params, "timings", &value) && json_object_is_type(value, json_type_object)) {
        timings->told = true;
        timings->prefill_us = get_us(value, "prefill_ms");
        timings->decode_us = get_us(value, "decode_ms");
        timings->speculates = json_object_object_get_ex(value, "drafted_tokens", NULL);
        timings->drafted = get_count(value, "drafted_tokens");
        timings->accepted = get_count(value, "accepted_tokens");
    }
}

/* Whether the job is for its engine's default model, by this name or without one. */
static bool is_for_default(const struct fm_job *job) {
    const struct fm_verdict *availability = &job->engine->program->availability;
    if (!job->model.listed) {
        return job->model.is_default;
    }
    const char *asked = job->model.asked;
    return !asked || (availability->model_count > 0 && strcmp(availability->models[0].id, asked) == 0);
}

/*
 * Notes what the end of a job shows about its engine. Only the default model counts: another model may be at another
 * server.
 */
static void note_availability(const struct fm_job *job, const struct fm_error *error) {
    struct fm_program *program = job->engine->program;
    if (program->files.descriptor.features & FM_FEATURE_AVAILABILITY && is_for_default(job)) {
        fm_availability_job(&program->availability, error, fm_now_ms());
    }
}

static void on_finished(struct fm_job *job, struct json_object *params) {
    const char *reason = get_string(params, "reason");
    const char *mismatch = get_string(params, "schema_error");
    struct fm_error error;
    if (job->answer.opened) {
        read_usage(params, &job->answer.usage);
        read_timings(params, &job->answer.timings);
        fm_answer_call_unknown(&job->answer, get_string(params, "unknown_tool"));
    }
    if (job->stopping) { /* the stop came first, so it decides */
        error = job->stop_error;
        enum fm_finish finish = error.code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
        fm_job_settle_locked(job, finish, &error);
        return;
    }
    bool whole = job->answer.entry_count == job->answer.request.input_count; /* both are 0 for an answer in text */
    if (reason && strcmp(reason, "error") != 0 && !whole) {
        fm_fail(&error, FM_INTERNAL, "the engine did not send all %s", decides(job) ? "decisions" : "vectors");
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
        return;
    }
    for (size_t i = 0; i < sizeof finish_reasons / sizeof finish_reasons[0]; i++) {
        if (reason && strcmp(reason, finish_reasons[i].reason) == 0 && job->answer.opened) {
            fm_crash_loop_reset(&job->engine->program->crash_loop, fm_model_blamed(&job->model));
            note_availability(job, NULL);
            if (mismatch) {
                fm_answer_mismatch(&job->answer, *mismatch ? mismatch : "the engine gave no reason");
            }
            fm_job_made_locked(job, finish_reasons[i].finish);
            return;
        }
    }
    read_error(params, FM_INTERNAL, &error);
    note_availability(job, &error);
    fm_request_rename_param(&job->answer.request, &error);
    fm_request_name_prompt(&job->answer.request, job->answer.choice, &error);
    fm_job_fail_or_move_locked(job, &error);
}

/* The kind of output in an event. A job has output of one kind only. */
enum output { NO_OUTPUT, ANSWER, VECTOR, DECISION };

static enum output output_of(const struct fm_job *job) {
    return decides(job) ? DECISION : embeds(job) ? VECTOR : ANSWER;
}

static const struct {
    const char *method;
    enum output output;
    void (*handle)(struct fm_job *job, struct json_object *params);
} job_events[] = {
    {FM_JOB_DELTA, ANSWER, on_delta},          {FM_JOB_REASONING, ANSWER, on_reasoning},
    {FM_JOB_REFUSAL, ANSWER, on_refusal},      {FM_JOB_STATE, ANSWER, on_state},
    {FM_JOB_TOOL_CALL, ANSWER, on_tool_call},  {FM_JOB_TOOL_DELTA, ANSWER, on_tool_delta},
    {FM_JOB_EMBEDDING, VECTOR, on_embedding},  {FM_JOB_DECISION, DECISION, on_decision},
    {FM_JOB_PROGRESS, NO_OUTPUT, on_progress},
    {FM_JOB_ACCEPTED, NO_OUTPUT, on_accepted}, {FM_JOB_RESTARTED, NO_OUTPUT, on_restarted},
    {FM_JOB_FINISHED, NO_OUTPUT, on_finished},
};

static void on_load_progress(struct fm_engine *engine, struct json_object *params) {
    struct json_object *value;
    double progress = json_object_object_get_ex(params, "progress", &value) ? json_object_get_double(value) : 0;
    if (progress > engine->load_progress) {
        engine->load_progress = progress;
        engine->progress_ms = fm_now_ms();
        engine->signs++;
    }
}

static void on_saved(struct fm_engine *engine, struct json_object *params) {
    engine->saved_bytes = get_int(params, "bytes");
}

/* Handles the engine's report that it can't use the saved state. */
static void on_saved_unusable(struct fm_engine *engine, struct json_object *params) {
    const char *reason = get_string(params, "reason");
    fm_log(FM_LOG_INFO, "what an earlier engine saved is removed: %s", reason ? reason : "the engine gave no reason");
    engine->drop_saved = true;
}

static const struct {
    const char *method;
    void (*handle)(struct fm_engine *engine, struct json_object *params);
} engine_events[] = {
    {FM_ENGINE_LOAD_PROGRESS, on_load_progress},
    {FM_ENGINE_SAVED, on_saved},
    {FM_ENGINE_SAVED_UNUSABLE, on_saved_unusable},
};

/* Takes an event about the engine itself. False: the event is about something else. */
static bool take_engine_event(struct fm_engine *engine, const struct fm_rpc_message *message) {
    for (size_t i = 0; i < sizeof engine_events / sizeof engine_events[0]; i++) {
        if (strcmp(message->method, engine_events[i].method) == 0) {
            engine_events[i].handle(engine, message->params);
            return true;
        }
    }
    return false;
}

static void take_event(struct fm_engine *engine, const struct fm_rpc_message *message) {
    if (take_engine_event(engine, message)) {
        return;
    }
    uint64_t run = (uint64_t)get_int(message->params, "job");
    struct fm_job *job = fm_job_by_run_locked(engine->front, run);
    if (strcmp(message->method, FM_JOB_FINISHED) == 0) {
        fm_engine_find_run_locked(engine, run);
    }
    if (!job || job->engine != engine || job->state == FM_JOB_QUEUED) {
        return; /* the job is settled already, or was never known */
    }
    for (size_t i = 0; i < sizeof job_events / sizeof job_events[0]; i++) {
        if (strcmp(message->method, job_events[i].method) == 0) {
            job->progress_ms = fm_now_ms();
            engine->signs++;
            engine->used_us = fm_now_us();
            if (job_events[i].output != NO_OUTPUT && job_events[i].output != output_of(job)) {
                fail_job(job, "the engine sent output that the request does not ask for");
            } else {
                job_events[i].handle(job, message->params);
            }
            return;
        }
    }
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_engine *engine = context;
    (void)root;
    fm_front_enter(engine->front);
    engine->heard_ms = fm_now_ms();
    if (message->kind == FM_RPC_RESPONSE) {
        take_reply(engine, message);
    } else if (message->kind == FM_RPC_NOTIFICATION) {
        take_event(engine, message);
    }
    fm_front_leave(engine->front);
    fm_buf_free(&engine->spent[0]); /* megabytes: a pong would wait for the lock meanwhile */
    fm_buf_free(&engine->spent[1]);
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct fm_engine *engine = context;
    struct fm_error error;
    (void)id;
    (void)code;
    fm_fail(&error, FM_INTERNAL, "the engine sent what is not a message: %s", detail);
    fm_front_enter(engine->front);
    fm_engine_kill_locked(engine, FM_END_CRASH, &error);
    fm_front_leave(engine->front);
}

const struct fm_inbound_handler fm_engine_events_handler = {.message = on_message, .fault = on_fault};
