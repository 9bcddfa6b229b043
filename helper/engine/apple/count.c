/*
 * Counts tokens with the model's tokenizer, which macOS offers since 26.4. If macOS can't count, no number is guessed.
 */
#include "engine/apple/engine.h"
#include "engine/apple/status.h"
#include "protocol/json_writer.h"

#include <string.h>

#define TRANSCRIPT_MAX (64u << 20)

/* The error that the bindings make if macOS is too old. The domain is that of the bindings. */
static bool cannot_count(const struct fm_apple_task *task) {
    return task->status == FM_APPLE_UNKNOWN && strstr(task->why.data ? task->why.data : "", "TokenCount:-1");
}

static enum fm_code count_session(struct fm_apple *apple, const struct fm_kit_job *job, fm_apple_ref session,
                                  int64_t *tokens) {
    static struct fm_apple_task task; /* static, because a task that does not end still uses it */
    static struct fm_apple_running running;
    fm_apple_task_init(&task);
    running = (struct fm_apple_running){.api = &apple->api, .task = &task};
    running.ref = apple->api.count_transcript(apple->model, session, &task, fm_apple_on_count);
    bool ended = job ? fm_apple_finish_task(&running, job) : true;
    while (!job && !fm_apple_task_ended(&task)) {
        ended = fm_apple_step(&running);
    }
    if (!ended) {
        apple->stuck = true;
        return FM_CANCELLED;
    }
    apple->counts = !cannot_count(&task);
    *tokens = task.status == FM_APPLE_OK ? task.tokens : FM_UNCOUNTED;
    fm_apple_running_free(&running);
    return job && fm_kit_job_aborted(job) ? FM_CANCELLED : FM_OK;
}

enum fm_code fm_apple_count(struct fm_apple *apple, const struct fm_kit_job *job, const char *json, int64_t *tokens,
                            struct fm_error *error) {
    int status = 0;
    char *why = NULL;
    *tokens = FM_UNCOUNTED;
    if (!apple->counts) {
        return FM_OK;
    }
    fm_apple_ref session = apple->api.transcript(json, &status, &why);
    if (!session) {
        apple->api.free_string(why);
        return fm_fail(error, FM_INTERNAL, "Apple's library does not take the transcript of the conversation");
    }
    enum fm_code code = count_session(apple, job, session, tokens);
    if (!apple->stuck) {
        apple->api.release(session);
    }
    return code;
}

/* Writes `whole`, with an answer as one more entry, to `longer`. */
static bool add_answer(const struct fm_buf *whole, const char *text, size_t len, struct fm_buf *longer) {
    static const char end[] = "]}}";       /* closes the entries, "transcript" and the whole object */
    size_t body = whole->len - sizeof end; /* `end` includes a NUL */
    bool empty = body == 0 || whole->data[body - 1] == '[';
    fm_buf_append(longer, whole->data, body);
    fm_buf_append_str(longer, empty ? "" : ",");
    fm_buf_append_str(longer,
                      "{\"role\":\"response\",\"id\":\"fm-answer\",\"assets\":[],\"contents\":[{\"type\":\"text\","
                      "\"id\":\"fm-answer-text\",\"text\":");
    struct fm_json_writer w = fm_json_writer_on(longer);
    fm_json_string(&w, text, len);
    fm_buf_append_str(longer, "}]}");
    fm_buf_append(longer, end, sizeof end);
    return !longer->failed;
}

/* Counts by how many tokens `whole` grows with an answer's entry. */
static int64_t growth(struct fm_apple *apple, const struct fm_kit_job *job, const struct fm_buf *whole, int64_t input,
                      const char *text, size_t len) {
    struct fm_buf longer;
    struct fm_error error;
    int64_t tokens = FM_UNCOUNTED;
    fm_buf_init(&longer, TRANSCRIPT_MAX);
    if (input != FM_UNCOUNTED && add_answer(whole, text, len, &longer) &&
        fm_apple_count(apple, job, longer.data, &tokens, &error) != FM_OK) {
        tokens = FM_UNCOUNTED;
    }
    fm_buf_free(&longer);
    return tokens == FM_UNCOUNTED || tokens < input ? FM_UNCOUNTED : tokens - input;
}

void fm_apple_calibrate(struct fm_apple *apple) {
    static const char question[] =
        "{\"version\":1,\"type\":\"FoundationModels.Transcript\",\"transcript\":{\"entries\":["
        "{\"role\":\"user\",\"id\":\"fm-0\",\"contents\":[{\"type\":\"text\",\"id\":\"fm-1\","
        "\"text\":\"Hello.\"}],\"options\":{}}]}}";
    struct fm_error error;
    int64_t input = FM_UNCOUNTED;
    struct fm_buf whole = {.data = (char *)question, .len = sizeof question, .max = sizeof question};
    apple->counts = true;
    if (fm_apple_count(apple, NULL, question, &input, &error) == FM_OK && input != FM_UNCOUNTED) {
        int64_t more = growth(apple, NULL, &whole, input, "", 0);
        apple->entry_tokens = more == FM_UNCOUNTED ? 0 : more;
    }
}

int64_t fm_apple_count_answer(struct fm_apple *apple, const struct fm_kit_job *job, const struct fm_buf *whole,
                              int64_t input, const char *text, size_t len) {
    int64_t more = growth(apple, job, whole, input, text, len);
    return more == FM_UNCOUNTED || more < apple->entry_tokens ? FM_UNCOUNTED : more - apple->entry_tokens;
}
