/*
 * Fuzzes the front's dispatch, with a stub for the engine. The first byte decides whether the rest is the host's bytes,
 * or a list of steps (calls, raw bodies, raw bytes, the engine's actions, whether the host reads). front.c checks every
 * output frame against PROTOCOL.md. After each step, every call was answered once or is in flight once.
 */
#include "front/engines/places.h"
#include "tests/fuzz/front.h"

static unsigned slots; /* jobs that the stub accepts at the same time */
static bool flooded;   /* done only once for each input, because it is slow */

/* ---- the stub, in place of supervisor.c and events.c ---- */

static struct fm_job *first_queued(void) {
    struct fm_job *first = NULL;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        struct fm_job *job = &front.jobs[i];
        if (job->state == FM_JOB_QUEUED && !job->answer.request.unresolved && (!first || job->number < first->number)) {
            first = job;
        }
    }
    return first;
}

void fm_engines_pump_locked(struct fm_front *of) {
    struct fm_job *job;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        job = &front.jobs[i];
        HOLDS(!job->abort_due || job->stopping || job->state == FM_JOB_FREE);
        job->abort_due = false;
    }
    while (!of->ending && jobs_held() < slots && (job = first_queued())) {
        job->state = FM_JOB_SENT;
    }
}

void engine_got(struct json_object *message) {
    HOLDS_OR(false, "%s", json_object_to_json_string(message)); /* the stub gets no other messages */
}

/* ---- what the engine does ---- */

static void accept(struct fm_job *job) {
    if (job->state == FM_JOB_SENT) {
        job->state = FM_JOB_RUNNING;
        struct fm_error error;
        bool embeds = job->answer.request.input_count > 0;
        if (!job->stopping && embeds && fm_answer_expect_vectors(&job->answer, 1, &error) != FM_OK) {
            HOLDS(error.code == FM_INVALID_REQUEST);
            fm_job_stop_locked(job, &error);
        }
        if (!job->stopping) {
            fm_answer_open(&job->answer, 3);
        }
    }
}

static void produce_vector(struct fm_job *job) {
    struct fm_error error;
    enum fm_code code = fm_answer_vector(&job->answer, "AACAPw==", 8, &error);
    HOLDS(code == FM_OK || error.code == FM_INTERNAL); /* this was one vector too many */
}

static void produce_logprobs(struct fm_job *job) {
    struct json_object *list = json_tokener_parse("[{\"bytes\":[120],\"logprob\":-0.5,\"top\":[]}]");
    struct fm_error error;
    HOLDS(fm_answer_logprobs(&job->answer, list, &error) == FM_OK);
    json_object_put(list);
}

/* Chooses a text; the largest choice is a text with large frames. */
static const char *choose_text(struct choices *from, size_t *len) {
    static char large[FM_LARGE + 1];
    *len = choose_of(from, 32);
    if (*len < 31) {
        return choose_bytes(from, len);
    }
    *len = sizeof large;
    return memset(large, 'x', sizeof large);
}

static void produce(struct choices *from, struct fm_job *job) {
    size_t len;
    const char *text = choose_text(from, &len);
    if (job->state == FM_JOB_RUNNING && job->answer.opened && job->answer.request.input_count > 0) {
        produce_vector(job);
    } else if (job->state == FM_JOB_RUNNING && job->answer.opened && is_utf8(text, len)) {
        job->answer.usage.output++;
        HOLDS(fm_answer_append(&job->answer, text, len));
        job->produced = true;
        if (len > 0) {
            produce_logprobs(job);
        }
    }
}

static void stop(struct fm_job *job, enum fm_code code) {
    struct fm_error error;
    fm_fail(&error, code, "stopped");
    fm_job_stop_locked(job, &error);
}

static void finish(struct fm_job *job, enum fm_finish finish) {
    struct fm_error error = job->stop_error;
    if (job->state != FM_JOB_SENT && job->state != FM_JOB_RUNNING) {
        return;
    }
    if (!job->stopping) {
        fm_fail(&error, FM_INTERNAL, "it broke");
    }
    if (job->stopping || !job->answer.opened) {
        finish = error.code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
    }
    bool failed = finish == FM_FINISH_CANCELLED || finish == FM_FINISH_FAILED;
    if (failed) {
        fm_job_settle_locked(job, finish, &error);
    } else {
        fm_job_made_locked(job, finish);
    }
}

/* Does what happens after an engine's death, when another engine answers from the beginning. */
static void restart(struct fm_job *job) {
    if (fm_job_is_held(job) && fm_job_can_restart(job)) {
        fm_job_restarted_locked(job);
    }
}

static void engine_step(struct choices *from) {
    static const enum fm_code codes[] = {FM_TIMEOUT, FM_CANCELLED, FM_INTERNAL};
    static const enum fm_finish ends[] = {FM_FINISH_STOP, FM_FINISH_LENGTH, FM_FINISH_CONTENT_FILTER, FM_FINISH_FAILED};
    unsigned choice = choose(from);
    struct fm_job *job = nth_job(choice / 8);
    pthread_mutex_lock(&front.lock);
    switch (job ? choice % 8 : 7) {
    case 0:
    case 1: accept(job); break;
    case 2:
    case 3: produce(from, job); break;
    case 4: finish(job, ends[choose_of(from, COUNT(ends))]); break;
    case 5: stop(job, codes[choose_of(from, COUNT(codes))]); break;
    case 6: restart(job); break;
    default: slots = choice / 8 % 9; break;
    }
    fm_front_leave(&front);
}

/* Makes more calls than there is room for. */
static void flood(void) {
    static const char before[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"responses.create\",\"params\":{\"input\":\"x\"},\"id\":";
    char body[sizeof before + 8];
    for (unsigned i = 100; i < 100 + FM_JOBS_MAX + 2; i++) {
        int len = snprintf(body, sizeof body, "%s%u}", before, i);
        host_send_body(body, (size_t)len);
    }
    HOLDS(front.jobs_in_flight <= FM_JOBS_MAX);
}

static bool step(struct choices *from) {
    unsigned choice = choose(from);
    size_t len = choice / 8;
    switch (choice % 8) {
    case 0:
    case 1:
    case 2: host_call(from); return true;
    case 3: {
        const char *body = choose_bytes(from, &len);
        return host_send_body(body, len);
    }
    case 4: {
        const char *bytes = choose_bytes(from, &len);
        return host_send(bytes, len);
    }
    case 5: host_takes(choice / 8 % 4 ? choice / 8 : 0); return true;
    case 7:
        if (choice == 255 && !flooded) {
            flooded = true;
            flood();
            return true;
        }
        /* fall through */
    default: engine_step(from); return true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, data + size};
    bool wire = choose(&from) & 1;
    slots = 2;
    flooded = false;
    front_begin();
    if (wire) {
        size_t len = choices_left(&from);
        const char *bytes = choose_bytes(&from, &len);
        host_send(bytes, len);
        expect_calls();
    }
    while (!wire && choices_left(&from) && step(&from)) {
        expect_calls();
    }
    front_end();
    return 0;
}
