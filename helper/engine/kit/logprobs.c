/* A queue of tokens with their log probabilities. When text is sent, the entries of its tokens are cut off. */
#include "engine/kit/logprobs.h"

#include <math.h>

/* Entries pile up while their text may still become a stop string. */
#define ENTRIES_MAX (16u << 20) /* bytes */
#define RECORDS_MAX (64u << 20)

struct fm_logprob_entry {
    size_t len;    /* bytes of the token */
    size_t pushed; /* how many of its bytes were pushed */
    size_t start;  /* where its text begins, counted from the beginning of all text */
    size_t carry;  /* bytes that complete a character of earlier tokens */
    size_t record; /* bytes of the entry in queue->records: its text, then its other members as JSON */
    size_t values; /* how many JSON values it has */
};

static struct fm_logprob_entry *entries_of(const struct fm_logprob_queue *queue) {
    return (void *)queue->entries.data;
}

static size_t count_of(const struct fm_logprob_queue *queue) {
    return queue->entries.len / sizeof(struct fm_logprob_entry);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

void fm_logprob_queue_init(struct fm_logprob_queue *queue) {
    *queue = (struct fm_logprob_queue){0};
    fm_buf_init(&queue->entries, ENTRIES_MAX);
    fm_buf_init(&queue->records, RECORDS_MAX);
}

void fm_logprob_queue_free(struct fm_logprob_queue *queue) {
    fm_buf_free(&queue->entries);
    fm_buf_free(&queue->records);
}

static void write_bytes(const char *bytes, size_t len, struct fm_json_writer *w) {
    fm_json_key(w, "bytes");
    fm_json_array_begin(w);
    for (size_t i = 0; i < least(len, FM_LOGPROB_BYTES_MAX); i++) {
        fm_json_int(w, (unsigned char)bytes[i]);
    }
    fm_json_array_end(w);
}

/* Logits are not exact to six decimal places. A value that is not a number counts as the least likely one. */
static void write_logprob(double logprob, struct fm_json_writer *w) {
    double told = !(logprob > FM_LOGPROB_MIN) ? FM_LOGPROB_MIN : logprob > 0 ? 0 : logprob;
    fm_json_key_double(w, "logprob", round(told * 1e6) / 1e6 + 0.0); /* no -0 */
}

static void write_top(const struct fm_token_logprobs *token, struct fm_json_writer *w) {
    fm_json_key(w, "top");
    fm_json_array_begin(w);
    for (size_t i = 0; i < token->top_count; i++) {
        fm_json_object_begin(w);
        write_bytes(token->top[i].bytes, token->top[i].len, w);
        write_logprob(token->top[i].logprob, w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static size_t values_of(const struct fm_token_logprobs *token) {
    size_t values = 4 + least(token->token.len, FM_LOGPROB_BYTES_MAX);
    for (size_t i = 0; i < token->top_count; i++) {
        values += 3 + least(token->top[i].len, FM_LOGPROB_BYTES_MAX);
    }
    return values;
}

void fm_logprob_queue_add(struct fm_logprob_queue *queue, const struct fm_token_logprobs *token) {
    struct fm_buf *records = &queue->records;
    size_t before = records->len;
    if (token->token.len == 0) {
        return;
    }
    fm_buf_append(records, token->token.bytes, token->token.len);
    struct fm_json_writer w = fm_json_writer_on(records);
    write_logprob(token->token.logprob, &w);
    write_top(token, &w);
    const struct fm_logprob_entry entry = {
        .len = token->token.len,
        .record = records->len - before,
        .values = values_of(token),
    };
    fm_buf_append(&queue->entries, &entry, sizeof entry);
}

/* How many of the next `len` bytes belong to one token; counts them as pushed. */
static size_t take_token_bytes(struct fm_logprob_queue *queue, size_t len, const struct fm_text_stream *stream,
                               const struct fm_buf *out) {
    struct fm_logprob_entry *entries = entries_of(queue);
    if (queue->begun == 0 || entries[queue->begun - 1].pushed == entries[queue->begun - 1].len) {
        if (queue->begun == count_of(queue)) {
            return len; /* these bytes do not belong to an added token */
        }
        entries[queue->begun].start = queue->given + out->len + stream->held.len;
        entries[queue->begun].carry = stream->partial_len;
        queue->begun++;
    }
    struct fm_logprob_entry *entry = &entries[queue->begun - 1];
    size_t taken = least(len, entry->len - entry->pushed);
    entry->pushed += taken;
    return taken;
}

enum fm_text_status fm_logprob_queue_push(struct fm_logprob_queue *queue, struct fm_text_stream *stream,
                                          const char *bytes, size_t len, struct fm_buf *out) {
    enum fm_text_status status =
        queue->entries.failed || queue->records.failed ? FM_TEXT_NO_MEMORY : fm_text_stream_push(stream, bytes, 0, out);
    while (len > 0 && status == FM_TEXT_MORE) {
        size_t taken = take_token_bytes(queue, len, stream, out);
        status = fm_text_stream_push(stream, bytes, taken, out);
        bytes += taken;
        len -= taken;
    }
    return status;
}

/* True if nothing is incomplete: the text ends at the end of a token and of a character. */
static bool at_border(const struct fm_logprob_queue *queue, const struct fm_text_stream *stream) {
    const struct fm_logprob_entry *entries = entries_of(queue);
    bool whole = queue->begun == 0 || entries[queue->begun - 1].pushed == entries[queue->begun - 1].len;
    return whole && stream->partial_len == 0 && stream->held.len == 0;
}

struct fm_logprob_cut fm_logprob_queue_cut(const struct fm_logprob_queue *queue, const struct fm_text_stream *stream,
                                           const struct fm_buf *out, bool all) {
    const struct fm_logprob_entry *entries = entries_of(queue);
    struct fm_logprob_cut cut = {0};
    size_t end = queue->given + out->len;
    size_t values = 0;
    size_t i = 0;
    for (; i < queue->begun && entries[i].start <= end; i++) {
        if (entries[i].carry == 0 && cut.len > 0 && values > FM_LOGPROB_VALUES_MAX) {
            return cut;
        }
        if (entries[i].carry == 0) {
            cut = (struct fm_logprob_cut){.len = entries[i].start - queue->given, .count = i};
        }
        values += entries[i].values;
    }
    bool full = cut.len > 0 && values > FM_LOGPROB_VALUES_MAX;
    return !full && (all || at_border(queue, stream)) ? (struct fm_logprob_cut){.len = out->len, .count = i} : cut;
}

/* How many bytes of the entry `i` are in a text that ends at `end`. A stop string may have cut some of them. */
static size_t kept_of(const struct fm_logprob_queue *queue, size_t i, size_t end) {
    const struct fm_logprob_entry *entry = &entries_of(queue)[i];
    bool ends_before = i + 1 < queue->begun && entries_of(queue)[i + 1].start <= end;
    size_t before = entry->start + entry->carry;
    if (ends_before && entry->start < end) {
        return entry->len;
    }
    return end > before ? least(entry->len, end - before) : 0;
}

void fm_logprob_queue_write(const struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut,
                            struct fm_json_writer *w) {
    const char *record = queue->records.data;
    fm_json_array_begin(w);
    for (size_t i = 0; i < cut->count; i++) {
        const struct fm_logprob_entry *entry = &entries_of(queue)[i];
        size_t kept = kept_of(queue, i, queue->given + cut->len);
        if (kept > 0) {
            fm_json_object_begin(w);
            write_bytes(record, kept, w);
            fm_json_raw(w, record + entry->len, entry->record - entry->len);
            fm_json_object_end(w);
        }
        record += entry->record;
    }
    fm_json_array_end(w);
}

void fm_logprob_queue_drop(struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut, struct fm_buf *out) {
    size_t records = 0;
    for (size_t i = 0; i < cut->count; i++) {
        records += entries_of(queue)[i].record;
    }
    fm_buf_drop_front(&queue->records, records);
    fm_buf_drop_front(&queue->entries, cut->count * sizeof(struct fm_logprob_entry));
    fm_buf_drop_front(out, cut->len);
    queue->begun -= cut->count;
    queue->given += cut->len;
}
