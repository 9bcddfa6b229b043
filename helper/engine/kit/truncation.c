/*
 * Which turns of a conversation can be left out, and how many: ENGINE.md, Prompts.
 *
 * A turn is a message of the user and all messages up to the next message of the user. So the messages that stay begin
 * as a conversation does, which some chat templates require. If a call and its output are in different turns, these
 * turns stay or are left out together.
 *
 * Prompts of long conversations are costly to make. So the search begins with the newest turns and doubles the number
 * of turns that it adds. Most prompts that it tries are then about as long as the prompt that fits, however long the
 * conversation is.
 */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* The part of the context that stays free for the answer, if turns are left out. */
#define RESERVE_SHARE 8

enum fm_code fm_kit_job_read_truncation(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    static const char *const words[] = {"disabled", "auto", NULL};
    int word = fm_kit_job_word(value, words);
    job->truncation.asked = word == 1;
    return word < 0 ? fm_kit_job_wrong(error, "truncation", "\"auto\" or \"disabled\"") : FM_OK;
}

/* ---- where to cut ---- */

static bool is_role(const struct fm_message *message, const char *role) {
    return strcmp(message->role, role) == 0;
}

/* Notes in `ids` where the calls of the message `index` are. */
static bool note_calls(struct json_object *ids, const struct fm_message *message, size_t index) {
    bool noted = true;
    for (size_t i = 0; i < message->tool_call_count && noted; i++) {
        struct json_object *at = json_object_new_int64((int64_t)index);
        noted = at && json_object_object_add(ids, message->tool_calls[i].id, at) == 0;
    }
    return noted;
}

/*
 * Finds messages that must not be separated: the sum of closed[0..i] is 0 if no call before the message i has its
 * output in the message i or after it. `closed` has count + 1 entries, all 0. False when out of memory.
 */
static bool close_calls(const struct fm_truncation *truncation, size_t *closed) {
    struct json_object *ids = json_object_new_object();
    bool ok = ids != NULL;
    for (size_t i = 0; i < truncation->count && ok; i++) {
        const struct fm_message *message = &truncation->all[i];
        struct json_object *call = NULL;
        ok = note_calls(ids, message, i);
        if (message->tool_call_id && json_object_object_get_ex(ids, message->tool_call_id, &call)) {
            closed[json_object_get_int64(call) + 1]++;
            closed[i + 1]--;
        }
    }
    json_object_put(ids);
    return ok;
}

static void collect_cuts(struct fm_truncation *truncation, const size_t *closed) {
    size_t open = 0;    /* calls before this place whose outputs are after it */
    size_t dropped = 0; /* messages that a cut here would leave out */
    for (size_t i = 0; i < truncation->count; i++) {
        const struct fm_message *message = &truncation->all[i];
        open += closed[i];
        if (dropped > 0 && open == 0 && is_role(message, "user")) {
            truncation->cuts[truncation->cut_count++] = i;
        }
        dropped += !is_role(message, "system");
    }
}

enum fm_code fm_kit_job_find_cuts(struct fm_kit_job *job, struct fm_error *error) {
    struct fm_truncation *truncation = &job->truncation;
    if (!truncation->asked) {
        return FM_OK;
    }
    truncation->all = job->messages;
    truncation->count = job->message_count;
    truncation->left = calloc(truncation->count, sizeof *truncation->left);
    truncation->cuts = calloc(truncation->count, sizeof *truncation->cuts);
    size_t *closed = calloc(truncation->count + 1, sizeof *closed);
    bool ok = truncation->left && truncation->cuts && closed && close_calls(truncation, closed);
    if (ok) {
        collect_cuts(truncation, closed);
    }
    free(closed);
    return ok ? FM_OK : fm_fail_no_memory(error);
}

void fm_kit_job_free_cuts(struct fm_kit_job *job) {
    struct fm_truncation *truncation = &job->truncation;
    if (truncation->all) {
        job->messages = truncation->all;
        job->message_count = truncation->count;
    }
    free(truncation->left);
    free(truncation->cuts);
    *truncation = (struct fm_truncation){.asked = false};
}

/* ---- how many ---- */

static void leave_out(struct fm_kit_job *job, size_t turns) {
    struct fm_truncation *truncation = &job->truncation;
    size_t cut = turns > 0 ? truncation->cuts[turns - 1] : 0;
    size_t left = 0;
    for (size_t i = 0; i < truncation->count; i++) {
        if (i >= cut || is_role(&truncation->all[i], "system")) {
            truncation->left[left++] = truncation->all[i];
        }
    }
    job->messages = truncation->left;
    job->message_count = left;
    job->dropped = (int64_t)(truncation->count - left);
}

/*
 * If many turns remain, leaves out more turns than necessary: up to a quarter of the remaining turns. The next prompts
 * of this conversation then begin like this one and find it in the cache, until as many turns have been added.
 */
static size_t round_up(size_t turns, size_t all) {
    size_t unit = 1;
    while (unit * 8 <= all - turns) {
        unit *= 2;
    }
    return (turns + unit - 1) / unit * unit;
}

/* Leaves out as few turns as `reserve` needs, rounded up, or all turns if that is not enough. */
static enum fm_code leave_out_some(struct fm_kit_job *job, size_t reserve, fm_kit_job_fit_fn *fit, void *state,
                                   struct fm_error *error) {
    size_t all = job->truncation.cut_count;
    size_t few = 0; /* leaving out this many is too few */
    size_t many = all;
    size_t step = 1;
    leave_out(job, many);
    enum fm_code code = fit(state, reserve, error);
    while (code == FM_OK && many - few > 1) {
        size_t half = (many - few) / 2;
        size_t turns = many - (step < half ? step : half);
        leave_out(job, turns);
        code = fit(state, reserve, error);
        if (code == FM_CONTEXT_OVERFLOW) {
            few = turns;
            step = all;
            code = FM_OK;
        } else {
            many = turns;
            step *= 2;
        }
    }
    if (code != FM_OK) {
        return code;
    }
    size_t rounded = round_up(many, all);
    leave_out(job, rounded);
    return rounded == many ? FM_OK : fit(state, reserve, error);
}

static size_t reserve_of(const struct fm_kit_job *job, size_t context_length) {
    size_t reserve = context_length / RESERVE_SHARE;
    if (job->max_tokens > 0 && (uint64_t)job->max_tokens < reserve) {
        reserve = (size_t)job->max_tokens;
    }
    return reserve > 0 ? reserve : 1;
}

enum fm_code fm_kit_job_fit(struct fm_kit_job *job, size_t context_length, fm_kit_job_fit_fn *fit, void *state,
                            struct fm_error *error) {
    size_t reserve = 1;
    if (job->truncation.asked) {
        reserve = reserve_of(job, context_length);
        leave_out(job, 0); /* an engine may try again in another way */
    }
    enum fm_code code = fit(state, reserve, error);
    if (code == FM_CONTEXT_OVERFLOW && job->truncation.cut_count > 0) {
        code = leave_out_some(job, reserve, fit, state, error);
    }
    /* no more turns can be left out: room for one token is better than none */
    if (code == FM_CONTEXT_OVERFLOW && reserve > 1) {
        code = fit(state, 1, error);
    }
    return code;
}
