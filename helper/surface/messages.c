/* Messages and their content, for both APIs: checks them, and writes them in the form of ENGINE.md. */
#include "surface/messages.h"
#include "surface/custom.h"
#include "surface/file.h"
#include "surface/image.h"

#include <json-c/json.h>
#include <string.h>

static const char *const breakpoint_modes[] = {"explicit", NULL};

const struct fm_rule fm_breakpoint_rules[] = {
    {.name = "mode", .check = fm_check_enum, .words = breakpoint_modes},
    {.name = "ttl", .check = fm_check_string},
    {0},
};

static const struct fm_role *find_role(const struct fm_dialect *dialect, struct json_object *name) {
    for (const struct fm_role *role = dialect->roles; role->name; role++) {
        if (fm_string_is(name, role->name)) {
            return role;
        }
    }
    return NULL;
}

static const struct fm_part_kind *find_part(const struct fm_dialect *dialect, struct json_object *type) {
    for (const struct fm_part_kind *kind = dialect->parts; kind->type; kind++) {
        if (fm_string_is(type, kind->type)) {
            return kind;
        }
    }
    return NULL;
}

/* Returns the object that has the members of an image or a file. In chat it is inside of the part. */
static struct json_object *members_of(const struct fm_part_kind *kind, struct json_object *part) {
    struct json_object *inner = json_object_object_get(part, kind->member);
    return json_object_is_type(inner, json_type_object) ? inner : part;
}

static struct json_object *image_url(const struct fm_part_kind *kind, struct json_object *part) {
    struct json_object *members = members_of(kind, part);
    return json_object_object_get(members, members == part ? kind->member : "url");
}

/* Returns the member `detail`, which says how closely to look at the image; NULL: not given. */
static struct json_object *image_detail(const struct fm_part_kind *kind, struct json_object *part) {
    return json_object_object_get(members_of(kind, part), "detail");
}

/* The first image from the part `index` on; the number of parts when there is none. */
static size_t find_image(const struct fm_dialect *dialect, struct json_object *content, size_t index) {
    size_t count = json_object_is_type(content, json_type_array) ? json_object_array_length(content) : 0;
    for (; index < count; index++) {
        struct json_object *part = json_object_array_get_idx(content, index);
        const struct fm_part_kind *kind = find_part(dialect, json_object_object_get(part, "type"));
        if (kind && kind->image) {
            return index;
        }
    }
    return count;
}

bool fm_content_has_images(const struct fm_dialect *dialect, struct json_object *content) {
    return json_object_is_type(content, json_type_array) &&
           find_image(dialect, content, 0) < json_object_array_length(content);
}

void fm_content_note_images(const struct fm_dialect *dialect, struct json_object *content, const char *list,
                            size_t entry, struct fm_buf *params) {
    size_t count = json_object_is_type(content, json_type_array) ? json_object_array_length(content) : 0;
    for (size_t i = find_image(dialect, content, 0); i < count; i = find_image(dialect, content, i + 1)) {
        fm_image_note(params, list, entry, i);
    }
}

/* ---- checking ---- */

/* Checks a part. Its type is checked first, because the allowed members depend on it. */
static enum fm_code check_part(const struct fm_dialect *dialect, struct json_object *part, const struct fm_path *at,
                               struct fm_error *error) {
    struct json_object *type = NULL;
    struct fm_path type_at = {.parent = at, .key = "type"};
    enum fm_code code = fm_check_tag(part, "type", at, &type, error);
    if (code != FM_OK) {
        return code;
    }
    const struct fm_part_kind *kind = find_part(dialect, type);
    if (!kind) {
        return fm_reject_value(&type_at, dialect->parts_note, error);
    }
    if (!kind->member) {
        return fm_reject_unsupported(&type_at,
                                     "fm-proxy takes text, files of text, and images in messages of the user.", error);
    }
    if (kind->image || kind->file) {
        return fm_check_members(kind->image ? kind->image : kind->file, part, at, error);
    }
    code = fm_check_members(dialect->part_rules, part, at, error);
    if (code != FM_OK) {
        return code;
    }
    struct json_object *text = json_object_object_get(part, kind->member);
    struct fm_path text_at = {.parent = at, .key = kind->member};
    return text ? FM_OK : fm_reject_missing(&text_at, error);
}

enum fm_code fm_content_check(const struct fm_dialect *dialect, struct json_object *content, const struct fm_path *at,
                              struct fm_error *error) {
    if (json_object_is_type(content, json_type_string)) {
        return FM_OK;
    }
    if (!json_object_is_type(content, json_type_array)) {
        return fm_reject_type(at, content, "a string or an array", error);
    }
    size_t count = json_object_array_length(content);
    for (size_t i = 0; i < count; i++) {
        struct fm_path part_at = {.parent = at, .index = i};
        enum fm_code code = check_part(dialect, json_object_array_get_idx(content, i), &part_at, error);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

/*
 * Returns the content; in a message of the assistant without content, the member that replaces it. NULL when there is
 * neither.
 */
static struct json_object *content_of(const struct fm_dialect *dialect, struct json_object *message) {
    struct json_object *content = json_object_object_get(message, "content");
    bool stands_in = dialect->stand_in && fm_string_is(json_object_object_get(message, "role"), "assistant");
    return content || !stands_in ? content : json_object_object_get(message, dialect->stand_in);
}

static bool has_calls(const struct fm_dialect *dialect, struct json_object *message) {
    struct json_object *calls = dialect->calls ? json_object_object_get(message, dialect->calls) : NULL;
    return calls && json_object_array_length(calls) > 0;
}

static enum fm_code check_whose_images(const struct fm_dialect *dialect, const struct fm_role *role,
                                       struct json_object *content, const struct fm_path *at, struct fm_error *error) {
    if (strcmp(role->neutral, "user") == 0 || !fm_content_has_images(dialect, content)) {
        return FM_OK;
    }
    struct fm_path part_at = {.parent = at, .index = find_image(dialect, content, 0)};
    struct fm_path type_at = {.parent = &part_at, .key = "type"};
    return fm_reject_unsupported(&type_at, "fm-proxy takes images only in messages of the user.", error);
}

enum fm_code fm_message_check(const struct fm_dialect *dialect, struct json_object *message, const struct fm_path *at,
                              struct fm_error *error) {
    struct json_object *name = NULL;
    struct fm_path role_at = {.parent = at, .key = "role"};
    enum fm_code code = fm_check_tag(message, "role", at, &name, error);
    if (code != FM_OK) {
        return code;
    }
    const struct fm_role *role = find_role(dialect, name);
    if (!role) {
        return fm_reject_value(&role_at, dialect->roles_note, error);
    }
    if (!role->neutral) {
        return fm_reject_unsupported(&role_at, "Use the role 'tool' instead.", error);
    }
    code = fm_check_members(dialect->message_rules, message, at, error);
    if (code != FM_OK) {
        return code;
    }
    struct json_object *content = content_of(dialect, message);
    struct fm_path content_at = {.parent = at, .key = "content"};
    if (content) {
        enum fm_code checked = fm_content_check(dialect, content, &content_at, error);
        return checked ? checked : check_whose_images(dialect, role, content, &content_at, error);
    }
    return has_calls(dialect, message) ? FM_OK : fm_reject_missing(&content_at, error);
}

/* ---- writing ---- */

void fm_turn_write(const char *role, const char *text, size_t len, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", role);
    fm_json_key(w, "content");
    fm_json_string(w, text, len);
    fm_json_object_end(w);
}

/* Appends the text of a part that is no image. */
static void append_part(const struct fm_part_kind *kind, struct json_object *part, struct fm_buf *buf) {
    if (kind->file) {
        fm_file_append(members_of(kind, part), buf);
        return;
    }
    struct json_object *text = json_object_object_get(part, kind->member);
    fm_buf_append(buf, json_object_get_string(text), (size_t)json_object_get_string_len(text));
}

/* Writes the parts of a checked content from `index` up to `end`, which are texts and files, as one text. */
static void write_texts(const struct fm_dialect *dialect, struct json_object *content, size_t index, size_t end,
                        struct fm_buf *scratch, struct fm_json_writer *w) {
    fm_buf_reset(scratch);
    for (; index < end; index++) {
        struct json_object *part = json_object_array_get_idx(content, index);
        append_part(find_part(dialect, json_object_object_get(part, "type")), part, scratch);
    }
    fm_json_string(w, scratch->data ? scratch->data : "", scratch->len);
    w->buf->failed |= scratch->failed;
}

static void write_image(const struct fm_dialect *dialect, struct json_object *part, struct fm_json_writer *w) {
    const struct fm_part_kind *kind = find_part(dialect, json_object_object_get(part, "type"));
    size_t len;
    const char *data = fm_image_data(image_url(kind, part), &len);
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "image");
    fm_json_key(w, "data");
    fm_json_string(w, data, len);
    if (image_detail(kind, part)) {
        fm_json_key_value(w, "detail", image_detail(kind, part));
    }
    fm_json_object_end(w);
}

/* Writes parts in the form of ENGINE.md: images, and the texts between them. */
static void write_parts(const struct fm_dialect *dialect, struct json_object *content, struct fm_buf *scratch,
                        struct fm_json_writer *w) {
    size_t count = json_object_array_length(content);
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        size_t image = find_image(dialect, content, i);
        if (image > i) {
            fm_json_object_begin(w);
            fm_json_key_str(w, "type", "text");
            fm_json_key(w, "text");
            write_texts(dialect, content, i, image, scratch, w);
            fm_json_object_end(w);
        }
        if (image < count) {
            write_image(dialect, json_object_array_get_idx(content, image), w);
        }
        i = image;
    }
    fm_json_array_end(w);
}

void fm_content_write(const struct fm_dialect *dialect, struct json_object *content, struct fm_buf *scratch,
                      struct fm_json_writer *w) {
    if (json_object_is_type(content, json_type_string)) {
        fm_json_value(w, content);
        return;
    }
    size_t count = json_object_array_length(content);
    if (find_image(dialect, content, 0) < count) {
        write_parts(dialect, content, scratch, w);
    } else {
        write_texts(dialect, content, 0, count, scratch, w);
    }
}

void fm_message_write(const struct fm_dialect *dialect, struct json_object *message, struct fm_buf *scratch,
                      struct fm_json_writer *w) {
    struct json_object *content = content_of(dialect, message);
    fm_json_key_str(w, "role", find_role(dialect, json_object_object_get(message, "role"))->neutral);
    if (content) {
        fm_json_key(w, "content");
        fm_content_write(dialect, content, scratch, w);
    }
}

/* ---- calls ---- */

void fm_call_write(struct json_object *id, struct json_object *call, struct fm_buf *scratch, struct fm_json_writer *w) {
    struct json_object *input = json_object_object_get(call, "input");
    fm_json_object_begin(w);
    fm_json_key_value(w, "id", id);
    fm_json_key_value(w, "name", json_object_object_get(call, "name"));
    if (input) {
        fm_custom_write_arguments(input, scratch, w);
    } else {
        fm_json_key_value(w, "arguments", json_object_object_get(call, "arguments"));
    }
    fm_json_object_end(w);
}

enum fm_code fm_call_note(struct json_object *ids, struct json_object *id, struct fm_error *error) {
    bool noted = ids && json_object_object_add(ids, json_object_get_string(id), NULL) == 0;
    return noted ? FM_OK : fm_fail_no_memory(error);
}

enum fm_code fm_call_find(struct json_object *ids, struct json_object *id, const struct fm_path *at,
                          struct fm_error *error) {
    if (json_object_object_get_ex(ids, json_object_get_string(id), NULL)) {
        return FM_OK;
    }
    enum fm_code code = fm_reject_value(at, "A tool's output must have the id of a call that comes before it.", error);
    error->reason = "";
    return code;
}
