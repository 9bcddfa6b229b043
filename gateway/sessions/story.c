/*
 * Sorts records by their runs. Runs are few and most records belong to the last one, so a run is searched for from the
 * end.
 */
#include "sessions/story.h"
#include "protocol/json_tree.h"
#include "sessions/record.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

const char *gw_text_of(struct json_object *record, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(record, name, &value);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

bool gw_is_record(struct json_object *record, const char *type) {
    return record && strcmp(gw_text_of(record, "type"), type) == 0;
}

static struct gw_story_run *find_run(const struct gw_story *story, const char *id) {
    for (size_t i = story->count; i > 0; i--) {
        if (strcmp(story->runs[i - 1].id, id) == 0) {
            return &story->runs[i - 1];
        }
    }
    return NULL;
}

static bool add_part(struct gw_story_run *run, struct json_object *record) {
    if ((run->part_count & (run->part_count - 1)) == 0) { /* the array grows at each power of two */
        size_t room = run->part_count ? run->part_count * 2 : 1;
        struct json_object **larger = realloc(run->parts, room * sizeof *larger);
        if (!larger) {
            return false;
        }
        run->parts = larger;
    }
    run->parts[run->part_count++] = record;
    return true;
}

static bool add_to(struct gw_story *story, struct gw_story_run *run, struct json_object *record) {
    static const char *const parts[] = {"step", "tool_call", "approval_settled", "tool_result"};
    if (gw_is_record(record, "message")) {
        if (strcmp(gw_text_of(record, "role"), "user") == 0) {
            run->user = record;
        } else {
            run->answer = record;
        }
    } else if (gw_is_record(record, "run_ended")) {
        run->ended = record;
        run->taken_back = json_object_object_get_ex(record, "takenBack", NULL);
        run->event = gw_record_event(record);
    }
    story->browsed |= gw_is_record(record, "tool_call") && strcmp(gw_text_of(record, "name"), "browser") == 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (gw_is_record(record, parts[i])) {
            return add_part(run, record);
        }
    }
    return true;
}

/* The text needs no check: each record was checked when the transcript was read. */
static struct json_object *parse_records(const char *text, size_t len) {
    struct json_object *root = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, GW_RECORD_MAX);
    bool ok = fm_json_tree(text, len, &scratch, &root);
    fm_buf_free(&scratch);
    return ok ? root : NULL;
}

bool gw_story_read(const char *text, size_t len, struct gw_story *story) {
    struct json_object *records = parse_records(text, len);
    size_t count = records ? json_object_array_length(records) : 0;
    *story = (struct gw_story){.runs = calloc(count + 1, sizeof *story->runs), .records = records};
    bool ok = records && story->runs;
    for (size_t i = 0; ok && i < count; i++) {
        struct json_object *record = json_object_array_get_idx(records, i);
        const char *id = gw_text_of(record, "runId");
        struct gw_story_run *run = *id ? find_run(story, id) : NULL;
        if (gw_is_record(record, "run_started") && *id && !run) {
            story->runs[story->count++] = (struct gw_story_run){.id = id, .started = record};
        } else if (run) {
            ok = add_to(story, run, record);
        }
    }
    if (!ok) {
        gw_story_free(story);
    }
    return ok;
}

void gw_story_free(struct gw_story *story) {
    for (size_t i = 0; i < story->count; i++) {
        free(story->runs[i].parts);
    }
    free(story->runs);
    json_object_put(story->records);
    *story = (struct gw_story){.count = 0};
}
