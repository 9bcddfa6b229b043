/*
 * responses.compact replaces a conversation by a summary. Writes the members of the result besides `ok`; there is no
 * stream. The summary is the answer's text, after FM_COMPACTION_START, in an item of the type `compaction`. A summary
 * that reaches a token limit is generated once more. If the second one reaches the limit too, it ends with its last
 * whole sentence.
 */
#include "surface/answer.h"
#include "surface/items.h"
#include "surface/request.h"
#include "surface/usage.h"

#include <string.h>

/* Length of the character at `text` if it always ends a sentence; otherwise 0. */
static size_t full_stop(const char *text, size_t len) {
    static const char *const stops[] = {"\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f"}; /* full-width . ! ? */
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (len >= 3 && memcmp(text, stops[i], 3) == 0) {
            return 3;
        }
    }
    return 0;
}

/* Length of a `.`, `!` or `?` with closing quotes and brackets, if white space or the end follows; otherwise 0. */
static size_t stop_before_space(const char *text, size_t len) {
    size_t at = 1;
    if (!strchr(".!?", *text)) {
        return 0;
    }
    while (at < len && strchr("\"')]*", text[at])) {
        at++;
    }
    return at == len || strchr(" \n\t\r", text[at]) ? at : 0;
}

/* Length of the whole sentences at the beginning of UTF-8 `text`. A line counts as one, as in lists. */
static size_t whole_sentences(const char *text, size_t len) {
    size_t whole = 0;
    bool blank = true; /* the line so far */
    for (size_t i = 0; i < len; i++) {
        size_t stop = text[i] ? stop_before_space(text + i, len - i) : 0;
        stop = stop ? stop : full_stop(text + i, len - i);
        whole = stop ? i + stop : text[i] == '\n' && !blank ? i : whole;
        blank = text[i] == '\n' || (blank && text[i] == ' ');
    }
    return whole;
}

/* Length of the part of the text that is the summary: all of it if there is no whole sentence. */
static size_t summary_len(const struct fm_answer *answer) {
    size_t len = fm_answer_text_len(answer);
    size_t whole = answer->finish == FM_FINISH_LENGTH ? whole_sentences(fm_answer_text(answer), len) : 0;
    return whole ? whole : len;
}

static enum fm_code check_cut(const struct fm_answer *answer, struct fm_error *error) {
    bool ran_on = answer->usage.output >= FM_SUMMARY_TOKENS; /* in other cases the context was full */
    if (ran_on || whole_sentences(fm_answer_text(answer), fm_answer_text_len(answer)) > 0) {
        return FM_OK;
    }
    return fm_fail(error, FM_CONTEXT_OVERFLOW,
                   "the input leaves no room for a summary in the context: send less of it");
}

static void write_item(const struct fm_answer *answer, struct fm_json_writer *w) {
    struct fm_buf text;
    fm_buf_init(&text, w->buf->max);
    fm_buf_append_str(&text, FM_COMPACTION_START);
    fm_buf_append(&text, fm_answer_text(answer), summary_len(answer));
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->item_id);
    fm_json_key_str(w, "type", "compaction");
    fm_json_key(w, "encrypted_content");
    fm_json_string(w, text.data ? text.data : "", text.len);
    fm_json_object_end(w);
    w->buf->failed |= text.failed;
    fm_buf_free(&text);
}

/* Writes nothing for an answer that failed. */
static void compact_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    const struct fm_usage usage = fm_answer_usage(answer);
    if (!answer->finished || (answer->finish != FM_FINISH_STOP && answer->finish != FM_FINISH_LENGTH)) {
        return;
    }
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response.compaction");
    fm_json_key_int(w, "created_at", answer->created_at);
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    write_item(answer, w);
    fm_json_array_end(w);
    fm_responses_write_usage(&usage, w);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
}

const struct fm_surface fm_surface_compact = {
    .check_cut = check_cut,
    .id_prefix = "resp_",
    .item_prefix = FM_COMPACTION_PREFIX,
    .whole_usage = true,
    .parse = fm_compact_parse,
    .write = compact_write,
};
