/* Transcripts as text: "user: ..." and "assistant: ..." for each message. */
#include "memory/source.h"
#include "base/buf.h"
#include "base/file.h"
#include "sessions/journal.h"
#include "sessions/transcript.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

/* A NUL becomes a blank: the index and the embedder would take it for the end of the text. */
static void add_content(struct fm_buf *text, struct json_object *content) {
    const char *from = json_object_get_string(content);
    size_t len = (size_t)json_object_get_string_len(content);
    for (size_t at = 0; at < len;) {
        size_t part = strlen(from + at);
        fm_buf_append(text, from + at, part);
        at += part;
        if (at < len) {
            fm_buf_append_char(text, ' ');
            at++;
        }
    }
}

struct saying {
    struct fm_buf text;
    struct json_object *taken_back;
};

static bool add_message(void *context, const struct gw_record *record) {
    struct saying *saying = context;
    struct fm_buf *text = &saying->text;
    if (record->type == GW_RECORD_MESSAGE && !gw_is_taken_back(saying->taken_back, record)) {
        fm_buf_append_str(text, gw_record_text(record, "role"));
        fm_buf_append_str(text, ": ");
        add_content(text, json_object_object_get(record->json, "content"));
        fm_buf_append_str(text, "\n\n");
    }
    return !text->failed;
}

static size_t whole_lines(const struct fm_buf *file) {
    size_t len = file->len;
    while (len && file->data[len - 1] != '\n') {
        len--;
    }
    return len;
}

static enum fm_code cut(const struct fm_buf *file, size_t len, struct gw_chunks *chunks, struct fm_error *error) {
    struct saying saying = {.taken_back = gw_transcript_taken_back(file->data, len)};
    struct fm_buf *text = &saying.text;
    fm_buf_init(text, 2 * (size_t)GW_JOURNAL_FILE_MAX);
    const struct gw_transcript_reader reader = {.context = &saying, .record = add_message};
    gw_transcript_read(file->data, len, &reader);
    bool done = !text->failed && gw_chunks_cut(chunks, text->data, text->len, GW_CHUNK_BYTES, GW_OVERLAP_BYTES);
    json_object_put(saying.taken_back);
    fm_buf_free(text);
    return done ? FM_OK : fm_fail_no_memory(error);
}

enum fm_code gw_source_read(const char *path, const char *known, char hash[GW_HASH_LEN + 1], struct gw_chunks *chunks,
                            struct fm_error *error) {
    struct fm_buf file;
    fm_buf_init(&file, GW_JOURNAL_FILE_MAX);
    if (fm_file_check_readable(path) == ENOENT) {
        return fm_fail(error, FM_NOT_FOUND, "there is no file %s", path);
    }
    enum fm_code code = fm_file_read(path, &file, error);
    if (code == FM_OK) {
        size_t len = whole_lines(&file);
        gw_hash(file.data ? file.data : "", len, hash);
        code = strcmp(hash, known) == 0 ? FM_OK : cut(&file, len, chunks, error);
    }
    fm_buf_free(&file);
    return code;
}
