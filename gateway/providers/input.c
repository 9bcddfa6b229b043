/*
 * Each tool call is written with its result, in the order of the calls. A call without a result is left out, because no
 * model accepts such a call.
 */
#include "providers/input.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define MENTION_MAX 512 /* bytes of the line about an attachment */
#define SIGNALLED   128 /* a command that signal N ended has the exit code 128 + N (tools/tool.h) */
#define SIGNAL_MAX  64  /* signal(7): the last of the real-time signals */

static void write_role_text(const char *role, const char *text, size_t len, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", role);
    fm_json_key(w, "content");
    fm_json_string(w, text, len);
    fm_json_object_end(w);
}

static void write_text(const char *role, struct json_object *text, struct fm_json_writer *w) {
    if (json_object_is_type(text, json_type_string) && json_object_get_string_len(text) > 0) {
        write_role_text(role, json_object_get_string(text), (size_t)json_object_get_string_len(text), w);
    }
}

/* The result of the call `item`; NULL: the call has no result. */
static struct json_object *result_of(const struct gw_story_run *run, struct json_object *item) {
    const char *id = gw_text_of(item, "call_id");
    const char *call = NULL;
    for (size_t i = 0; i < run->part_count; i++) {
        if (gw_is_record(run->parts[i], "tool_call") && strcmp(gw_text_of(run->parts[i], "providerCallId"), id) == 0) {
            call = gw_text_of(run->parts[i], "callId");
        }
    }
    for (size_t i = 0; call && i < run->part_count; i++) {
        if (gw_is_record(run->parts[i], "tool_result") && strcmp(gw_text_of(run->parts[i], "callId"), call) == 0) {
            return run->parts[i];
        }
    }
    return NULL;
}

/* ---- attachments ---- */

static struct json_object *attachments_of(struct json_object *result) {
    struct json_object *list = json_object_object_get(result, "attachments");
    return json_object_is_type(list, json_type_array) ? list : NULL;
}

/* Whether it is an image of a kind that the helper takes (PROTOCOL.md, Images). */
static bool is_image(struct json_object *attachment) {
    static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/bmp"};
    size_t i = 0;
    while (i < sizeof types / sizeof types[0] && strcmp(gw_text_of(attachment, "mimeType"), types[i]) != 0) {
        i++;
    }
    return i < sizeof types / sizeof types[0] && strcmp(gw_text_of(attachment, "type"), "image") == 0;
}

/* The attachment's image, if it is one of `images` and its data is there. */
static const struct gw_input_image *image_of(const struct gw_input_images *images, struct json_object *attachment) {
    for (size_t i = 0; images && i < images->count; i++) {
        const struct gw_input_image *image = &images->at[i];
        if (image->data && is_image(attachment) && strcmp(image->blob_id, gw_text_of(attachment, "blobId")) == 0) {
            return image;
        }
    }
    return NULL;
}

/* Appends what the result's text says about an attachment. */
static void append_mention(struct json_object *attachment, bool shown, struct fm_buf *text) {
    char line[MENTION_MAX];
    const char *name = gw_text_of(attachment, "name");
    int64_t bytes = json_object_get_int64(json_object_object_get(attachment, "bytes"));
    snprintf(line, sizeof line, "%s[%s%s%.128s: %.64s, %lld bytes%s]", text->len ? "\n" : "",
             is_image(attachment) ? "image" : "file", *name ? " " : "", name, gw_text_of(attachment, "mimeType"),
             (long long)bytes, shown ? ", in the next message" : ", not shown here");
    fm_buf_append_str(text, line);
}

/* Appends a command's exit code: without the code, the results of `true` and `false` would look the same. */
static void append_exit_code(struct json_object *result, struct fm_buf *text) {
    struct json_object *value;
    if (!json_object_object_get_ex(result, "exitCode", &value)) {
        return;
    }
    char line[64];
    int code = json_object_get_int(value);
    const char *end = text->len == 0 || text->data[text->len - 1] == '\n' ? "" : "\n";
    if (code > SIGNALLED && code <= SIGNALLED + SIGNAL_MAX) {
        snprintf(line, sizeof line, "%s[exit code %d, as after signal %d]", end, code, code - SIGNALLED);
    } else {
        snprintf(line, sizeof line, "%s[exit code %d]", end, code);
    }
    fm_buf_append_str(text, line);
}

static void write_result(struct json_object *item, struct json_object *result, const struct gw_input_images *images,
                         struct fm_json_writer *w) {
    struct json_object *output = json_object_object_get(result, "output");
    struct json_object *list = attachments_of(result);
    struct fm_buf text;
    fm_buf_init(&text, w->buf->max);
    fm_buf_append(&text, json_object_get_string(output), (size_t)json_object_get_string_len(output));
    append_exit_code(result, &text);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *attachment = json_object_array_get_idx(list, i);
        append_mention(attachment, image_of(images, attachment), &text);
    }
    w->buf->failed |= text.failed;
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "function_call_output");
    fm_json_key_str(w, "call_id", gw_text_of(item, "call_id"));
    fm_json_key(w, "output");
    fm_json_string(w, text.data ? text.data : "", text.len);
    fm_json_object_end(w);
    fm_buf_free(&text);
}

static void write_image(const struct gw_input_image *image, struct fm_json_writer *w) {
    struct fm_buf url;
    fm_buf_init(&url, w->buf->max);
    fm_buf_append_str(&url, "data:");
    fm_buf_append_str(&url, image->mime_type);
    fm_buf_append_str(&url, ";base64,");
    fm_buf_append(&url, image->data, image->len);
    w->buf->failed |= url.failed;
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "input_image");
    fm_json_key(w, "image_url");
    fm_json_string(w, url.data ? url.data : "", url.len);
    fm_json_object_end(w);
    fm_buf_free(&url);
}

static void write_part(const char *text, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "input_text");
    fm_json_key_str(w, "text", text);
    fm_json_object_end(w);
}

/* Writes the result's images that the input has, each as a message. */
static void write_images(struct json_object *result, const struct gw_input_images *images, struct fm_json_writer *w) {
    struct json_object *list = attachments_of(result);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        const struct gw_input_image *image = image_of(images, json_object_array_get_idx(list, i));
        if (image) {
            fm_json_object_begin(w);
            fm_json_key_str(w, "role", "user");
            fm_json_key(w, "content");
            fm_json_array_begin(w);
            write_part("The image of the tool's result above:", w);
            write_image(image, w);
            fm_json_array_end(w);
            fm_json_object_end(w);
        }
    }
}

/* ---- what the model said ---- */

/* Writes an item of another model: only a call, or the texts of a message. */
static void write_foreign(struct json_object *item, struct fm_json_writer *w) {
    const char *type = gw_text_of(item, "type");
    if (strcmp(type, "function_call") == 0) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", type);
        fm_json_key_str(w, "call_id", gw_text_of(item, "call_id"));
        fm_json_key_str(w, "name", gw_text_of(item, "name"));
        fm_json_key_str(w, "arguments", gw_text_of(item, "arguments"));
        fm_json_object_end(w);
        return;
    }
    struct json_object *content = json_object_object_get(item, "content");
    bool message = strcmp(type, "message") == 0 && json_object_is_type(content, json_type_array);
    for (size_t i = 0; message && i < json_object_array_length(content); i++) {
        struct json_object *part = json_object_array_get_idx(content, i);
        write_text("assistant", json_object_object_get(part, "text"), w);
        write_text("assistant", json_object_object_get(part, "refusal"), w);
    }
}

static bool is_call(struct json_object *item) {
    return strcmp(gw_text_of(item, "type"), "function_call") == 0;
}

static void write_step(const struct gw_story_run *run, struct json_object *step, bool same,
                       const struct gw_input_images *images, struct fm_json_writer *w) {
    struct json_object *items = json_object_object_get(step, "items");
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        if (is_call(item) && !result_of(run, item)) {
            continue;
        }
        if (same) {
            fm_json_value(w, item);
        } else {
            write_foreign(item, w);
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* all results follow the calls at once; then the images */
        for (size_t i = 0; i < count; i++) {
            struct json_object *item = json_object_array_get_idx(items, i);
            struct json_object *result = is_call(item) ? result_of(run, item) : NULL;
            if (result && pass == 0) {
                write_result(item, result, images, w);
            } else if (result) {
                write_images(result, images, w);
            }
        }
    }
}

static bool is_of(struct json_object *step, const struct gw_model_ref *model) {
    return strcmp(gw_text_of(step, "provider"), gw_provider_name(model->provider)) == 0 &&
           strcmp(gw_text_of(step, "model"), model->name) == 0;
}

static bool has_step(const struct gw_story_run *run) {
    size_t i = 0;
    while (i < run->part_count && !gw_is_record(run->parts[i], "step")) {
        i++;
    }
    return i < run->part_count;
}

static bool has_answer(const struct gw_story_run *run) {
    struct json_object *content = run->answer ? json_object_object_get(run->answer, "content") : NULL;
    return has_step(run) || (content && json_object_get_string_len(content) > 0);
}

/* ---- the whole ---- */

/* Whether the run is a part of the input up to the run `run_id`. */
static bool is_read(const struct gw_story_run *run, const char *run_id) {
    return run->user && (strcmp(run->id, run_id) == 0 || (run->ended && has_answer(run)));
}

/* How many runs the story has up to this run, including this run. */
static size_t count_up_to(const struct gw_story *story, const char *run_id) {
    size_t count = 0;
    while (count < story->count && strcmp(story->runs[count].id, run_id) != 0) {
        count++;
    }
    return count < story->count ? count + 1 : count;
}

/* Takes the images of a tool's result, the last one first. False: there is no room for more images. */
static bool take_images(struct json_object *result, int64_t *room, struct gw_input_images *images) {
    struct json_object *list = attachments_of(result);
    for (size_t i = list ? json_object_array_length(list) : 0; i > 0; i--) {
        struct json_object *attachment = json_object_array_get_idx(list, i - 1);
        int64_t bytes = json_object_get_int64(json_object_object_get(attachment, "bytes"));
        if (!is_image(attachment)) {
            continue;
        }
        if (bytes > *room || images->count == GW_INPUT_IMAGES_MAX) {
            return false;
        }
        *room -= bytes > 0 ? bytes : 0;
        images->at[images->count++] = (struct gw_input_image){.blob_id = gw_text_of(attachment, "blobId"),
                                                              .mime_type = gw_text_of(attachment, "mimeType")};
    }
    return true;
}

void gw_input_find_images(const struct gw_story *story, const char *run_id, struct gw_input_images *images) {
    int64_t room = GW_INPUT_IMAGE_BYTES_MAX;
    images->count = 0;
    for (size_t i = count_up_to(story, run_id); i > 0; i--) {
        const struct gw_story_run *run = &story->runs[i - 1];
        for (size_t at = is_read(run, run_id) ? run->part_count : 0; at > 0; at--) {
            if (gw_is_record(run->parts[at - 1], "tool_result") && !take_images(run->parts[at - 1], &room, images)) {
                return;
            }
        }
    }
}

void gw_input_write(const struct gw_story *story, const char *run_id, const struct gw_model_ref *model,
                    const struct gw_input_images *images, struct fm_json_writer *w) {
    size_t count = count_up_to(story, run_id);
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        const struct gw_story_run *run = &story->runs[i];
        if (!is_read(run, run_id)) {
            continue;
        }
        write_text("user", json_object_object_get(run->user, "content"), w);
        for (size_t at = 0; at < run->part_count; at++) {
            if (gw_is_record(run->parts[at], "step")) {
                write_step(run, run->parts[at], is_of(run->parts[at], model), images, w);
            }
        }
        const char *rest = has_step(run) ? "partial" : "content"; /* the text that belongs to no step */
        write_text("assistant", run->answer ? json_object_object_get(run->answer, rest) : NULL, w);
    }
    fm_json_array_end(w);
}

/* ---- for a model that sees nothing ---- */

/* Replaces the images of an item by a text. True if it had one. `*ok` becomes false if memory runs out. */
static bool strip(struct json_object *item, bool *ok) {
    struct json_object *content = json_object_object_get(item, "content");
    bool found = false;
    for (size_t i = 0; json_object_is_type(content, json_type_array) && i < json_object_array_length(content); i++) {
        if (strcmp(gw_text_of(json_object_array_get_idx(content, i), "type"), "input_image") != 0) {
            continue;
        }
        struct json_object *part = json_object_new_object();
        struct json_object *text = json_object_new_string("[an image, which this model can't see]");
        found = true;
        *ok = *ok && part && text && json_object_object_add(part, "type", json_object_new_string("input_text")) == 0 &&
              json_object_object_add(part, "text", text) == 0 && json_object_array_put_idx(content, i, part) == 0;
    }
    return found;
}

bool gw_input_write_without_images(const char *input, size_t len, struct fm_json_writer *w) {
    struct json_object *items = NULL;
    struct fm_buf scratch;
    bool found = false;
    bool ok = true;
    fm_buf_init(&scratch, len + 1);
    if (memmem(input, len, "\"input_image\"", sizeof "\"input_image\"" - 1) &&
        fm_json_tree(input, len, &scratch, &items) && json_object_is_type(items, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(items); i++) {
            found |= strip(json_object_array_get_idx(items, i), &ok);
        }
        if (found && ok) {
            fm_json_value(w, items);
        }
    }
    json_object_put(items);
    fm_buf_free(&scratch);
    return found && ok;
}
