/*
 * The filter's stages, each in a separate file. A byte goes from one to the next: known, pem, names, keys, and then
 * into `out`. A stage holds back the bytes that it is not sure of, in its own state; a byte that it has passed on never
 * comes back. A stage calls only the next one.
 */
#ifndef GW_SECURITY_FILTER_INTERNAL_H
#define GW_SECURITY_FILTER_INTERNAL_H

#include "security/filter.h"
#include "security/key_formats.h"

#include <stdint.h>

#define GW_PEM_HEAD_MAX 96u  /* "-----BEGIN ... PRIVATE KEY-----" */
#define GW_PEM_HELD_MAX 256u /* lines have 64 or 76 bytes; longer ones are judged in parts */
#define GW_NAME_KEPT    64u  /* the end of a name */
#define GW_VALUE_MAX    4096u
#define GW_KEY_HELD_MAX 1200u /* this many bytes decide even the longest formats of key_formats.c */

/* A secret with its table for Knuth-Morris-Pratt search: the length of the next prefix to try after a mismatch. */
struct gw_secret {
    char *text;
    size_t len;
    uint16_t *back;
};

struct gw_known {
    struct gw_secret secrets[GW_KNOWN_MAX];
    size_t count;
};

enum gw_pem_state { GW_PEM_TEXT, GW_PEM_LABEL, GW_PEM_BODY };

enum gw_name_state { GW_NAME_TEXT, GW_NAME_AFTER, GW_NAME_BEFORE, GW_NAME_BARE, GW_NAME_QUOTED, GW_NAME_REST };

enum gw_name_strength {
    GW_NAME_NONE,
    GW_NAME_STRONG,   /* an environment variable of a secret */
    GW_NAME_PASSWORD, /* password = ... */
    GW_NAME_TOKEN,    /* api_key = ... */
    GW_NAME_KEY,      /* cache_key = ..., which is hardly ever a secret */
};

/*
 * Made from key_formats.c for each byte: its classes, the formats that may begin with it, and the formats that may
 * begin after it.
 */
struct gw_key_tables {
    uint16_t classes[256];
    uint64_t may_begin[256];
    uint64_t may_follow[256];
};

struct gw_filter {
    const struct gw_known *known;
    struct fm_buf *out; /* during a call */
    const struct gw_key_tables *tables;
    struct {
        uint16_t matched[GW_KNOWN_MAX]; /* of each secret: how many of its first bytes the text ends with */
        unsigned char held[GW_KNOWN_LEN_MAX];
        bool hit[GW_KNOWN_LEN_MAX];
        size_t first; /* index of the first held byte in `held`, a ring */
        size_t count;
        bool marked; /* the last byte that left belonged to a secret */
    } k;
    struct {
        enum gw_pem_state state;
        char head[GW_PEM_HEAD_MAX + 1];
        size_t head_len;
        size_t dashes; /* at the end of the label */
        char held[GW_PEM_HELD_MAX];
        size_t held_len;
        bool dropped; /* a part of the key was dropped, and the marker was written */
    } p;
    struct {
        enum gw_name_state state;
        enum gw_name_strength strength;
        char name[GW_NAME_KEPT + 1];
        size_t name_len;
        size_t gap;      /* blanks after the name or the separator */
        bool path;       /* "/" is before the name */
        bool quote_seen; /* the name's closing quote */
        bool escaped;    /* the quotes are escaped, as in JSON inside a string */
        bool backslash;  /* in quotes: the last byte is a backslash that escapes the next */
        bool tight;      /* "=" comes right after the name, and the value right after "=" */
        char separator;
        char quote;
        bool drop; /* GW_NAME_REST: the rest of a long value is dropped too */
        char value[GW_VALUE_MAX];
        size_t value_len;
    } n;
    struct {
        unsigned char held[GW_KEY_HELD_MAX];
        size_t count;
        size_t at;      /* the formats have seen `held` up to this index */
        uint64_t alive; /* the formats that may still match */
        uint8_t part[GW_FORMATS_MAX];
        uint16_t run[GW_FORMATS_MAX];         /* bytes of the part so far */
        uint16_t begins[GW_FORMATS_MAX];      /* where in `held` the part began */
        unsigned char before;                 /* the byte before the held bytes; 0: none */
        const struct gw_key_format *dropping; /* a format whose last part is being dropped; NULL: none */
    } t;
};

/* Returns the tables, which are made once. Any thread. */
const struct gw_key_tables *gw_filter_keys_tables(void);

/* Each stage has two functions: one takes a byte, the other the end of the text. */
void gw_filter_known_byte(struct gw_filter *filter, unsigned char c);
void gw_filter_known_end(struct gw_filter *filter);
void gw_filter_pem_byte(struct gw_filter *filter, unsigned char c);
void gw_filter_pem_end(struct gw_filter *filter);
void gw_filter_names_byte(struct gw_filter *filter, unsigned char c);
void gw_filter_names_end(struct gw_filter *filter);
void gw_filter_keys_byte(struct gw_filter *filter, unsigned char c);
void gw_filter_keys_end(struct gw_filter *filter);

#endif
