/*
 * Reads what a turn is made of: the transcript's records, then the images that tools brought, one after the other. An
 * image that can't be read is only mentioned to the model.
 */
#include "protocol/base64.h"
#include "providers/input.h"
#include "run/internal.h"

#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (7u << 20) /* bytes, with images: GW_TURN_BYTES_MAX has room for the instructions too */

struct reading {
    struct gw_run *run;
    void (*then)(struct gw_run *run, const struct fm_buf *input);
    struct gw_story story;
    struct gw_input_images images;
    struct fm_buf data[GW_INPUT_IMAGES_MAX]; /* of the images, in base64 */
    size_t at;                               /* the image that is read */
};

static void reading_free(struct reading *reading) {
    for (size_t i = 0; i < GW_INPUT_IMAGES_MAX; i++) {
        fm_buf_free(&reading->data[i]);
    }
    gw_story_free(&reading->story);
    free(reading);
}

/*
 * Whether the run's own message is among the records that were read. It is not if the run's tools printed more than a
 * turn may have.
 */
static bool has_message(const struct gw_story *story, const char *run_id) {
    size_t i = 0;
    while (i < story->count && strcmp(story->runs[i].id, run_id) != 0) {
        i++;
    }
    return i < story->count && story->runs[i].user;
}

static void finish_reading(struct reading *reading) {
    struct gw_run *run = reading->run;
    void (*then)(struct gw_run *run, const struct fm_buf *input) = reading->then;
    struct fm_buf input;
    fm_buf_init(&input, INPUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&input);
    gw_input_write(&reading->story, run->id, &run->agent.model, &reading->images, &w);
    input.failed = input.failed || !has_message(&reading->story, run->id);
    reading_free(reading);
    then(run, &input);
    fm_buf_free(&input);
}

static void read_images(struct reading *reading);

static void on_image(void *context, const struct fm_error *error, const void *bytes, size_t len) {
    struct reading *reading = context;
    struct fm_buf *data = &reading->data[reading->at];
    reading->run->writes--;
    if (!error) {
        fm_base64_append(data, bytes, len);
    }
    reading->images.at[reading->at].data = data->data; /* NULL: it could not be read */
    reading->images.at[reading->at].len = data->len;
    reading->at++;
    read_images(reading);
}

/* Reads the next image; after the last one, or if the run must end, the input is finished. */
static void read_images(struct reading *reading) {
    struct gw_run *run = reading->run;
    struct fm_error error;
    while (reading->at < reading->images.count && !run->aborting) {
        const char *blob = reading->images.at[reading->at].blob_id;
        if (gw_session_attachment(run->chat->chats->options.sessions, blob, on_image, reading, &error) == FM_OK) {
            run->writes++;
            return;
        }
        reading->at++;
    }
    finish_reading(reading);
}

bool gw_read_input(struct gw_run *run, const char *text, size_t len,
                   void (*then)(struct gw_run *run, const struct fm_buf *input)) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading || !gw_story_read(text, len, &reading->story)) {
        free(reading);
        return false;
    }
    reading->run = run;
    reading->then = then;
    for (size_t i = 0; i < GW_INPUT_IMAGES_MAX; i++) {
        fm_buf_init(&reading->data[i], INPUT_MAX);
    }
    run->chat->browsed |= reading->story.browsed;
    gw_input_find_images(&reading->story, run->id, &reading->images);
    read_images(reading);
    return true;
}
