/*
 * Items of the Responses API: what a conversation consists of, in a request's `input` and in a response's `output`.
 * Each is checked by itself when the request comes. What takes the whole conversation (has an output its call?) is
 * looked at when all of it is known, for which stored responses may be needed. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_ITEMS_H
#define FM_SURFACE_ITEMS_H

#include "protocol/json_writer.h"
#include "surface/check.h"

/* What the `encrypted_content` of a compaction begins with, before the summary; and its id. */
#define FM_COMPACTION_START  "fm1:"
#define FM_COMPACTION_PREFIX "cmp_"

/* A string, which is the user's message, or a list of items. */
fm_check_fn fm_check_input;

/* Whether an item of a checked input stands for one that is stored. */
bool fm_items_refer(struct json_object *input);

/* The id that the checked item `item` stands for; NULL when it stands for itself. */
const char *fm_item_reference(struct json_object *item);

/*
 * A whole conversation, of checked items that stand for themselves: each output has its call before it, and there is
 * some text. FM_INVALID_REQUEST with the param `input`, or FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_items_check_whole(struct json_object *items, struct fm_error *error);

/* Whether such a conversation has images. */
bool fm_items_have_images(struct json_object *items);

/* How many parts the messages have that have an image: each goes to the engine by itself. */
size_t fm_items_image_parts(struct json_object *items);

/* Appends the paths of the images of a checked input (fm_request.image_params). */
void fm_items_note_images(struct json_object *input, struct fm_buf *params);

/* Writes such a conversation as entries of the job's `messages` (ENGINE.md). */
void fm_items_write_messages(struct json_object *items, struct fm_json_writer *w);

/*
 * Writes a checked input as it is kept: a list of items, where each has its `type`, an `id`, drawn where it had none,
 * and its content as parts.
 */
void fm_items_write_kept(struct json_object *input, struct fm_json_writer *w);

#endif
