/*
 * Writes JSON directly into a buffer, without building a tree. The writer adds the commas. A failure of the buffer is
 * sticky (base/buf.h): write everything, then check once. Pure; one thread at a time.
 *
 *     fm_json_object_begin(w);
 *     fm_json_key(w, "ok");
 *     fm_json_bool(w, true);
 *     fm_json_object_end(w);
 */
#ifndef FM_PROTOCOL_JSON_WRITER_H
#define FM_PROTOCOL_JSON_WRITER_H

#include "base/buf.h"

#include <stdint.h>

struct json_object;

struct fm_json_writer {
    struct fm_buf *buf;
    bool comma; /* the next key or element needs a comma before it */
};

/* Writes after the contents of `buf`. The caller still owns `buf`, which must outlive the writer. */
struct fm_json_writer fm_json_writer_on(struct fm_buf *buf);

/* Containers; each begin needs its end. */
void fm_json_object_begin(struct fm_json_writer *w);
void fm_json_object_end(struct fm_json_writer *w);
void fm_json_array_begin(struct fm_json_writer *w);
void fm_json_array_end(struct fm_json_writer *w);

/* A key of plain ASCII without characters that JSON escapes. */
void fm_json_key(struct fm_json_writer *w, const char *key);

/* A key of any text, escaped as by fm_json_string. */
void fm_json_key_text(struct fm_json_writer *w, const char *text, size_t len);

/* Values: an element of an array, or the value of the key just written. */
void fm_json_null(struct fm_json_writer *w);
void fm_json_bool(struct fm_json_writer *w, bool value);
void fm_json_int(struct fm_json_writer *w, int64_t value);
void fm_json_double(struct fm_json_writer *w,
                    double value); /* finite; shortest of up to 17 digits that reads back equal */
void fm_json_string(struct fm_json_writer *w, const char *text,
                    size_t len);                              /* may hold NUL; bytes that are not UTF-8 become U+FFFD */
size_t fm_json_string_size(const char *text, size_t len);     /* bytes of UTF-8 `text` as fm_json_string writes it */
void fm_json_str(struct fm_json_writer *w, const char *text); /* NUL-terminated; NULL writes null */
void fm_json_value(struct fm_json_writer *w, struct json_object *value);  /* a json-c tree; NULL writes null */
void fm_json_raw(struct fm_json_writer *w, const char *json, size_t len); /* a value that is JSON already */

/* Key and value in one. */
void fm_json_key_null(struct fm_json_writer *w, const char *key);
void fm_json_key_count(struct fm_json_writer *w, const char *key, int64_t count); /* below 0: null */
void fm_json_key_bool(struct fm_json_writer *w, const char *key, bool value);
void fm_json_key_int(struct fm_json_writer *w, const char *key, int64_t value);
void fm_json_key_double(struct fm_json_writer *w, const char *key, double value);
void fm_json_key_str(struct fm_json_writer *w, const char *key, const char *text);
void fm_json_key_value(struct fm_json_writer *w, const char *key, struct json_object *value);

#endif
