/*
 * Log probabilities of an answer's tokens. The engine sends them with the text, one list for a whole delta. So a *mark*
 * notes where each of the engine's deltas ended in the output and in the entries, and a piece of a stream consists of
 * whole deltas.
 */
#include "surface/answer.h"

#include <json-c/json.h>
#include <math.h>

#define MARKS_MAX (64u << 20)

struct mark {
    size_t text;    /* bytes of the output up to the mark */
    size_t entries; /* bytes of entries up to the mark */
    size_t count;   /* entries up to the mark */
};

static const struct mark *marks_of(const struct fm_answer *answer) {
    return (const void *)answer->marks.data;
}

static size_t mark_count(const struct fm_answer *answer) {
    return answer->marks.len / sizeof(struct mark);
}

void fm_logprobs_init(struct fm_answer *answer, size_t max) {
    fm_buf_init(&answer->logprobs, max);
    fm_buf_init(&answer->marks, MARKS_MAX);
}

void fm_logprobs_free(struct fm_answer *answer) {
    fm_buf_free(&answer->logprobs);
    fm_buf_free(&answer->marks);
}

void fm_logprobs_next(struct fm_answer *answer) {
    fm_buf_init(&answer->logprobs, answer->logprobs.max - answer->logprobs.len); /* all choices share one object */
    fm_buf_init(&answer->marks, MARKS_MAX);
}

/* Returns the entries of the first `marks` marks. */
static size_t entry_count(const struct fm_answer *answer, size_t marks) {
    return marks > 0 ? marks_of(answer)[marks - 1].count : 0;
}

/* ---- from the engine ---- */

static bool write_token(struct json_object *bytes, struct fm_json_writer *w) {
    char text[FM_LOGPROB_BYTES_MAX];
    size_t len =
        json_object_is_type(bytes, json_type_array) ? json_object_array_length(bytes) : FM_LOGPROB_BYTES_MAX + 1;
    if (len > FM_LOGPROB_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        struct json_object *byte = json_object_array_get_idx(bytes, i);
        int64_t value = json_object_get_int64(byte);
        if (!json_object_is_type(byte, json_type_int) || value < 0 || value > 255) {
            return false;
        }
        text[i] = (char)value;
    }
    fm_json_key(w, "token");
    fm_json_string(w, text, len); /* a part of a character becomes U+FFFD */
    fm_json_key_value(w, "bytes", bytes);
    return true;
}

/* Writes the members that an entry and its alternatives both have. */
static bool write_members(struct json_object *entry, struct fm_json_writer *w) {
    struct json_object *logprob = json_object_object_get(entry, "logprob");
    double value = json_object_get_double(logprob);
    bool number = json_object_is_type(logprob, json_type_double) || json_object_is_type(logprob, json_type_int);
    if (!number || !isfinite(value) || value > 0 || !write_token(json_object_object_get(entry, "bytes"), w)) {
        return false;
    }
    fm_json_key_double(w, "logprob", value);
    return true;
}

static bool write_alternatives(struct json_object *top, struct fm_json_writer *w) {
    size_t count = json_object_is_type(top, json_type_array) ? json_object_array_length(top) : FM_TOP_LOGPROBS_MAX + 1;
    bool valid = count <= FM_TOP_LOGPROBS_MAX;
    fm_json_key(w, "top_logprobs");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count && valid; i++) {
        struct json_object *entry = json_object_array_get_idx(top, i);
        fm_json_object_begin(w);
        valid = json_object_is_type(entry, json_type_object) && write_members(entry, w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
    return valid;
}

static bool write_entry(struct json_object *entry, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    bool valid = json_object_is_type(entry, json_type_object) && write_members(entry, w) &&
                 write_alternatives(json_object_object_get(entry, "top"), w);
    fm_json_object_end(w);
    fm_buf_append_char(w->buf, ',');
    w->comma = false;
    return valid;
}

enum fm_code fm_answer_logprobs(struct fm_answer *answer, struct json_object *list, struct fm_error *error) {
    if (!answer->request.logprobs) {
        return FM_OK;
    }
    bool valid = json_object_is_type(list, json_type_array);
    size_t count = valid ? json_object_array_length(list) : 0;
    size_t before = answer->logprobs.len;
    struct fm_json_writer w = fm_json_writer_on(&answer->logprobs);
    for (size_t i = 0; i < count && valid; i++) {
        valid = write_entry(json_object_array_get_idx(list, i), &w);
    }
    if (!valid) {
        answer->logprobs.len = before; /* a malformed list is dropped as a whole */
        return fm_fail(error, FM_INTERNAL, "the engine sent text without its log probabilities, or wrong ones");
    }
    const struct mark mark = {
        .text = answer->output.len,
        .entries = answer->logprobs.len,
        .count = count + entry_count(answer, mark_count(answer)),
    };
    if (!answer->logprobs.failed) { /* otherwise `logprobs` holds a part of the list, which no mark may include */
        fm_buf_append(&answer->marks, &mark, sizeof mark);
    }
    bool held = !answer->logprobs.failed && !answer->marks.failed;
    return held ? FM_OK
                : fm_fail(error, FM_INTERNAL,
                          "the log probabilities are too many to hold: ask for fewer alternatives or choices, or a "
                          "shorter answer");
}

/* ---- to the host ---- */

static void write_entries(const struct fm_answer *answer, size_t from, size_t to, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    if (to > from) {
        fm_json_raw(w, answer->logprobs.data + from, to - from - 1); /* without the last comma */
    }
    fm_json_array_end(w);
}

/* Returns where the entries of the first `count` marks end. */
static size_t entries_end(const struct fm_answer *answer, size_t count) {
    return count > 0 ? marks_of(answer)[count - 1].entries : 0;
}

/*
 * Returns where a piece ends. The first mark that was not sent always belongs to the piece, even if the mark is beyond
 * `end`.
 */
size_t fm_logprobs_piece_end(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t end) {
    const struct mark *marks = marks_of(answer);
    size_t first = cursor->sent_marks;
    size_t next = first;
    while (next < mark_count(answer) && (next == first || marks[next].text <= end)) {
        next++;
    }
    return next > first ? marks[next - 1].text : end;
}

void fm_logprobs_take(const struct fm_answer *answer, struct fm_cursor *cursor, size_t end) {
    cursor->piece_marks = cursor->sent_marks;
    while (cursor->sent_marks < mark_count(answer) && marks_of(answer)[cursor->sent_marks].text <= end) {
        cursor->sent_marks++;
    }
}

void fm_answer_write_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor,
                              struct fm_json_writer *w) {
    if (cursor) {
        write_entries(answer, entries_end(answer, cursor->piece_marks), entries_end(answer, cursor->sent_marks), w);
    } else {
        write_entries(answer, 0, entries_end(answer, mark_count(answer)), w);
    }
}

/* Returns how many marks there are up to `text`. */
static size_t marks_until(const struct fm_answer *answer, size_t text) {
    size_t count = 0;
    while (count < mark_count(answer) && marks_of(answer)[count].text <= text) {
        count++;
    }
    return count;
}

void fm_part_write_logprobs(const struct fm_answer *answer, size_t index, struct fm_json_writer *w) {
    size_t start = answer->parts[index].start;
    size_t end = start + fm_answer_part_len(answer, index);
    write_entries(answer, entries_end(answer, marks_until(answer, start)),
                  entries_end(answer, marks_until(answer, end)), w);
}

/* ---- to the store and back ---- */

void fm_logprobs_write_counts(const struct fm_answer *answer, struct fm_json_writer *w) {
    const size_t *pieces = fm_answer_pieces(answer);
    size_t mark = 0;
    fm_json_array_begin(w);
    for (size_t i = 0; i < fm_answer_piece_count(answer); i++) {
        size_t before = entry_count(answer, mark);
        while (mark < mark_count(answer) && marks_of(answer)[mark].text <= pieces[i]) {
            mark++;
        }
        fm_json_int(w, (int64_t)(entry_count(answer, mark) - before));
    }
    fm_json_array_end(w);
}

/* Restores `count` entries from `from` on. False: there are fewer. */
static bool restore_entries(struct fm_answer *answer, struct json_object *list, size_t from, size_t count) {
    struct fm_json_writer w = fm_json_writer_on(&answer->logprobs);
    size_t have = json_object_array_length(list);
    bool there = from <= have && count <= have - from;
    for (size_t i = from; there && i < from + count; i++) {
        w.comma = false;
        fm_json_value(&w, json_object_array_get_idx(list, i));
        fm_buf_append_char(&answer->logprobs, ',');
    }
    return there;
}

bool fm_logprobs_restore(struct fm_answer *answer, struct json_object *list, struct json_object *counts) {
    const size_t *pieces = fm_answer_pieces(answer);
    size_t total = 0;
    bool there = json_object_is_type(list, json_type_array) && json_object_is_type(counts, json_type_array);
    for (size_t i = 0; i < fm_answer_piece_count(answer) && there; i++) {
        int64_t count = json_object_get_int64(json_object_array_get_idx(counts, i));
        there = count >= 0 && restore_entries(answer, list, total, (size_t)count);
        total += there ? (size_t)count : 0;
        const struct mark mark = {.text = pieces[i], .entries = answer->logprobs.len, .count = total};
        fm_buf_append(&answer->marks, &mark, sizeof mark);
    }
    return there && !answer->logprobs.failed && !answer->marks.failed;
}
