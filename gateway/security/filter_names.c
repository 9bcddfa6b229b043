/*
 * The third stage: values whose names say that they are secrets. A name is passed on as it comes. The value after "="
 * or ":" is held back until its end, and then judged by its name and its form.
 */
#include "security/filter_internal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define GAP_MAX 8 /* blanks around a separator */

static void give_to_keys(struct gw_filter *filter, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        gw_filter_keys_byte(filter, (unsigned char)text[i]);
    }
}

/* ---- names ---- */

/*
 * Whether `name` ends with `word` (lower case) as a separate word: no letter or digit is before it, or it begins with a
 * capital.
 */
static bool ends_with(const char *name, size_t len, const char *word) {
    size_t word_len = strlen(word);
    if (len < word_len || strncasecmp(name + len - word_len, word, word_len) != 0) {
        return false;
    }
    char before = len > word_len ? name[len - word_len - 1] : '_';
    char first = name[len - word_len];
    return !isalnum((unsigned char)before) || (isupper((unsigned char)first) && !isupper((unsigned char)before));
}

static bool ends_with_any(const char *name, size_t len, const char *const *words) {
    while (*words && !ends_with(name, len, *words)) {
        words++;
    }
    return *words;
}

static bool is_capitals(const char *name, size_t len) {
    bool letter = false;
    for (size_t i = 0; i < len; i++) {
        letter = letter || isupper((unsigned char)name[i]);
        if (!isupper((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_') {
            return false;
        }
    }
    return letter;
}

static enum gw_name_strength strength_of(const char *name, size_t len) {
    static const char *const passwords[] = {"password", "passwd", "passphrase", "secret", NULL};
    static const char *const tokens[] = {"token",       "api_key",     "apikey",        "api-key",    "access_key",
                                         "access-key",  "accesskey",   "secret_key",    "secretkey",  "secret-key",
                                         "private_key", "privatekey",  "auth_key",      "authkey",    "account_key",
                                         "accountkey",  "master_key",  "signing_key",   "signingkey", "encryption_key",
                                         "credential",  "credentials", "authorization", NULL};
    bool password = ends_with_any(name, len, passwords);
    bool token = ends_with_any(name, len, tokens);
    bool key = ends_with(name, len, "key");
    bool whole = len == 3; /* a variable whose whole name is KEY is no secret */
    if ((password || token || (key && !whole)) && is_capitals(name, len)) {
        return GW_NAME_STRONG;
    }
    return password ? GW_NAME_PASSWORD : token ? GW_NAME_TOKEN : key && !whole ? GW_NAME_KEY : GW_NAME_NONE;
}

/* ---- values ---- */

/* Whether the value is only a placeholder for a secret: a type, nothing, or a reference to a variable. */
static bool is_placeholder(const char *value, size_t len) {
    static const char *const words[] = {"null",     "none",   "nil",   "undefined", "true",     "false",    "string",
                                        "str",      "int",    "bool",  "bytes",     "text",     "required", "optional",
                                        "password", "secret", "token", "key",       "redacted", NULL};
    static const char *const references[] = {"process.env", "os.environ", "os.getenv", "getenv", "secrets.",
                                             "env.",        "vault:",     "file:",     NULL};
    if (len == 0 || strchr("$<%*.{[", value[0])) {
        return true;
    }
    for (const char *const *word = words; *word; word++) {
        if (strlen(*word) == len && strncasecmp(*word, value, len) == 0) {
            return true;
        }
    }
    for (const char *const *start = references; *start; start++) {
        if (strlen(*start) <= len && strncasecmp(*start, value, strlen(*start)) == 0) {
            return true;
        }
    }
    return false;
}

struct looks {
    size_t digits;
    size_t letters;
    size_t others; /* no digit, letter, blank, _ or . */
    size_t blanks;
    size_t dots;
    size_t groups; /* runs of digits */
    size_t longest_group;
};

static struct looks look_at(const char *value, size_t len) {
    struct looks looks = {.digits = 0};
    size_t group = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value[i];
        bool digit = isdigit(c);
        looks.groups += digit && group == 0;
        group = digit ? group + 1 : 0;
        looks.longest_group = group > looks.longest_group ? group : looks.longest_group;
        looks.digits += digit;
        looks.letters += isalpha(c) != 0;
        looks.dots += c == '.';
        looks.blanks += isspace(c) != 0;
        looks.others += !digit && !isalpha(c) && c != '_' && c != '.' && !isspace(c);
    }
    return looks;
}

/* Whether the value looks like a name in a program, such as "sha256", "token_1" or "config.key2". */
static bool is_identifier(const struct looks *looks, const char *value) {
    bool short_groups = looks->groups <= 1 + looks->dots && looks->longest_group <= 3;
    return looks->others == 0 && short_groups && !isdigit((unsigned char)value[0]);
}

static bool is_number(const struct looks *looks, const char *value) {
    return looks->letters == 0 || (looks->others == 0 && value[0] == '0' && (value[1] | 0x20) == 'x');
}

/* Whether the value has digits and letters, and is neither an identifier nor a number. */
static bool looks_secret(const struct looks *looks, const char *value, size_t len, size_t least) {
    return len >= least && looks->blanks == 0 && looks->digits && looks->letters && !is_identifier(looks, value) &&
           !is_number(looks, value);
}

/* Whether the value is an argument in a program's call, such as "self.key)". The name is in capitals. */
static bool is_argument(const struct looks *looks, const char *value, size_t len) {
    return value[len - 1] == ')' && looks->digits == 0 && looks->others == 1;
}

static bool is_secret(const struct gw_filter *filter) {
    const char *value = filter->n.value;
    size_t len = filter->n.value_len;
    bool quoted = filter->n.quote;
    struct looks looks = look_at(value, len);
    if (is_placeholder(value, len)) {
        return false;
    }
    switch (filter->n.strength) {
    case GW_NAME_STRONG:
        if (is_number(&looks, value) && looks.digits < 6 && looks.others == 0) {
            return false;
        }
        if (quoted) {
            return looks.blanks < 2 || looks.digits;
        }
        return filter->n.tight ? !is_argument(&looks, value, len) : looks_secret(&looks, value, len, 8);
    case GW_NAME_PASSWORD:
        if (quoted) {
            return len >= 4 && looks.blanks == 0 && !(looks.dots && looks.others == 0 && looks.digits == 0);
        }
        return len >= 6 && looks.digits && looks.letters && looks.blanks == 0 && looks.dots == 0;
    case GW_NAME_TOKEN: return looks_secret(&looks, value, len, 8);
    case GW_NAME_KEY: return looks_secret(&looks, value, len, 20) && looks.digits >= 4;
    case GW_NAME_NONE: break;
    }
    return false;
}

/* ---- the stage ---- */

static void forget_name(struct gw_filter *filter) {
    filter->n.state = GW_NAME_TEXT;
    filter->n.name_len = filter->n.gap = filter->n.value_len = 0;
    filter->n.quote_seen = filter->n.escaped = filter->n.path = filter->n.backslash = false;
    filter->n.quote = '\0';
}

static bool is_name_byte(unsigned char c) {
    return isalnum(c) || c == '_' || c == '-' || c == '.';
}

static void text_byte(struct gw_filter *filter, unsigned char c) {
    gw_filter_keys_byte(filter, c);
    if (is_name_byte(c)) {
        if (filter->n.name_len == GW_NAME_KEPT) {
            memmove(filter->n.name, filter->n.name + 1, --filter->n.name_len);
        }
        filter->n.name[filter->n.name_len++] = (char)c;
    } else if (c == '/') {
        forget_name(filter);
        filter->n.path = true;
    } else if (filter->n.name_len && strchr("=: \t\"'`\\", c) && c) {
        filter->n.state = GW_NAME_AFTER;
    } else {
        forget_name(filter);
    }
}

static void separate(struct gw_filter *filter, unsigned char c) {
    bool file = filter->n.path && filter->n.name_len == 6 && memcmp(filter->n.name, "passwd", 6) == 0;
    enum gw_name_strength strength = file ? GW_NAME_NONE : strength_of(filter->n.name, filter->n.name_len);
    bool tight = c == '=' && filter->n.gap == 0;
    forget_name(filter);
    if (strength != GW_NAME_NONE) {
        filter->n.state = GW_NAME_BEFORE;
        filter->n.strength = strength;
        filter->n.tight = tight;
        filter->n.separator = (char)c;
    }
}

/* Takes the byte `c` after the end of the name; `c` was passed on already. */
static void after_byte(struct gw_filter *filter, unsigned char c) {
    if (c == '=' || c == ':') {
        separate(filter, c);
    } else if ((c == ' ' || c == '\t') && filter->n.gap < GAP_MAX) {
        filter->n.gap++;
    } else if ((c == '"' || c == '\'' || c == '`') && !filter->n.quote_seen && filter->n.gap == 0) {
        filter->n.quote_seen = true;
    } else if (c != '\\' || filter->n.quote_seen || filter->n.gap) {
        forget_name(filter);
        if (is_name_byte(c)) {
            filter->n.name[filter->n.name_len++] = (char)c;
        }
    }
}

static void begin_quoted(struct gw_filter *filter, unsigned char c) {
    filter->n.state = GW_NAME_QUOTED;
    filter->n.quote = (char)c;
    gw_filter_keys_byte(filter, c);
}

/* Takes a byte between the separator and the value. */
static void before_byte(struct gw_filter *filter, unsigned char c) {
    if (c == '"' || c == '\'' || c == '`') {
        begin_quoted(filter, c);
        return;
    }
    if (c == ' ' || c == '\t') {
        filter->n.tight = false;
        gw_filter_keys_byte(filter, c);
        if (++filter->n.gap > GAP_MAX) {
            forget_name(filter);
        }
    } else if (c == '\\' && !filter->n.escaped) {
        filter->n.escaped = true;
        gw_filter_keys_byte(filter, c);
    } else if ((c == '=' || c == '>') && filter->n.gap == 0) { /* :=, =>, == */
        filter->n.tight = false;
        gw_filter_keys_byte(filter, c);
    } else if (c <= ' ' || c == 0x7f || strchr("(){}[]<>,;:|$", c)) {
        forget_name(filter);
        text_byte(filter, c);
    } else {
        filter->n.state = GW_NAME_BARE;
        filter->n.value[filter->n.value_len++] = (char)c;
    }
}

/* Passes on the held value, or the marker if the value is a secret. */
static bool settle_value(struct gw_filter *filter) {
    bool secret = is_secret(filter);
    if (secret) {
        give_to_keys(filter, GW_REDACTED, sizeof GW_REDACTED - 1);
    } else {
        give_to_keys(filter, filter->n.value, filter->n.value_len);
    }
    return secret;
}

static bool ends_bare(const struct gw_filter *filter, unsigned char c) {
    if (c <= ' ' || c == 0x7f || c == '"' || c == '\'' || c == '`') {
        return true;
    }
    bool variable = filter->n.strength == GW_NAME_STRONG && filter->n.tight;
    return !variable && strchr("(){}[]<>,;|&\\", c);
}

/* Whether the held value is only a scheme, as in "Authorization: Bearer ...". Then the secret comes after it. */
static bool is_scheme(const struct gw_filter *filter, unsigned char c) {
    static const char *const schemes[] = {"Bearer", "Basic", "Token", "Digest", NULL};
    for (const char *const *scheme = schemes; c == ' ' && *scheme; scheme++) {
        if (strlen(*scheme) == filter->n.value_len && strncasecmp(*scheme, filter->n.value, filter->n.value_len) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the held value is the prefix of a string in a program: b"...", f'...', r"...". */
static bool is_prefix(const struct gw_filter *filter, unsigned char c) {
    return (c == '"' || c == '\'') && filter->n.value_len <= 2 && isalpha((unsigned char)filter->n.value[0]);
}

static void end_bare(struct gw_filter *filter, unsigned char c) {
    bool call = c == '(' || c == '[';
    bool scheme = is_scheme(filter, c);
    bool prefix = is_prefix(filter, c);
    if (call || scheme || prefix) {
        give_to_keys(filter, filter->n.value, filter->n.value_len);
        filter->n.value_len = 0;
    }
    if (scheme) {
        filter->n.state = GW_NAME_BEFORE;
        filter->n.gap = 0;
        before_byte(filter, c);
    } else if (prefix) {
        begin_quoted(filter, c);
    } else {
        if (!call) {
            settle_value(filter);
        }
        forget_name(filter);
        text_byte(filter, c);
    }
}

/*
 * The value is too long to be held. Its beginning is judged now, and its rest is passed on or dropped like the
 * beginning.
 */
static void overflow(struct gw_filter *filter) {
    filter->n.drop = settle_value(filter);
    filter->n.value_len = 0;
    filter->n.state = GW_NAME_REST;
}

static void bare_byte(struct gw_filter *filter, unsigned char c) {
    if (ends_bare(filter, c)) {
        end_bare(filter, c);
        return;
    }
    filter->n.value[filter->n.value_len++] = (char)c;
    if (filter->n.value_len == GW_VALUE_MAX) {
        overflow(filter);
    }
}

/*
 * A quote after a backslash belongs to the value. After two backslashes it ends the value: the first escapes the
 * second.
 */
static bool ends_quoted(struct gw_filter *filter, unsigned char c) {
    bool behind = filter->n.backslash;
    filter->n.backslash = c == '\\' && !behind;
    return c == '\n' || (c == (unsigned char)filter->n.quote && !behind) || (filter->n.escaped && c == '\\');
}

static void quoted_byte(struct gw_filter *filter, unsigned char c) {
    if (ends_quoted(filter, c)) {
        settle_value(filter);
        forget_name(filter);
        text_byte(filter, c);
        return;
    }
    filter->n.value[filter->n.value_len++] = (char)c;
    if (filter->n.value_len == GW_VALUE_MAX) {
        overflow(filter);
    }
}

static void rest_byte(struct gw_filter *filter, unsigned char c) {
    bool ends = filter->n.quote ? ends_quoted(filter, c) : ends_bare(filter, c);
    if (ends) {
        forget_name(filter);
        text_byte(filter, c);
    } else if (!filter->n.drop) {
        gw_filter_keys_byte(filter, c);
    }
}

void gw_filter_names_byte(struct gw_filter *filter, unsigned char c) {
    switch (filter->n.state) {
    case GW_NAME_TEXT:
        text_byte(filter, c);
        if (filter->n.state == GW_NAME_AFTER) {
            after_byte(filter, c);
        }
        break;
    case GW_NAME_AFTER:
        gw_filter_keys_byte(filter, c);
        after_byte(filter, c);
        break;
    case GW_NAME_BEFORE: before_byte(filter, c); break;
    case GW_NAME_BARE: bare_byte(filter, c); break;
    case GW_NAME_QUOTED: quoted_byte(filter, c); break;
    case GW_NAME_REST: rest_byte(filter, c); break;
    }
}

void gw_filter_names_end(struct gw_filter *filter) {
    if (filter->n.state == GW_NAME_BARE || filter->n.state == GW_NAME_QUOTED) {
        settle_value(filter);
    }
    forget_name(filter);
}
