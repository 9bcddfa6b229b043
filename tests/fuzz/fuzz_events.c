/*
 * Fuzzes the engine's messages, with jobs in flight. An input is a list of steps: calls of the host, and replies,
 * events, raw bodies and raw bytes of the engine, in any order and with any values. front.c checks what the host gets
 * against PROTOCOL.md: whole frames, streams in order and without gaps, one end each. This file checks what the engine
 * gets against ENGINE.md.
 */
#include "front/engines/engine.h"
#include "front/engines/events.h"
#include "front/engines/places.h"
#include "front/engines/send.h"
#include "tests/fuzz/front.h"

#define BODY_MAX (1u << 20)
#define VECTOR   255u /* the choice that makes an event job.embedding */

static struct {
    struct fm_inbound inbound;
    bool broken;                    /* the engine's stdout can't be read any more */
    uint64_t jobs[FM_JOBS_MAX * 4]; /* the numbers of the last job.starts */
    size_t job_count;
    uint64_t aborted[FM_JOBS_MAX * 4];
    size_t aborts;
} engine;

/* ---- in place of places.c and supervisor.c: an engine that starts at once, and dies on request ---- */

static bool is_queued(const struct fm_job *job) {
    return job->state == FM_JOB_QUEUED && !job->answer.request.unresolved;
}

static void start_engine(void) {
    front.engines[0].state = FM_ENGINE_STARTING;
    front.engines[0].pid = 1;
    front.engines[0].last_turn = UINT64_MAX;
    front.engines[0].initialized = false;
    front.engines[0].loaded = false;
    front.engines[0].end_error.code = FM_OK;
    engine.broken = false;
    fm_inbound_init(&engine.inbound);
    fm_engine_send_initialize_locked(&front.engines[0]);
}

void fm_engines_pump_locked(struct fm_front *unused) {
    struct fm_engine *of = &front.engines[0];
    struct fm_job *job;
    (void)unused;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        job = &front.jobs[i];
        if (fm_job_is_held(job) && job->abort_due) {
            job->abort_due = false;
            fm_engine_send_abort_locked(of, job);
        }
    }
    for (size_t i = 0; i < FM_JOBS_MAX && !front.ending; i++) {
        if (is_queued(&front.jobs[i])) {
            front.jobs[i].engine = of;
        }
        if (is_queued(&front.jobs[i]) && of->state == FM_ENGINE_IDLE) {
            start_engine();
        }
    }
}

void fm_engine_kill_locked(struct fm_engine *of, enum fm_engine_end end, const struct fm_error *error) {
    (void)end;
    HOLDS(error->code != FM_OK && *error->detail);
    if (of->end_error.code == FM_OK) {
        of->end_error = *error;
    }
    if (of->pid) {
        of->state = FM_ENGINE_STOPPING;
    }
}

static void settle_dead(struct fm_job *job, const struct fm_error *death) {
    struct fm_error error = job->stopping ? job->stop_error : *death;
    if (job->state == FM_JOB_SENT || job->state == FM_JOB_RUNNING || !front.engines[0].loaded) {
        enum fm_finish finish = error.code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
        fm_job_settle_locked(job, finish, &error);
    }
}

/* Handles the end of the process: its jobs end, and the next process starts if jobs wait. */
static void reap_engine(void) {
    struct fm_error error = front.engines[0].end_error;
    if (!front.engines[0].pid) {
        return;
    }
    if (error.code == FM_OK) {
        fm_fail(&error, FM_INTERNAL, "it died");
    }
    front.engines[0].pid = 0;
    front.engines[0].state = FM_ENGINE_STOPPING;
    fm_inbound_free(&engine.inbound);
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        struct fm_job *job = &front.jobs[i];
        if (job->state != FM_JOB_FREE && job->state != FM_JOB_CLOSING) {
            settle_dead(job, &error);
        }
    }
    front.engines[0].state = FM_ENGINE_IDLE;
    fm_front_pump_locked(&front);
}

/* ---- messages to the engine ---- */

static uint64_t job_of(struct json_object *params) {
    struct json_object *job = NULL;
    HOLDS(json_object_object_get_ex(params, "job", &job) && json_object_is_type(job, json_type_int));
    return (uint64_t)json_object_get_int64(job);
}

static bool was_started(uint64_t job) {
    size_t kept = engine.job_count < COUNT(engine.jobs) ? engine.job_count : COUNT(engine.jobs);
    size_t i = 0;
    while (i < kept && engine.jobs[i] != job) {
        i++;
    }
    return i < kept;
}

static void take_start(uint64_t job) {
    HOLDS(front.engines[0].state == FM_ENGINE_READY && job > 0 && !was_started(job)); /* a number is never used twice */
    engine.jobs[engine.job_count++ % COUNT(engine.jobs)] = job;
}

static void take_abort(uint64_t job) {
    HOLDS(was_started(job) || engine.job_count > COUNT(engine.jobs));
    for (size_t i = 0; i < engine.aborts; i++) {
        HOLDS_OR(engine.aborted[i] != job, "job %llu is aborted twice", (unsigned long long)job);
    }
    if (engine.aborts < COUNT(engine.aborted)) {
        engine.aborted[engine.aborts++] = job;
    }
}

void engine_got(struct json_object *message) {
    struct json_object *method = NULL;
    struct json_object *params = NULL;
    HOLDS(front.engines[0].pid);
    HOLDS(json_object_object_get_ex(message, "method", &method) &&
          json_object_object_get_ex(message, "params", &params));
    const char *name = json_object_get_string(method);
    if (strcmp(name, "job.start") == 0) {
        take_start(job_of(params));
    } else if (strcmp(name, "job.abort") == 0) {
        take_abort(job_of(params));
    } else if (strcmp(name, "engine.shutdown") == 0) {
        HOLDS(front.ending);
    } else {
        bool call = json_object_object_get_ex(message, "id", NULL);
        HOLDS_OR(strcmp(name, "engine.initialize") == 0 || strcmp(name, "engine.load") == 0, "%s", name);
        HOLDS(call && front.engines[0].state == FM_ENGINE_STARTING);
    }
}

/* ---- the engine's output ---- */

struct before {
    uint64_t number;
    enum fm_job_state state;
    bool stopping;
    bool opened;
};

/* Checks what the engine must not be able to do to a job, whatever it sends. */
static void expect_job(const struct before *before, const struct fm_job *job) {
    bool same = job->state != FM_JOB_FREE && job->number == before->number;
    if (before->state == FM_JOB_QUEUED) { /* the engine does not have the job yet: the job waits on, or is sent now */
        HOLDS(same && (job->state == FM_JOB_QUEUED || job->state == FM_JOB_SENT));
    }
    if (same && !before->opened) {
        HOLDS(!before->stopping || !job->answer.opened); /* a job that is stopped fails without having begun a stream */
        HOLDS(job->answer.opened || (job->answer.output.len == 0 && job->answer.call_count == 0));
    }
}

static void engine_send(const char *bytes, size_t len) {
    struct before before[FM_JOBS_MAX];
    struct fm_inbound_handler handler = fm_engine_events_handler;
    struct fm_error error;
    handler.context = &front.engines[0];
    if (!front.engines[0].pid || engine.broken) {
        return;
    }
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        const struct fm_job *job = &front.jobs[i];
        before[i] = (struct before){job->number, job->state, job->stopping, job->answer.opened};
    }
    char *copy = exact_copy(bytes, len);
    engine.broken = fm_inbound_feed(&engine.inbound, copy, len, &handler) != NULL;
    free(copy);
    front_write();
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        expect_job(&before[i], &front.jobs[i]);
    }
    HOLDS(!front.engines[0].loaded || (front.engines[0].slots >= 1 && front.engines[0].slots <= FM_JOBS_MAX));
    if (engine.broken) { /* as in supervisor.c */
        fm_fail(&error, FM_INTERNAL, "the engine sent what is not a frame");
        fm_engine_kill_locked(&front.engines[0], FM_END_CRASH, &error);
        reap_engine();
    }
}

static void engine_send_body(const char *body, size_t len) {
    char header[40];
    int header_len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", len);
    engine_send(header, (size_t)header_len);
    engine_send(body, len);
}

static const char *const names[] = {
    "job",       "input_tokens", "processed",        "cached",           "text",     "output_tokens", "reason",
    "usage",     "error",        "cached_tokens",    "reasoning_tokens", "code",     "detail",        "param",
    "ok",        "slots",        "protocol_version", "context_length",   "progress", "index",         "name",
    "arguments",
};

static const char *const values[] = {
    "1",
    "0",
    "2",
    "-1",
    "3",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "1.5",
    "1e300",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "\"\"",
    "\"stop\"",
    "\"length\"",
    "\"content_filter\"",
    "\"aborted\"",
    "\"error\"",
    "\"x\"",
    "\"\\u0000\"",
    "\"\xF0\x9F\x98\x80\"",
    "\"CANCELLED\"",
    "\"TIMEOUT\"",
    "\"OK\"",
    "\"CONTEXT_OVERFLOW\"",
    "\"no such code\"",
    "2147483648",
    "\"12\"",
    "64",
    "65",
    "\"maximum context length\"",
    "\"f\"",
    "\"g\"",
};

static void append_member(struct fm_buf *body, const char *name, const char *value, bool first) {
    if (!first) {
        fm_buf_append_char(body, ',');
    }
    fm_buf_append_char(body, '"');
    fm_buf_append_str(body, name);
    fm_buf_append_str(body, "\":");
    fm_buf_append_str(body, value);
}

/* Writes an object of up to 7 members, which may be objects too. */
static void append_object(struct choices *from, struct fm_buf *body, unsigned depth, bool first) {
    for (size_t left = choose_of(from, 8); left; left--, first = false) {
        unsigned choice = choose(from);
        const char *name = names[choice % COUNT(names)];
        if (choice / COUNT(names) == 0 && depth < 2) {
            append_member(body, name, "{", first);
            append_object(from, body, depth + 1, true);
            fm_buf_append_char(body, '}');
        } else {
            append_member(body, name, values[choose_of(from, COUNT(values))], first);
        }
    }
}

/* Writes whole characters, escaped or not; sometimes more than fit into one delta to the host. */
static void append_text(struct choices *from, const char *key, struct fm_buf *body) {
    size_t len = choose_of(from, 64);
    struct fm_buf all;
    const char *text = choose_bytes(from, &len);
    fm_buf_init(&all, BODY_MAX);
    for (size_t left = len < 56 ? 1 : 600; left; left--) {
        fm_buf_append(&all, text, len);
    }
    fm_buf_append_str(body, key);
    struct fm_json_writer w = fm_json_writer_on(body);
    fm_json_string(&w, all.len ? all.data : "", all.len);
    fm_buf_free(&all);
}

static const char *number_of_job(struct choices *from, char number[24]) {
    unsigned choice = choose(from);
    const struct fm_job *job = nth_job(choice / 2);
    if (!job || choice == 255) {
        return values[choose_of(from, COUNT(values))];
    }
    snprintf(number, 24, "%llu", (unsigned long long)job->run);
    return number;
}

/* The schema reports of events. */
static const char *const reports[8] = {
    "",
    ",\"schema_report\":{\"enforced\":[\"a\",\"\\u0000\"],\"checked\":[1,\"\xF0\x9F\x98\x80\\\"\"]}",
    ",\"schema_report\":{\"enforced\":{},\"checked\":null}",
    ",\"schema_report\":[]",
    ",\"schema_report\":null",
    ",\"schema_report\":{}",
    ",\"schema_report\":{\"checked\":[[]]}",
    ",\"schema_report\":7",
};
static const char *const mismatches[8] = {
    "", ",\"schema_error\":\"x\"", ",\"schema_error\":\"\"", ",\"schema_error\":7",
    "", ",\"schema_error\":null",  ",\"schema_error\":{}",   ",\"schema_error\":\"\\u0000\"",
};

/* The log probabilities of deltas. */
static const char *const logprobs[8] = {
    ",\"logprobs\":[{\"bytes\":[120],\"logprob\":-0.5,\"top\":[{\"bytes\":[240,159],\"logprob\":-1e-7}]}]",
    ",\"logprobs\":[]",
    ",\"logprobs\":[{\"bytes\":[],\"logprob\":0,\"top\":[]},{\"bytes\":[0,255],\"logprob\":-9999,\"top\":[]}]",
    ",\"logprobs\":[{\"bytes\":[256],\"logprob\":0,\"top\":[]}]",
    ",\"logprobs\":[{\"bytes\":[1],\"logprob\":0.1,\"top\":[]}]",
    ",\"logprobs\":[{\"bytes\":[1],\"logprob\":-1,\"top\":[{}]}]",
    "",
    ",\"logprobs\":[7]",
};

/* Whether the job wants log probabilities: after a wrong list there are none. */
static bool has_logprobs(const char *number) {
    const struct fm_job *job = fm_job_by_run_locked(&front, strtoull(number, NULL, 10));
    return job && job->answer.request.logprobs;
}

/* Writes the index of a call that begins, or of the current call; sometimes another index. */
static void append_index(struct choices *from, const char *number, bool begins, struct fm_buf *body) {
    const struct fm_job *job = fm_job_by_run_locked(&front, strtoull(number, NULL, 10));
    unsigned choice = choose(from);
    char index[24];
    int next = job ? (int)job->answer.call_count : 0;
    snprintf(index, sizeof index, "%d", next - !begins + (choice >= 240 ? (int)choice - 248 : 0));
    append_member(body, "index", index, false);
}

/* Writes the members that the front needs before the vectors, and the next vector; sometimes wrong values. */
static void append_vector(struct choices *from, const char *number, struct fm_buf *body) {
    static const char *const vectors[] = {"\"AACAPwAAAAAAAAAA\"", "\"AACAPw==\"", "\"x\"", "7"};
    const struct fm_job *job = fm_job_by_run_locked(&front, strtoull(number, NULL, 10));
    unsigned choice = choose(from);
    char index[24];
    snprintf(index, sizeof index, "%zu", (job ? job->answer.entry_count : 0) + (choice >= 240));
    append_member(body, "index", index, false);
    append_member(body, "vector", vectors[choice < 200 ? 0 : choice % COUNT(vectors)], false);
}

static bool embeds(const char *number) {
    const struct fm_job *job = fm_job_by_run_locked(&front, strtoull(number, NULL, 10));
    return job && job->answer.request.input_count > 0;
}

static void send_event(struct choices *from) {
    static const char *const methods[] = {"job.accepted",         "job.delta", "job.progress",  "job.finished",
                                          "engine.load_progress", "job.start", "job.reasoning", "job.tool_call",
                                          "job.tool_delta"};
    char number[24] = "";
    struct fm_buf body;
    unsigned choice = choose(from);
    bool vector = choice == VECTOR;
    size_t method = choice % 16 < 12 ? choice % 4 : vector ? COUNT(methods) : choose_of(from, COUNT(methods));
    fm_buf_init(&body, BODY_MAX);
    fm_buf_append_str(&body, "{\"jsonrpc\":\"2.0\",\"method\":\"");
    fm_buf_append_str(&body, vector ? "job.embedding" : methods[method]);
    fm_buf_append_str(&body, "\",\"params\":{");
    append_member(&body, "job", number_of_job(from, number), true);
    if (method == 0 && embeds(number)) {
        append_member(&body, "dimension", "3", false);
    }
    if (vector) {
        append_vector(from, number, &body);
    } else if (method == 1 || method == 6) {
        append_text(from, ",\"text\":", &body);
        if (method == 1 && has_logprobs(number)) {
            fm_buf_append_str(&body, logprobs[choice / 16 % COUNT(logprobs)]);
        }
    } else if (method == 7) {
        append_index(from, number, true, &body);
        append_member(&body, "name", choice & 64 ? "\"g\"" : "\"f\"", false);
    } else if (method == 8) {
        append_index(from, number, false, &body);
        append_text(from, ",\"arguments\":", &body);
    } else if (method == 3) {
        append_member(&body, "reason", values[16 + choose_of(from, 5)], false);
        fm_buf_append_str(&body, mismatches[choice / 16 % COUNT(mismatches)]);
    } else if (method == 0) {
        fm_buf_append_str(&body, reports[choice / 16 % COUNT(reports)]);
    }
    if (choice & 128 && !vector) { /* if two members have the same name, the later one counts */
        append_object(from, &body, 0, false);
    }
    fm_buf_append_str(&body, "}}");
    if (!body.failed) {
        engine_send_body(body.data, body.len);
    }
    fm_buf_free(&body);
}

static void send_reply(struct choices *from) {
    static const char *const results[] = {
        "{\"ok\":true,\"protocol_version\":1,\"slots\":3}",
        "{\"ok\":true,\"slots\":2}",
        "{\"ok\":false}",
        "{\"ok\":false,\"error\":{\"code\":\"NOT_FOUND\",\"detail\":\"no file\"}}",
        "{\"ok\":true,\"slots\":-1}",
        "{\"ok\":true,\"protocol_version\":2}",
        "[]",
        "null",
    };
    static const char *const others[] = {"7", "null"};
    char body[256];
    char id[8];
    unsigned choice = choose(from);
    size_t what = choice / 8 % (COUNT(results) + 1);
    const char *result = what < COUNT(results) ? results[what] : "{\"code\":-32603,\"message\":\"no\"}";
    const char *kind = what < COUNT(results) ? "result" : "error";
    snprintf(id, sizeof id, "%s", choice % 8 < 6 ? front.engines[0].initialized ? "2" : "1" : others[choice % 2]);
    int len = snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":%s}", id, kind, result);
    engine_send_body(body, (size_t)len);
}

/* Begins with a new front, whose engine answers both calls well. */
static void start_well(void) {
    static const char initialized[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true,\"protocol_version\":1}}";
    static const char loaded[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true,\"slots\":4}}";
    engine_send_body(initialized, sizeof initialized - 1);
    engine_send_body(loaded, sizeof loaded - 1);
}

/* Does what the watchdog does, at its limits and after the grace. */
static void time_out(struct choices *from) {
    struct fm_job *job = nth_job(choose(from));
    struct fm_error error;
    fm_fail(&error, FM_TIMEOUT, "the %s limit of 5 ms was reached", "total");
    error.limit = "total";
    error.limit_ms = 5;
    if (job) {
        fm_job_stop_locked(job, &error);
    }
}

static void step(struct choices *from) {
    unsigned choice = choose(from);
    size_t len = choice / 16 * 4;
    const char *bytes;
    switch (choice % 16) {
    case 0:
    case 1: host_call(from); break;
    case 2: send_reply(from); break;
    case 3: start_well(); break;
    case 4: host_takes(choice / 16); break;
    case 5: time_out(from); break;
    case 6: reap_engine(); break;
    case 7:
        bytes = choose_bytes(from, &len);
        engine_send_body(bytes, len);
        break;
    case 8:
        bytes = choose_bytes(from, &len);
        engine_send(bytes, len);
        break;
    default: send_event(from); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, data + size};
    front_begin();
    memset(&engine, 0, sizeof engine);
    while (choices_left(&from)) {
        step(&from);
        expect_calls();
    }
    front.ending = true;
    fm_job_settle_all_locked(&front);
    fm_front_pump_locked(&front);
    fm_engine_send_shutdown_locked(&front.engines[0], 0);
    reap_engine();
    front_end();
    return 0;
}
