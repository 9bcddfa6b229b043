/*
 * An answer's token counts, in the shapes of the APIs. If a total is not known, `usage` is null. An unknown detail is
 * left out if OpenAI's types allow that. If they demand a number, it is 0 and `fm.uncounted` names it, because stock
 * clients refuse anything else (the Agents SDK refuses null, the Open Responses suite a missing member).
 */
#include "surface/usage.h"
#include "surface/answer.h"
#include "surface/request.h"

#include <json-c/json.h>
#include <string.h>

/* The names of the detailed counts in `usage` and in `fm.uncounted`. */
#define CACHED    "cached_tokens"
#define REASONING "reasoning_tokens"

/* Adds two counts. The sum is not known if one of them is not known. */
static int64_t add_counts(int64_t one, int64_t other) {
    return one < 0 || other < 0 ? FM_UNKNOWN_COUNT : one + other;
}

struct fm_usage fm_answer_usage(const struct fm_answer *answer) {
    struct fm_usage total = {0};
    for (size_t i = 0; i <= answer->choice; i++) {
        const struct fm_usage *usage = i < answer->choice ? &answer->earlier[i]->usage : &answer->usage;
        if (fm_request_begins_prompt(&answer->request, i)) { /* each prompt counts once */
            total.input = add_counts(total.input, usage->input);
            total.cached = add_counts(total.cached, usage->cached);
        }
        total.output = add_counts(total.output, usage->output);
        total.reasoning = add_counts(total.reasoning, usage->reasoning);
    }
    return total;
}

bool fm_usage_known(const struct fm_usage *usage) {
    return usage->input >= 0 && usage->output >= 0;
}

/* ---- Responses ---- */

static int64_t or_zero(int64_t count) {
    return count < 0 ? 0 : count;
}

void fm_responses_write_usage(const struct fm_usage *usage, struct fm_json_writer *w) {
    if (!fm_usage_known(usage)) {
        fm_json_key_null(w, "usage");
        return;
    }
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    fm_json_key_int(w, "input_tokens", usage->input);
    fm_json_key(w, "input_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, CACHED, or_zero(usage->cached));
    fm_json_key_int(w, "cache_write_tokens", 0);
    fm_json_object_end(w);
    fm_json_key_int(w, "output_tokens", usage->output);
    fm_json_key(w, "output_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, REASONING, or_zero(usage->reasoning));
    fm_json_object_end(w);
    fm_json_key_int(w, "total_tokens", usage->input + usage->output);
    fm_json_object_end(w);
}

bool fm_usage_has_uncounted(const struct fm_usage *usage) {
    return fm_usage_known(usage) && (usage->cached < 0 || usage->reasoning < 0);
}

void fm_usage_write_uncounted(const struct fm_usage *usage, struct fm_json_writer *w) {
    fm_json_key(w, "uncounted");
    fm_json_array_begin(w);
    if (usage->cached < 0) {
        fm_json_str(w, CACHED);
    }
    if (usage->reasoning < 0) {
        fm_json_str(w, REASONING);
    }
    fm_json_array_end(w);
}

/* Reads a count. A count that is null or absent is not known. */
static int64_t read_count(struct json_object *object, const char *name) {
    struct json_object *value = json_object_object_get(object, name);
    return value ? json_object_get_int64(value) : FM_UNKNOWN_COUNT;
}

/* Forgets a detail that the list names: it is not known, whatever number is in its place. */
static int64_t read_detail(struct json_object *details, const char *name, struct json_object *uncounted) {
    bool listed = false;
    size_t count = json_object_is_type(uncounted, json_type_array) ? json_object_array_length(uncounted) : 0;
    for (size_t i = 0; i < count; i++) {
        const char *entry = json_object_get_string(json_object_array_get_idx(uncounted, i));
        listed |= entry && strcmp(entry, name) == 0;
    }
    return listed ? FM_UNKNOWN_COUNT : read_count(details, name);
}

struct fm_usage fm_usage_restore(struct json_object *usage, struct json_object *uncounted) {
    struct json_object *input = json_object_object_get(usage, "input_tokens_details");
    struct json_object *output = json_object_object_get(usage, "output_tokens_details");
    return (struct fm_usage){
        .input = read_count(usage, "input_tokens"),
        .cached = read_detail(input, CACHED, uncounted),
        .output = read_count(usage, "output_tokens"),
        .reasoning = read_detail(output, REASONING, uncounted),
    };
}

/* ---- chat, completions, embeddings ---- */

/* Writes an object with one count, or an empty one if the count is unknown. */
static void write_detail(const char *key, const char *name, int64_t count, struct fm_json_writer *w) {
    fm_json_key(w, key);
    fm_json_object_begin(w);
    if (count >= 0) {
        fm_json_key_int(w, name, count);
    }
    fm_json_object_end(w);
}

void fm_chat_write_usage(const struct fm_answer *answer, struct fm_json_writer *w) {
    const struct fm_usage usage = fm_answer_usage(answer);
    if (!fm_usage_known(&usage)) {
        fm_json_key_null(w, "usage");
        return;
    }
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    fm_json_key_int(w, "prompt_tokens", usage.input);
    fm_json_key_int(w, "completion_tokens", usage.output);
    fm_json_key_int(w, "total_tokens", usage.input + usage.output);
    write_detail("prompt_tokens_details", CACHED, usage.cached, w);
    write_detail("completion_tokens_details", REASONING, usage.reasoning, w);
    fm_json_object_end(w);
}

void fm_embeddings_write_usage(const struct fm_usage *usage, struct fm_json_writer *w) {
    if (usage->input < 0) {
        fm_json_key_null(w, "usage");
        return;
    }
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    fm_json_key_int(w, "prompt_tokens", usage->input);
    fm_json_key_int(w, "total_tokens", usage->input);
    fm_json_object_end(w);
}
