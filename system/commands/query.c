/*
 * query: code answers the questions that it understands, and the model answers the others. A conversation keeps the
 * last questions and answers of both.
 */
#include "commands/query.h"
#include "base/hex.h"
#include "base/platform.h"
#include "commands/internal.h"
#include "desktop/clean.h"
#include "desktop/folders.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (1u << 20) /* bytes of an answer */

/* ---- conversations ---- */

static void free_turn(struct sy_turn *turn) {
    free(turn->question);
    free(turn->answer);
}

static void free_talk(struct sy_talk *talk) {
    for (size_t i = 0; i < talk->count; i++) {
        free_turn(&talk->turns[i]);
    }
}

static size_t index_of(const struct sy_talks *talks, const char *handle) {
    size_t i = 0;
    while (i < talks->count && strcmp(talks->at[i].handle, handle) != 0) {
        i++;
    }
    return i;
}

const struct sy_talk *sy_talks_find(const struct sy_talks *talks, const char *handle) {
    size_t i = index_of(talks, handle);
    return i < talks->count ? &talks->at[i] : NULL;
}

/* Takes the conversation out of the list. If there is none with this handle, makes a new one; if the list is full,
 * drops the least recently used one. */
static struct sy_talk take_talk(struct sy_talks *talks, const char *handle) {
    struct sy_talk talk = {.count = 0};
    size_t at = handle ? index_of(talks, handle) : talks->count;
    if (at == talks->count) {
        unsigned char bytes[(SY_HANDLE_SIZE - 1) / 2];
        fm_random(bytes, sizeof bytes);
        fm_hex(talk.handle, bytes, sizeof bytes);
        at = 0;
        if (talks->count < SY_TALKS_MAX) {
            return talk;
        }
        free_talk(&talks->at[0]);
    } else {
        talk = talks->at[at];
    }
    talks->count--;
    memmove(talks->at + at, talks->at + at + 1, (talks->count - at) * sizeof *talks->at);
    return talk;
}

const char *sy_talks_add(struct sy_talks *talks, const char *handle, const char *question, const char *answer) {
    struct sy_turn turn = {strdup(question), strdup(answer)};
    if (!turn.question || !turn.answer) {
        free_turn(&turn);
        return NULL;
    }
    struct sy_talk talk = take_talk(talks, handle);
    if (talk.count == SY_TURNS_MAX) {
        free_turn(&talk.turns[0]);
        talk.count--;
        memmove(talk.turns, talk.turns + 1, talk.count * sizeof *talk.turns);
    }
    talk.turns[talk.count++] = turn;
    talks->at[talks->count++] = talk;
    return talks->at[talks->count - 1].handle;
}

void sy_talks_free(struct sy_talks *talks) {
    for (size_t i = 0; i < talks->count; i++) {
        free_talk(&talks->at[i]);
    }
    *talks = (struct sy_talks){.count = 0};
}

/* ---- checking ---- */

static enum fm_code no_model(const struct sy_step *step, struct fm_error *error, const char *why) {
    return sy_refuse_step(step, error, "model_unavailable", "question",
                          "counts, duplicates and the oldest tabs can be asked for without a model; this needs one: %s",
                          why);
}

enum fm_code sy_check_query(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                            struct fm_error *error) {
    const char *question = json_object_get_string(sy_arg(step, "question"));
    const char *handle = json_object_get_string(sy_arg(step, "conversation"));
    struct sy_understood understood;
    if (strlen(question) > SY_QUESTION_MAX) {
        return sy_refuse_step(step, error, "question_too_long", "question", "a question has at most %d bytes",
                              SY_QUESTION_MAX);
    }
    if (handle && !sy_talks_find(&world->talks, handle)) {
        return sy_refuse_step(step, error, "unknown_conversation", "conversation",
                              "no conversation has this handle: leave it out to begin a new one");
    }
    if (!world->model && !sy_understand(question, &plan->snapshot, &understood)) {
        return no_model(step, error, "there is none here");
    }
    return FM_OK;
}

/* ---- running ---- */

static void find_near(const struct sy_world *world, struct sy_near *near) {
    near->file_count = world->recent_files ? world->recent_files(near->files, SY_NEAR_MAX) : 0;
    near->folder_count = world->home ? sy_git_folders(world->home, near->folders, SY_NEAR_MAX) : 0;
}

static void free_near(struct sy_near *near) {
    for (size_t i = 0; i < near->file_count; i++) {
        free(near->files[i]);
    }
    for (size_t i = 0; i < near->folder_count; i++) {
        free(near->folders[i]);
    }
}

static enum fm_code ask_model(const struct sy_world *world, const struct sy_step *step,
                              const struct sy_snapshot *snapshot, struct fm_buf *answer, struct fm_error *error) {
    const char *question = json_object_get_string(sy_arg(step, "question"));
    const char *handle = json_object_get_string(sy_arg(step, "conversation"));
    struct sy_message messages[SY_MESSAGES_MAX];
    struct sy_near near = {.file_count = 0};
    struct fm_buf said;
    if (!world->model) { /* when the plan was checked, code understood the question with an earlier snapshot */
        return no_model(step, error, "there is none here");
    }
    find_near(world, &near);
    size_t count =
        sy_make_prompt(question, snapshot, &near, handle ? sy_talks_find(&world->talks, handle) : NULL, messages);
    free_near(&near);
    if (count == 0) {
        return fm_fail_no_memory(error);
    }
    fm_buf_init(&said, TEXT_MAX);
    enum fm_code code = world->model->answer(world->model->self, messages, count, &said, error);
    for (size_t i = 0; i < count; i++) {
        free(messages[i].text);
    }
    for (size_t i = 0; i < said.len; i++) {
        said.data[i] = said.data[i] ? said.data[i] : ' '; /* a NUL would end the text */
    }
    fm_buf_append_char(&said, '\0');
    if (code == FM_OK && said.failed) {
        code = fm_fail(error, FM_INTERNAL, "the model's answer is too long");
    }
    if (code == FM_OK) {
        sy_clean(answer, said.data, SY_ANSWER_MAX, true);
    }
    fm_buf_free(&said);
    if (code == FM_OK && answer->len == 0) {
        return no_model(step, error, "it gave no answer");
    }
    if (code != FM_OK && code != FM_TIMEOUT && code != FM_CANCELLED) {
        const struct fm_error fault = *error;
        return no_model(step, error, fault.detail);
    }
    return code;
}

static enum fm_code keep_talk(struct sy_world *world, const struct sy_step *step, struct fm_buf *answer, bool by_code,
                              struct fm_json_writer *w, struct fm_error *error) {
    fm_buf_append_char(answer, '\0');
    if (answer->failed) {
        return fm_fail_no_memory(error);
    }
    const char *handle = sy_talks_add(&world->talks, json_object_get_string(sy_arg(step, "conversation")),
                                      json_object_get_string(sy_arg(step, "question")), answer->data);
    if (!handle) {
        return fm_fail_no_memory(error);
    }
    fm_json_key_str(w, "answer", answer->data);
    fm_json_key_str(w, "by", by_code ? "code" : "model");
    fm_json_key_str(w, "conversation", handle);
    return FM_OK;
}

enum fm_code sy_run_query(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                          struct fm_json_writer *w, struct fm_error *error) {
    const char *question = json_object_get_string(sy_arg(step, "question"));
    struct sy_understood understood;
    struct sy_snapshot fresh = {.tab_count = 0};
    const struct sy_snapshot *snapshot;
    struct fm_buf answer;
    enum fm_code code = sy_snapshot_now(world, plan, step, &fresh, &snapshot, error);
    if (code != FM_OK) {
        return code;
    }
    fm_buf_init(&answer, TEXT_MAX);
    bool by_code = sy_understand(question, snapshot, &understood);
    if (!by_code) {
        code = ask_model(world, step, snapshot, &answer, error);
    } else if (snapshot->no_tabs.code == FM_OK && !sy_told_add(&world->told, snapshot, SY_SEEN_INDICES)) {
        code = fm_fail_no_memory(error);
    } else {
        code = sy_answer_by_code(&understood, snapshot, &answer, w, error);
    }
    if (code == FM_OK && by_code && snapshot->no_tabs.code == FM_OK) {
        fm_json_key_str(w, "snapshot", snapshot->handle); /* the answer names tabs by their indices in this snapshot */
    }
    code = code ? code : keep_talk(world, step, &answer, by_code, w, error);
    fm_buf_free(&answer);
    sy_snapshot_free(&fresh);
    return code;
}
