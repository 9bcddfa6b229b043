/* Turns a transcript into what a model reads: the items of the Responses API. Pure. */
#ifndef GW_PROVIDERS_INPUT_H
#define GW_PROVIDERS_INPUT_H

#include "agents/agent.h"
#include "protocol/json_writer.h"
#include "sessions/story.h"

#define GW_INPUT_IMAGES_MAX      4u       /* images of a request, the newest ones */
#define GW_INPUT_IMAGE_BYTES_MAX 2097152u /* of all images together, before base64: a request has GW_TURN_BYTES_MAX */

/* An image that a tool brought. */
struct gw_input_image {
    const char *blob_id; /* blob_id and mime_type point into the story's records */
    const char *mime_type;
    const char *data; /* base64, owned by the caller, not NUL-terminated; NULL: the image is only mentioned */
    size_t len;
};

struct gw_input_images {
    struct gw_input_image at[GW_INPUT_IMAGES_MAX];
    size_t count;
};

/*
 * Finds the images of the input up to the run `run_id`; the caller then loads their data. Images that a model can't
 * take, older images, and images that are too large are only mentioned.
 */
void gw_input_find_images(const struct gw_story *story, const char *run_id, struct gw_input_images *images);

/*
 * Writes the array of items up to the run `run_id`, which is open. Runs that gave no answer and runs that wait are left
 * out. What the same model said before goes back unchanged, with the parts that only this model can read. From turns of
 * another model, only texts and calls are kept. Images come after the results that they belong to, in a user message,
 * because a tool's result can't have images. Attachments that are not there are mentioned in the result's text; the
 * text of a command's result ends with its exit code.
 */
void gw_input_write(const struct gw_story *story, const char *run_id, const struct gw_model_ref *model,
                    const struct gw_input_images *images, struct fm_json_writer *w);

/*
 * Writes the array `input` with a text in the place of each image, for a model that can't see images. False: `input`
 * has no image or is not such an array, and nothing is written.
 */
FM_MUST_USE bool gw_input_write_without_images(const char *input, size_t len, struct fm_json_writer *w);

#endif
