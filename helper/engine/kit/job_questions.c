/* The member `questions` of job.start: questions about the messages, with the answers to compare. */
#include "engine/kit/job_read.h"
#include "engine/kit/kit_internal.h"

#include <json-c/json.h>
#include <stdlib.h>

static bool read_text(struct fm_input *text, struct json_object *value) {
    int len = json_object_is_type(value, json_type_string) ? json_object_get_string_len(value) : 0;
    *text = (struct fm_input){.text = len > 0 ? json_object_get_string(value) : "", .len = (size_t)len};
    return len > 0;
}

static enum fm_code read_choices(struct fm_question *question, size_t index, struct json_object *list,
                                 struct fm_error *error) {
    static const char expected[] = "a list of 2 to 255 strings, none of them empty";
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    if (count < 2 || count > FM_QUESTION_CHOICES_MAX) {
        return fm_kit_job_wrong_entry(error, "questions", index, ".choices", expected);
    }
    question->choices = calloc(count, sizeof *question->choices);
    if (!question->choices) {
        return fm_fail_no_memory(error);
    }
    question->choice_count = count;
    for (size_t i = 0; i < count; i++) {
        if (!read_text(&question->choices[i], json_object_array_get_idx(list, i))) {
            return fm_kit_job_wrong_entry(error, "questions", index, ".choices", expected);
        }
    }
    return FM_OK;
}

static enum fm_code read_question(struct fm_question *question, size_t index, struct json_object *value,
                                  struct fm_error *error) {
    if (!json_object_is_type(value, json_type_object) || json_object_object_length(value) != 2) {
        return fm_kit_job_wrong_entry(error, "questions", index, "", "an object with `text` and `choices`");
    }
    if (!read_text(&question->text, json_object_object_get(value, "text"))) {
        return fm_kit_job_wrong_entry(error, "questions", index, ".text", "a string that is not empty");
    }
    return read_choices(question, index, json_object_object_get(value, "choices"), error);
}

enum fm_code fm_kit_job_read_questions(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0 || count > FM_QUESTIONS_MAX) {
        return fm_kit_job_wrong(error, "questions", "a list of 1 to 400 questions");
    }
    job->questions = calloc(count, sizeof *job->questions);
    if (!job->questions) {
        return fm_fail_no_memory(error);
    }
    job->question_count = count;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        code = read_question(&job->questions[i], i, json_object_array_get_idx(value, i), error);
    }
    return code;
}

/* A job with questions has no members that are about a generated answer. */
static const char *const company[] = {"job",     "messages",  "questions",  "model",
                                      "session", "reasoning", "repeatable", NULL};

enum fm_code fm_kit_job_check_questions(struct fm_kit_job *job, struct json_object *params, struct fm_error *error) {
    enum fm_code code = fm_kit_job_only(params, company, "nothing beside \"questions\"", error);
    if (code == FM_OK && job->image_count > 0) {
        return fm_kit_job_wrong(error, "questions", "messages without images");
    }
    struct fm_message *more =
        code == FM_OK ? realloc(job->messages, (job->message_count + 1) * sizeof *job->messages) : NULL;
    if (!more) {
        return code ? code : fm_fail_no_memory(error);
    }
    job->messages = more;
    more[job->message_count++] = (struct fm_message){.role = "user", .content = "", .reasoning = ""};
    fm_kit_job_ask(job, job->questions[0].text.text, job->questions[0].text.len);
    return FM_OK;
}

void fm_kit_job_ask(struct fm_kit_job *job, const char *text, size_t len) {
    struct fm_message *last = &job->messages[job->message_count - 1];
    last->content = text;
    last->content_len = len;
}

void fm_kit_job_free_questions(struct fm_kit_job *job) {
    for (size_t i = 0; i < job->question_count; i++) {
        free(job->questions[i].choices);
    }
    free(job->questions);
}
