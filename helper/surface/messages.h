/*
 * Messages, as both APIs write them: an object with a role, and a content that is a text or a list of parts. The APIs
 * differ only in names, which a dialect holds. Calls of tools differ more, so each API's file handles its own calls;
 * only the ids of calls are here. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_MESSAGES_H
#define FM_SURFACE_MESSAGES_H

#include "protocol/json_writer.h"
#include "surface/check.h"

struct fm_role {
    const char *name;    /* NULL ends the table */
    const char *neutral; /* the engine's name for the role; NULL: the role is known, but not supported */
};

struct fm_part_kind {
    const char *type;            /* NULL ends the table */
    const char *member;          /* the member with the text, image or file; NULL: known, but not supported */
    const struct fm_rule *image; /* the rows of an image part; NULL: the part is no image */
    const struct fm_rule *file;  /* the rows of a file part; NULL: no file. Neither: a text, with the dialect's rows */
};

struct fm_dialect {
    const struct fm_role *roles;
    const char *roles_note; /* "Supported values are: ..." */
    const struct fm_part_kind *parts;
    const char *parts_note;
    const struct fm_rule *message_rules; /* the members of a message */
    const struct fm_rule *part_rules;    /* the members of a part */
    const char *stand_in;                /* the member to use when there is no content; NULL: none */
    const char *calls;                   /* a message with entries in this list needs no content; NULL: none */
};

/* The members of a part's `prompt_cache_breakpoint`, which has no effect. */
extern const struct fm_rule fm_breakpoint_rules[];

/* Checks one message. Only the user's messages may have images. */
FM_MUST_USE enum fm_code fm_message_check(const struct fm_dialect *dialect, struct json_object *message,
                                          const struct fm_path *at, struct fm_error *error);

/* Checks a content without its message, like fm_message_check; the content is at `at`. */
FM_MUST_USE enum fm_code fm_content_check(const struct fm_dialect *dialect, struct json_object *content,
                                          const struct fm_path *at, struct fm_error *error);

/* Notes the paths of the images in a checked content (fm_image_note). NULL and a text have no images. */
void fm_content_note_images(const struct fm_dialect *dialect, struct json_object *content, const char *list,
                            size_t entry, struct fm_buf *params);

/* Whether a checked content has images. */
bool fm_content_has_images(const struct fm_dialect *dialect, struct json_object *content);

/*
 * Writes the members of a checked message in the form of ENGINE.md: `role` and, if there is a content, `content`.
 * `scratch` is overwritten.
 */
void fm_message_write(const struct fm_dialect *dialect, struct json_object *message, struct fm_buf *scratch,
                      struct fm_json_writer *w);

/* Writes a checked content: as a list of parts if it has images, otherwise as one string. `scratch` is overwritten. */
void fm_content_write(const struct fm_dialect *dialect, struct json_object *content, struct fm_buf *scratch,
                      struct fm_json_writer *w);

/* Writes a message {"role","content"}. */
void fm_turn_write(const char *role, const char *text, size_t len, struct fm_json_writer *w);

/*
 * Writes an entry of ENGINE.md's `tool_calls`: `call` has `name`, and `arguments` or, for a custom tool, `input`.
 * `scratch` is overwritten.
 */
void fm_call_write(struct json_object *id, struct json_object *call, struct fm_buf *scratch, struct fm_json_writer *w);

/*
 * Adds the id of a call to `ids`, so that an output without a call can be found. `ids` is an object, which the caller
 * releases; `id` is a checked string without a NUL. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_call_note(struct json_object *ids, struct json_object *id, struct fm_error *error);

/*
 * Returns FM_INVALID_REQUEST with the path `at` when `id` is not in `ids`. The error has no code, as in OpenAI's API.
 */
FM_MUST_USE enum fm_code fm_call_find(struct json_object *ids, struct json_object *id, const struct fm_path *at,
                                      struct fm_error *error);

#endif
