/* The parts of an answer that is not complete yet: text and calls of tools, in the order in which they came. */
#include "run/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_MAX (64u << 20) /* bytes */

static struct gw_part *add_part(struct gw_run *run) {
    struct gw_part *larger = realloc(run->parts, (run->part_count + 1) * sizeof *larger);
    if (!larger) {
        return NULL;
    }
    run->parts = larger;
    struct gw_part *part = &larger[run->part_count++];
    *part = (struct gw_part){.duration_ms = -1};
    fm_buf_init(&part->text, PART_MAX);
    fm_buf_init(&part->attachments, PART_MAX);
    return part;
}

struct gw_part *gw_live_last(const struct gw_run *run) {
    return &run->parts[run->part_count - 1];
}

bool gw_live_text(struct gw_run *run, const char *text, size_t len) {
    bool new = run->part_count == 0 || gw_live_last(run)->tool;
    struct gw_part *part = new ? add_part(run) : gw_live_last(run);
    if (!part) {
        return false;
    }
    fm_buf_append(&part->text, text, len);
    fm_buf_append(&run->text, text, len);
    return !part->text.failed && !run->text.failed;
}

struct gw_part *gw_live_tool(struct gw_run *run, const char *name, const char *summary, const char *details) {
    struct gw_part *part = add_part(run);
    if (!part) {
        return NULL;
    }
    part->tool = true;
    part->state = "running";
    part->tool_name = strdup(name);
    part->summary = strdup(summary);
    part->details = strdup(details);
    snprintf(part->call_id, sizeof part->call_id, "%u", ++run->call_number);
    return part->tool_name && part->summary && part->details ? part : NULL;
}

void gw_live_write_call(const struct gw_part *part, struct fm_json_writer *w) {
    fm_json_key_str(w, "callId", part->call_id);
    fm_json_key_str(w, "toolName", part->tool_name);
    fm_json_key_str(w, "summary", part->summary);
    fm_json_key(w, "details");
    fm_json_raw(w, part->details, strlen(part->details));
}

void gw_live_write_outcome(const struct gw_part *part, struct fm_json_writer *w) {
    fm_json_key(w, "output");
    fm_json_string(w, part->text.data, part->text.len);
    if (part->has_exit_code) {
        fm_json_key_int(w, "exitCode", part->exit_code);
    }
    if (part->truncated) {
        fm_json_key_bool(w, "truncated", true);
    }
    fm_json_key_int(w, "durationMs", part->duration_ms);
    if (part->attachments.len > 0) {
        fm_json_key(w, "attachments");
        fm_json_raw(w, part->attachments.data, part->attachments.len);
    }
}

static void write_tool(const struct gw_part *part, struct fm_json_writer *w) {
    gw_live_write_call(part, w);
    fm_json_key_str(w, "state", part->state);
    if (part->duration_ms >= 0) {
        gw_live_write_outcome(part, w);
    }
}

void gw_live_write(const struct gw_run *run, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < run->part_count; i++) {
        const struct gw_part *part = &run->parts[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", part->tool ? "tool" : "text");
        if (part->tool) {
            write_tool(part, w);
        } else {
            fm_json_key(w, "text");
            fm_json_string(w, part->text.data, part->text.len);
        }
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

void gw_live_free(struct gw_run *run) {
    for (size_t i = 0; i < run->part_count; i++) {
        fm_buf_free(&run->parts[i].text);
        fm_buf_free(&run->parts[i].attachments);
        free(run->parts[i].tool_name);
        free(run->parts[i].summary);
        free(run->parts[i].details);
    }
    free(run->parts);
    fm_buf_free(&run->text);
}
