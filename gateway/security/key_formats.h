/*
 * The table of well-known formats of keys. A format is a row of parts. Each part is a literal, or a run of bytes of
 * some classes, as in a regular expression without alternatives. A run takes all bytes that it can, so the next literal
 * must begin with a byte that is not of the run's classes. Pure.
 */
#ifndef GW_SECURITY_KEY_FORMATS_H
#define GW_SECURITY_KEY_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_FORMATS_MAX 64u /* a bit each */
#define GW_PARTS_MAX   6u
#define GW_KEY_LOOK    48u /* bytes of a run by which `mixed` decides */

/* Classes of bytes, as bits. */
enum gw_class {
    GW_DIGIT = 1,
    GW_UPPER = 2,
    GW_LOWER = 4,
    GW_UNDERSCORE = 8,
    GW_DASH = 16,
    GW_DOT = 32,
    GW_BASE64 = 64,    /* + / = */
    GW_TILDE = 128,    /* ~ */
    GW_USER = 256,     /* of a URL's user name: all but blanks, quotes, brackets, / @ : */
    GW_URL_PASS = 512, /* of a URL's password: as GW_USER, with : too */
    GW_HEX = 1024,     /* 0-9 a-f */
    GW_ALNUM = GW_DIGIT | GW_UPPER | GW_LOWER,
    GW_WORD = GW_ALNUM | GW_UNDERSCORE,
    GW_URL64 = GW_WORD | GW_DASH,
};

struct gw_key_part {
    const char *literal; /* NULL: a run */
    uint16_t classes;
    uint16_t min;
    uint16_t max; /* bytes; of the last part: 0, no limit */
};

struct gw_key_format {
    const char *name;
    struct gw_key_part parts[GW_PARTS_MAX];
    uint8_t kept;     /* how many parts at its beginning are no secret */
    uint8_t kept_end; /* how many parts at its end are no secret */
    bool any_case;    /* the literals may have any case */
    bool exact;       /* no letter, digit or _ may come after the last run */
    bool mixed;       /* the last run must have digits and letters; otherwise it is a word */
    bool anywhere;    /* the format may also begin after a letter or digit */
};

extern const struct gw_key_format gw_key_formats[];
extern const size_t gw_key_format_count;

/* The classes of a byte. */
uint16_t gw_classes_of(unsigned char c);

#endif
