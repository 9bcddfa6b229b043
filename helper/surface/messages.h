/*
 * Conversation turns, as both APIs write them: an object with a role and a content that is text or a list of parts.
 * They differ in names only; a dialect holds those. What the APIs have of calls differs more, and stands with each; the
 * ids of calls are here. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_MESSAGES_H
#define FM_SURFACE_MESSAGES_H

#include "protocol/json_writer.h"
#include "surface/check.h"

struct fm_role {
    const char *name;    /* NULL ends the table */
    const char *neutral; /* what the engine calls it; NULL: known, but not served yet */
};

struct fm_part_kind {
    const char *type;            /* NULL ends the table */
    const char *member;          /* the member that holds the part's text, or its image; NULL: known, but not served */
    const struct fm_rule *image; /* of an image: its members. NULL: a text, with the dialect's */
};

struct fm_dialect {
    const struct fm_role *roles;
    const char *roles_note; /* "Supported values are: ..." */
    const struct fm_part_kind *parts;
    const char *parts_note;
    const struct fm_rule *message_rules; /* the members of a message */
    const struct fm_rule *part_rules;    /* the members of a part */
    const char *stand_in;                /* the member that counts where there is no content; NULL: none */
    const char *calls;                   /* the list that, unless it is empty, needs no content; NULL: none */
};

/* Checks one message; adds the bytes of its text to `bytes`, and those of its images. These are the user's alone. */
FM_MUST_USE enum fm_code fm_message_check(const struct fm_dialect *dialect, struct json_object *message,
                                          const struct fm_path *at, size_t *bytes, struct fm_error *error);

/* The same of a content alone, at `at`. */
FM_MUST_USE enum fm_code fm_content_check(const struct fm_dialect *dialect, struct json_object *content,
                                          const struct fm_path *at, size_t *bytes, struct fm_error *error);

/* Notes the images of a checked content (fm_image_note); NULL and a text have none. */
void fm_content_note_images(const struct fm_dialect *dialect, struct json_object *content, const char *list,
                            size_t entry, struct fm_buf *params);

/* Whether it has some. */
bool fm_content_has_images(const struct fm_dialect *dialect, struct json_object *content);

/*
 * Writes the members `role` and `content` of a checked message as ENGINE.md has them, the latter where there is one.
 * `scratch` is overwritten.
 */
void fm_message_write(const struct fm_dialect *dialect, struct json_object *message, struct fm_buf *scratch,
                      struct fm_json_writer *w);

/* Writes a checked content as a value: a text, or with images the parts. `scratch` is overwritten. */
void fm_content_write(const struct fm_dialect *dialect, struct json_object *content, struct fm_buf *scratch,
                      struct fm_json_writer *w);

/* Writes {"role","content"}. */
void fm_turn_write(const char *role, const char *text, size_t len, struct fm_json_writer *w);

/* Writes one of `tool_calls` of ENGINE.md: `call` has `name` and `arguments`. */
void fm_call_write(struct json_object *id, struct json_object *call, struct fm_json_writer *w);

/*
 * The ids of the calls so far, so that an output can be told that answers none. `ids` is an object, the caller's to
 * release; `id` a checked string without NUL. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_call_note(struct json_object *ids, struct json_object *id, struct fm_error *error);

/* FM_INVALID_REQUEST with the path `at`, and no code, as OpenAI has it, when `id` is none of `ids`. */
FM_MUST_USE enum fm_code fm_call_find(struct json_object *ids, struct json_object *id, const struct fm_path *at,
                                      struct fm_error *error);

#endif
