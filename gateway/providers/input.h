/* A transcript becomes what a model reads: the items of the Responses API. Pure. */
#ifndef GW_PROVIDERS_INPUT_H
#define GW_PROVIDERS_INPUT_H

#include "agents/agent.h"
#include "protocol/json_writer.h"
#include "sessions/story.h"

#define GW_INPUT_IMAGES_MAX      4u       /* of a request: the newest ones */
#define GW_INPUT_IMAGE_BYTES_MAX 2097152u /* of them together, before base64: a request has GW_TURN_BYTES_MAX */

/* An image that a tool brought. */
struct gw_input_image {
    const char *blob_id; /* the two are of the story's records */
    const char *mime_type;
    const char *data; /* base64, the caller's, not NUL-terminated; NULL: it can't be had, and is only mentioned */
    size_t len;
};

struct gw_input_images {
    struct gw_input_image at[GW_INPUT_IMAGES_MAX];
    size_t count;
};

/*
 * Which images the input up to the run `run_id` is to have; the caller then brings their data. What a model can't take,
 * and what is older or too large, is only mentioned.
 */
void gw_input_find_images(const struct gw_story *story, const char *run_id, struct gw_input_images *images);

/*
 * Writes the array of items up to the run `run_id`, which is open: runs that gave no answer are left out, and so are
 * those that wait. What the same model has said before goes back as it came, with what only it can read; of another
 * model's turns texts and calls remain. Images follow the results that they belong to, in a message of the user's,
 * because no result of a tool may have any; attachments that are not there are mentioned in the result's text.
 */
void gw_input_write(const struct gw_story *story, const char *run_id, const struct gw_model_ref *model,
                    const struct gw_input_images *images, struct fm_json_writer *w);

/*
 * Writes the array `input` with a text in the place of each image, for a model that sees none. False: it has no image,
 * or is no such array; then nothing is written.
 */
FM_MUST_USE bool gw_input_write_without_images(const char *input, size_t len, struct fm_json_writer *w);

#endif
