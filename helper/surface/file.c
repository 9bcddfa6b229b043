/* Files as base64, alone or as `data:` URLs: how they are checked, and the text that the model reads. */
#include "surface/file.h"
#include "base/utf8.h"
#include "protocol/base64.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <string.h>
#include <strings.h>

#define SCHEME        "data:"
#define BASE64        ";base64"
#define PDF           "%PDF-"
#define FILE_NAME_MAX 255 /* characters, as in the file systems that people have */

static const char *const details[] = {"auto", "low", "high", NULL};

/* Finds the digits in `data`. False: it is a `data:` URL without base64. */
static bool find_digits(struct json_object *data, const char **digits, size_t *len) {
    const char *text = json_object_get_string(data);
    const char *end = text + json_object_get_string_len(data);
    *digits = text;
    if (strncasecmp(text, SCHEME, strlen(SCHEME)) == 0) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t before = comma ? (size_t)(comma - text) : 0;
        if (before < strlen(BASE64) || strncasecmp(comma - strlen(BASE64), BASE64, strlen(BASE64)) != 0) {
            return false;
        }
        *digits = comma + 1;
    }
    *len = (size_t)(end - *digits);
    return true;
}

/* Appends the bytes of a file. An empty file has no digits. False: the digits are not base64, or out of memory. */
static bool append_bytes(const char *digits, size_t len, struct fm_buf *bytes) {
    size_t size = fm_base64_decoded_size(digits, len);
    if (len == 0) {
        return true;
    }
    if (size == 0 || !fm_buf_reserve(bytes, size) ||
        !fm_base64_read(digits, len, (unsigned char *)bytes->data + bytes->len)) {
        return false;
    }
    bytes->len += size;
    return true;
}

static enum fm_code check_bytes(const struct fm_buf *bytes, const struct fm_path *at, struct fm_error *error) {
    if (bytes->len >= strlen(PDF) && memcmp(bytes->data, PDF, strlen(PDF)) == 0) {
        return fm_reject_unsupported_value(at, "fm-proxy reads no PDF: send the text of the document instead.", error);
    }
    bool text = bytes->len == 0 || (fm_utf8_valid(bytes->data, bytes->len) && !memchr(bytes->data, 0, bytes->len));
    return text ? FM_OK
                : fm_reject_unsupported_value(
                      at, "fm-proxy reads files of text in UTF-8: convert the file, or send its text instead.", error);
}

static enum fm_code check_data(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    const char *digits;
    size_t len;
    (void)rule;
    if (!json_object_is_type(value, json_type_string)) {
        return fm_reject_type(at, value, "a string", error);
    }
    bool empty = json_object_get_string_len(value) == 0;
    if (empty || !find_digits(value, &digits, &len)) {
        return fm_reject_value(at, "Expected the file in base64, or a 'data:' URL with ';base64,' before the data.",
                               error);
    }
    struct fm_buf bytes;
    fm_buf_init(&bytes, len);
    bool decoded = append_bytes(digits, len, &bytes);
    enum fm_code code = bytes.failed ? fm_fail_no_memory(error)
                        : decoded    ? check_bytes(&bytes, at, error)
                                     : fm_reject_value(at, "Expected the file in base64.", error);
    fm_buf_free(&bytes);
    return code;
}

const struct fm_rule fm_file_rules[] = {
    {.name = "file_data", .check = check_data, .required = true},
    {.name = "filename", .check = fm_check_text, .max = FILE_NAME_MAX},
    {.name = "detail", .check = fm_check_enum, .words = details}, /* no effect on text */
    {.name = "file_url",
     .check = fm_check_unsupported,
     .note = "fm-proxy fetches nothing: send the file in 'file_data'."},
    {.name = "file_id",
     .check = fm_check_unsupported,
     .note = "fm-proxy keeps no files: send the file in 'file_data'."},
    {0},
};

static void end_line(struct fm_buf *text) {
    if (text->len > 0 && text->data[text->len - 1] != '\n') {
        fm_buf_append_char(text, '\n');
    }
}

/* The name is a JSON string, so that no name can end the tag. */
void fm_file_append(struct json_object *file, struct fm_buf *text) {
    struct json_object *name = json_object_object_get(file, "filename");
    const char *digits;
    size_t len;
    end_line(text);
    fm_buf_append_str(text, "<file");
    if (name && json_object_get_string_len(name) > 0) {
        struct fm_json_writer w = fm_json_writer_on(text);
        fm_buf_append_str(text, " name=");
        fm_json_value(&w, name);
    }
    fm_buf_append_str(text, ">\n");
    size_t start = text->len;
    bool whole =
        find_digits(json_object_object_get(file, "file_data"), &digits, &len) && append_bytes(digits, len, text);
    text->failed |= !whole; /* a checked file is base64, so there was no memory */
    if (text->failed) {
        return;
    }
    size_t mark = fm_utf8_mark(text->data + start, text->len - start);
    if (mark > 0) {
        memmove(text->data + start, text->data + start + mark, text->len - start - mark);
        text->len -= mark;
    }
    end_line(text);
    fm_buf_append_str(text, "</file>\n");
}
