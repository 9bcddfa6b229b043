/*
 * Items of the Responses API: the parts of a conversation, in a request's `input` and in a response's `output`. Each
 * item is checked by itself when the request comes. A rule about the whole conversation (each output has its call) is
 * checked when all items are known, which may need stored responses. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_ITEMS_H
#define FM_SURFACE_ITEMS_H

#include "protocol/json_writer.h"
#include "surface/check.h"

/* The prefix of a compaction's `encrypted_content`, which the summary follows, and the prefix of its id. */
#define FM_COMPACTION_START  "fm1:"
#define FM_COMPACTION_PREFIX "cmp_"

/* Checks an input: a string, which is a message of the user, or a list of items. */
fm_check_fn fm_check_input;

/* Whether any item of a checked input refers to a stored item. */
bool fm_items_refer(struct json_object *input);

/* The id of the stored item to which the checked item `item` refers; NULL when `item` is not a reference. */
const char *fm_item_reference(struct json_object *item);

/*
 * Checks a whole conversation of checked items without references: each output comes after its call, and there is some
 * text. FM_INVALID_REQUEST with the param `input`, or FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_items_check_whole(struct json_object *items, struct fm_error *error);

/* Whether a whole conversation of checked items has images. */
bool fm_items_have_images(struct json_object *items);

/* How many parts the messages with an image have. Each of these parts goes to the engine as a separate value. */
size_t fm_items_image_parts(struct json_object *items);

/* Appends the paths of the images of a checked input (fm_request.image_params). */
void fm_items_note_images(struct json_object *input, struct fm_buf *params);

/* Writes a whole conversation of checked items as entries of the job's `messages` (ENGINE.md). */
void fm_items_write_messages(struct json_object *items, struct fm_json_writer *w);

/*
 * Writes a checked input in its stored form: a list of items, each with its `type`, an `id` (a new one if the item had
 * none), and its content as parts.
 */
void fm_items_write_kept(struct json_object *input, struct fm_json_writer *w);

#endif
