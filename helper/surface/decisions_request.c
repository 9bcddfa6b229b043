/*
 * The body of decisions.create: PROTOCOL.md, "decisions.create". Each question becomes a last message of the user, with
 * the answers that the model may give.
 */
#include "protocol/engine.h"
#include "surface/answer.h"
#include "surface/decisions.h"
#include "surface/items.h"
#include "surface/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_CHARS_MAX      512
#define DESCRIPTION_CHARS_MAX 4096
#define SAFETY_ID_CHARS_MAX   128   /* characters; the AI SDK's limit */
#define TEXT_MAX              (64u << 20) /* bytes; a body has at most 10 MB, and a byte may become six */
#define ENTRY_SIZE            64u   /* bytes of an answer in the reply, besides its value */
#define QUESTION_SIZE         256u  /* bytes of a question in the reply, besides its name */
#define REPLY_MAX             (FM_OUTPUT_MAX - 65536u)

/* ---- parts with JSON ---- */

static const struct fm_rule json_part_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "data", .check = fm_check_any, .required = true},
    {0},
};

static bool is_json_part(struct json_object *part) {
    return fm_string_is(json_object_object_get(part, "type"), "input_json");
}

/* The text of the part, with an empty line between it and the parts beside it. NULL: out of memory. */
static struct json_object *json_as_text(struct json_object *part, bool after_text, bool last) {
    const int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
    const char *json = json_object_to_json_string_ext(json_object_object_get(part, "data"), flags);
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_append_str(&text, after_text ? "\n\n" : "");
    fm_buf_append_str(&text, json ? json : "");
    fm_buf_append_str(&text, last ? "" : "\n\n");
    struct json_object *value = json && !text.failed ? json_object_new_string_len(text.data, (int)text.len) : NULL;
    fm_buf_free(&text);
    return value;
}

static enum fm_code check_json_part(struct json_object *part, const struct fm_path *at, struct fm_error *error) {
    const struct fm_path data_at = {.parent = at, .key = "data"};
    enum fm_code code = fm_check_members(json_part_rules, part, at, error);
    struct json_object *data = json_object_object_get(part, "data");
    bool valid = json_object_is_type(data, json_type_object) || json_object_is_type(data, json_type_array);
    return code || valid ? code : fm_reject_type(&data_at, data, "an object or an array of objects", error);
}

/* Replaces the parts of the type input_json by texts: only this API has them. */
static enum fm_code replace_json_parts(struct json_object *parts, const struct fm_path *at, struct fm_error *error) {
    size_t count = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;
    bool after_text = false;
    for (size_t i = 0; i < count; i++) {
        struct json_object *part = json_object_array_get_idx(parts, i);
        const struct fm_path part_at = {.parent = at, .index = i};
        if (!is_json_part(part)) {
            after_text = true;
            continue;
        }
        if (check_json_part(part, &part_at, error) != FM_OK) {
            return error->code;
        }
        struct json_object *text = json_as_text(part, after_text, i + 1 == count);
        if (!text) {
            return fm_fail_no_memory(error);
        }
        json_object_object_del(part, "data");
        json_object_object_add(part, "type", json_object_new_string("input_text"));
        json_object_object_add(part, "text", text);
        after_text = false;
    }
    return FM_OK;
}

static enum fm_code replace_in_input(struct json_object *input, struct fm_error *error) {
    static const struct fm_path input_at = {.key = "input"};
    size_t count = json_object_is_type(input, json_type_array) ? json_object_array_length(input) : 0;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const struct fm_path item_at = {.parent = &input_at, .index = i};
        const struct fm_path at = {.parent = &item_at, .key = "content"};
        code = replace_json_parts(json_object_object_get(json_object_array_get_idx(input, i), "content"), &at, error);
    }
    return code;
}

/* ---- questions ---- */

static const char *const part_types[] = {"input_text", "input_image", NULL};

static const struct fm_rule text_part_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "text", .check = fm_check_string, .required = true},
    {0},
};

static const struct fm_rule image_part_rules[] = {
    {.name = "type", .check = fm_check_unsupported, .note = "Decisions read text only."},
    {0},
};

static const struct fm_rule part_rules[] = {
    {.name = "input_text", .members = text_part_rules},
    {.name = "input_image", .members = image_part_rules},
};

static enum fm_code check_instructions(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                       struct fm_error *error) {
    static const struct fm_rule string_rule = {.min = 1};
    static const struct fm_rule variant = {.words = part_types, .members = part_rules};
    (void)rule;
    if (json_object_is_type(value, json_type_string)) {
        return fm_check_string(&string_rule, value, at, error);
    }
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "a string or an array", error);
    }
    size_t count = json_object_array_length(value);
    enum fm_code code = count ? replace_json_parts(value, at, error) : fm_reject_value(at, "Expected a part.", error);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const struct fm_path part_at = {.parent = at, .index = i};
        code = fm_check_variant(&variant, json_object_array_get_idx(value, i), &part_at, error);
    }
    return code;
}

static enum fm_code check_value(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    if (json_object_is_type(value, json_type_boolean)) {
        return FM_OK;
    }
    return json_object_is_type(value, json_type_string) ? fm_check_text(rule, value, at, error)
                                                        : fm_reject_type(at, value, "a string or a boolean", error);
}

static const struct fm_rule choice_members[] = {
    {.name = "value", .check = check_value, .min = 1, .max = CHOICE_CHARS_MAX, .required = true},
    {.name = "description", .check = fm_check_string, .max = DESCRIPTION_CHARS_MAX},
    {0},
};

static const struct fm_rule level_members[] = {
    {.name = "label", .check = fm_check_text, .min = 1, .max = CHOICE_CHARS_MAX, .required = true},
    {.name = "description", .check = fm_check_string, .max = DESCRIPTION_CHARS_MAX},
    {0},
};

/* The value of an answer: a choice's, or a level's. */
static struct json_object *value_at(struct json_object *list, size_t index) {
    struct json_object *entry = json_object_array_get_idx(list, index);
    struct json_object *value = json_object_object_get(entry, "value");
    return value ? value : json_object_object_get(entry, "label");
}

/* A string and a boolean with the same text are different values. Refuses the second one of two equal values. */
static enum fm_code check_unique(struct json_object *list, const char *key, const struct fm_path *at,
                                 struct fm_error *error) {
    struct json_object *seen = json_object_new_object();
    enum fm_code code = seen ? FM_OK : fm_fail_no_memory(error);
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const struct fm_path entry_at = {.parent = at, .index = i};
        const struct fm_path here = {.parent = &entry_at, .key = key};
        const char *json = json_object_to_json_string_ext(value_at(list, i), JSON_C_TO_STRING_PLAIN);
        if (json && json_object_object_get_ex(seen, json, NULL)) {
            code = fm_reject_value(&here, "Another entry has the same value.", error);
        } else if (!json || json_object_object_add(seen, json, NULL) != 0) {
            code = fm_fail_no_memory(error);
        }
    }
    json_object_put(seen);
    return code;
}

/* Checks a list of `least` to `most` entries, each by `entry`. `few`: what the error for fewer says. */
static enum fm_code check_list(fm_check_fn *entry, const struct fm_rule *rule, size_t least, const char *few,
                               size_t most, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    enum fm_code code = fm_check_array(rule, value, at, error);
    if (code != FM_OK) {
        return code;
    }
    size_t count = json_object_array_length(value);
    if (count < least) {
        return fm_reject_value(at, few, error);
    }
    if (count > most) {
        return fm_reject_long_array(at, most, count, error);
    }
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const struct fm_path entry_at = {.parent = at, .index = i};
        code = entry(rule, json_object_array_get_idx(value, i), &entry_at, error);
    }
    return code;
}

/* Checks a list of choices or levels, whose members are those of `rule`. */
static enum fm_code check_answers(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                  struct fm_error *error) {
    enum fm_code code = check_list(fm_check_object, rule, 2, "Expected at least 2 entries.", FM_QUESTION_CHOICES_MAX,
                                   value, at, error);
    return code ? code : check_unique(value, rule->members[0].name, at, error);
}

static const struct fm_rule question_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "name", .check = fm_check_string, .max = CHOICE_CHARS_MAX},
    {.name = "instructions", .check = check_instructions, .required = true},
    {0},
};

static const struct fm_rule choice_rules[] = {
    {.name = "choices", .check = check_answers, .members = choice_members, .required = true},
    {.members = question_rules},
};

static const struct fm_rule score_rules[] = {
    {.name = "levels", .check = check_answers, .members = level_members, .required = true},
    {.members = question_rules},
};

static const char *const question_types[] = {"predicate", "choice", "score", NULL};

static const struct fm_rule question_variants[] = {
    {.name = "predicate", .members = question_rules},
    {.name = "choice", .members = choice_rules},
    {.name = "score", .members = score_rules},
};

static enum fm_code check_questions(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                    struct fm_error *error) {
    return check_list(fm_check_variant, rule, 1, "Expected at least 1 question.", FM_QUESTIONS_MAX, value, at, error);
}

const struct fm_rule fm_decisions_rules[] = {
    {.name = "model", .check = fm_check_model},
    {.name = "input", .check = fm_check_input, .required = true},
    {.name = "questions",
     .check = check_questions,
     .words = question_types,
     .members = question_variants,
     .required = true},
    {.name = "prompt_cache_key", .check = fm_check_string},
    {.name = "prompt_cache_options", .check = fm_check_object, .members = fm_cache_rules},
    {.name = "safety_identifier", .check = fm_check_string, .max = SAFETY_ID_CHARS_MAX},
    {.name = "fm", .check = fm_check_object, .members = fm_common_fm_rules, .closed = true},
    {0},
};

/* ---- the order of answers ---- */

static struct json_object *answers_of(struct json_object *question) {
    struct json_object *choices = json_object_object_get(question, "choices");
    return choices ? choices : json_object_object_get(question, "levels");
}

size_t fm_question_choices(struct json_object *question) {
    struct json_object *answers = answers_of(question);
    return answers ? json_object_array_length(answers) : 2;
}

/* The text of an answer; a boolean is "true" or "false". */
static const char *text_of(struct json_object *value) {
    return json_object_get_string(value);
}

/* Whether `a` comes before `b`: by their texts; the boolean comes before the string. */
static bool comes_before(struct json_object *a, struct json_object *b) {
    int order = strcmp(text_of(a), text_of(b));
    return order < 0 || (order == 0 && json_object_is_type(a, json_type_boolean));
}

void fm_question_order(struct json_object *question, size_t order[FM_QUESTION_CHOICES_MAX]) {
    struct json_object *choices = json_object_object_get(question, "choices");
    size_t count = fm_question_choices(question);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        while (choices && at > 0 && comes_before(value_at(choices, i), value_at(choices, order[at - 1]))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

/* ---- the job ---- */

/*
 * How the model has to write the answer at the place `at` of the sorted list: its text. A string that has the same text
 * as a boolean beside it is written as JSON, with quotes.
 */
static const char *written(struct json_object *list, const size_t *order, size_t count, size_t at) {
    struct json_object *value = value_at(list, order[at]);
    const char *text = text_of(value);
    bool same = json_object_is_type(value, json_type_string) && at > 0 && count > 1 &&
                json_object_is_type(value_at(list, order[at - 1]), json_type_boolean) &&
                strcmp(text, text_of(value_at(list, order[at - 1]))) == 0;
    return same ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : text;
}

static void append_string(struct fm_buf *text, struct json_object *string) {
    fm_buf_append(text, json_object_get_string(string), (size_t)json_object_get_string_len(string));
}

static void append_instructions(struct fm_buf *text, struct json_object *instructions) {
    if (json_object_is_type(instructions, json_type_string)) {
        append_string(text, instructions);
        return;
    }
    for (size_t i = 0; i < json_object_array_length(instructions); i++) {
        append_string(text, json_object_object_get(json_object_array_get_idx(instructions, i), "text"));
    }
}

static void append_answers(struct fm_buf *text, struct json_object *list, const size_t *order) {
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count; i++) {
        struct json_object *description =
            json_object_object_get(json_object_array_get_idx(list, order[i]), "description");
        fm_buf_append_str(text, "\n- ");
        fm_buf_append_str(text, written(list, order, count, i));
        if (description) {
            fm_buf_append_str(text, ": ");
            append_string(text, description);
        }
    }
}

/* The text that asks the question. It ends with what the model may answer. */
static void append_question(struct fm_buf *text, struct json_object *question, const size_t *order) {
    struct json_object *answers = answers_of(question);
    bool levels = json_object_object_get(question, "levels") != NULL;
    append_instructions(text, json_object_object_get(question, "instructions"));
    if (!answers) {
        fm_buf_append_str(text, "\n\nAnswer with one word, Yes or No.");
        return;
    }
    fm_buf_append_str(text, levels ? "\n\nThese are the levels, from the first to the last:" : "\n\nThese are the choices:");
    append_answers(text, answers, order);
    fm_buf_append_str(text, levels ? "\n\nAnswer with the level alone, as it is written here."
                                   : "\n\nAnswer with the choice alone, as it is written here.");
}

static bool write_question(struct json_object *question, struct fm_json_writer *w) {
    size_t order[FM_QUESTION_CHOICES_MAX];
    struct json_object *answers = answers_of(question);
    struct fm_buf text;
    fm_question_order(question, order);
    fm_buf_init(&text, TEXT_MAX);
    append_question(&text, question, order);
    fm_json_object_begin(w);
    fm_json_key(w, "text");
    fm_json_string(w, text.len ? text.data : "", text.len);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    for (size_t i = 0; answers && i < json_object_array_length(answers); i++) {
        fm_json_str(w, written(answers, order, json_object_array_length(answers), i));
    }
    if (!answers) {
        fm_json_str(w, "Yes");
        fm_json_str(w, "No");
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
    bool kept = !text.failed;
    fm_buf_free(&text);
    return kept;
}

static void write_job(struct json_object *body, struct fm_request *request) {
    struct json_object *input = json_object_object_get(body, "input");
    struct json_object *questions = json_object_object_get(body, "questions");
    struct fm_json_writer w = fm_json_writer_on(&request->job_members);
    fm_json_key(&w, "messages");
    fm_json_array_begin(&w);
    if (json_object_is_type(input, json_type_string)) {
        fm_turn_write("user", json_object_get_string(input), (size_t)json_object_get_string_len(input), &w);
    } else {
        fm_items_write_messages(input, &w);
    }
    fm_json_array_end(&w);
    fm_json_key(&w, "questions");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < json_object_array_length(questions); i++) {
        request->job_members.failed |= !write_question(json_object_array_get_idx(questions, i), &w);
    }
    fm_json_array_end(&w);
    fm_request_write_no_effort(&w);
}

/* ---- the body ---- */

static enum fm_code check_whole(struct json_object *input, struct fm_error *error) {
    static const struct fm_path at = {.key = "input"};
    struct fm_buf images;
    if (!json_object_is_type(input, json_type_array)) {
        return FM_OK;
    }
    if (fm_items_refer(input)) {
        return fm_reject_unsupported_value(&at, "Send the items themselves; decisions.create reads no stored items.", error);
    }
    fm_buf_init(&images, TEXT_MAX);
    fm_items_note_images(input, &images);
    bool sees = images.len > 0;
    fm_buf_free(&images);
    return sees ? fm_reject_unsupported_value(&at, "Decisions read text only: leave the images out.", error)
                : fm_items_check_whole(input, error);
}

/* Refuses questions whose answers would be too long for one reply. */
static enum fm_code check_reply(struct json_object *questions, struct fm_error *error) {
    static const struct fm_path at = {.key = "questions"};
    size_t size = 0;
    for (size_t i = 0; i < json_object_array_length(questions); i++) {
        struct json_object *question = json_object_array_get_idx(questions, i);
        struct json_object *answers = answers_of(question);
        size_t len = 0;
        json_object_to_json_string_length(json_object_object_get(question, "name"), JSON_C_TO_STRING_PLAIN, &len);
        size += QUESTION_SIZE + len;
        for (size_t k = 0; answers && k < json_object_array_length(answers); k++) {
            json_object_to_json_string_length(value_at(answers, k), JSON_C_TO_STRING_PLAIN, &len);
            size += ENTRY_SIZE + 2 * len; /* the best one stands twice in the reply */
        }
    }
    return size <= REPLY_MAX ? FM_OK
                             : fm_reject_value(&at, "The answers are too long for one reply: ask in several calls.", error);
}

enum fm_code fm_decisions_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                               struct fm_error *error) {
    static const struct fm_param_name params[] = {{"messages", "input"}, {0}};
    struct json_object *questions = json_object_object_get(body, "questions");
    enum fm_code code = check_whole(json_object_object_get(body, "input"), error);
    code = code ? code : check_reply(questions, error);
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, body, ignored);
    request->format_params = params;
    request->input_count = json_object_array_length(questions);
    request->job_members.failed |= json_object_deep_copy(questions, &request->questions, NULL) != 0;
    write_job(body, request);
    return fm_request_end(request, error);
}

enum fm_code fm_decisions_prepare(struct json_object *body, struct fm_error *error) {
    return replace_in_input(json_object_object_get(body, "input"), error);
}
