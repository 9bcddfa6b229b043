/*
 * Records: one line of JSON each. A record that gw_record_read accepts has all members of its type, each of the right
 * kind.
 */
#include "sessions/record.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <string.h>

#define VALUES_MAX  1048576 /* the limit for our own lines: a tool's input may be long */
#define MEMBERS_MAX 4

struct member {
    const char *name;
    enum json_type kind; /* json_type_null: any */
};

static const struct {
    const char *name;
    struct member members[MEMBERS_MAX];
} types[GW_RECORD_OTHER] = {
    [GW_RECORD_SESSION] = {"session", {{"agentId", json_type_string}}},
    [GW_RECORD_TITLE] = {"title", {{"title", json_type_string}}},
    [GW_RECORD_RUN_STARTED] = {"run_started", {{"runId", json_type_string}}},
    [GW_RECORD_MESSAGE] = {"message", {{"role", json_type_string}, {"content", json_type_string}}},
    [GW_RECORD_TOOL_CALL] = {"tool_call",
                             {{"runId", json_type_string},
                              {"callId", json_type_string},
                              {"name", json_type_string},
                              {"input", json_type_null}}},
    [GW_RECORD_APPROVAL_OPENED] = {"approval_opened",
                                   {{"runId", json_type_string},
                                    {"approvalId", json_type_string},
                                    {"callId", json_type_string}}},
    [GW_RECORD_APPROVAL_SETTLED] = {"approval_settled",
                                    {{"runId", json_type_string},
                                     {"approvalId", json_type_string},
                                     {"verdict", json_type_string}}},
    [GW_RECORD_TOOL_STARTED] = {"tool_started", {{"runId", json_type_string}, {"callId", json_type_string}}},
    [GW_RECORD_TOOL_RESULT] =
        {"tool_result", {{"runId", json_type_string}, {"callId", json_type_string}, {"output", json_type_string}}},
    [GW_RECORD_STEP] = {"step", {{"runId", json_type_string}, {"items", json_type_array}}},
    [GW_RECORD_RUN_ENDED] = {"run_ended", {{"runId", json_type_string}, {"outcome", json_type_string}}},
};

const char gw_record_no_memory[] = "out of memory";

const char *gw_record_name(enum gw_record_type type) {
    return types[type].name;
}

void gw_record_begin(struct fm_json_writer *w, int64_t seq, int64_t time_ms, enum gw_record_type type,
                     const char *run_id) {
    fm_json_object_begin(w);
    fm_json_key_int(w, "seq", seq);
    fm_json_key_int(w, "time", time_ms);
    fm_json_key_str(w, "type", types[type].name);
    if (run_id) {
        fm_json_key_str(w, "runId", run_id);
    }
}

void gw_record_end(struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_buf_append_char(w->buf, '\n');
    w->comma = false;
}

static bool read_number(struct json_object *json, const char *name, int64_t *out) {
    struct json_object *value;
    if (!json_object_object_get_ex(json, name, &value) || !json_object_is_type(value, json_type_int)) {
        return false;
    }
    *out = json_object_get_int64(value);
    return *out > 0;
}

static enum gw_record_type type_of(const char *word) {
    enum gw_record_type type = 0;
    while (type < GW_RECORD_OTHER && strcmp(types[type].name, word) != 0) {
        type++;
    }
    return type;
}

static bool has_members(struct json_object *json, enum gw_record_type type) {
    for (size_t i = 0; type < GW_RECORD_OTHER && i < MEMBERS_MAX && types[type].members[i].name; i++) {
        const struct member *member = &types[type].members[i];
        struct json_object *value;
        if (!json_object_object_get_ex(json, member->name, &value) ||
            (member->kind != json_type_null && !json_object_is_type(value, member->kind))) {
            return false;
        }
    }
    return true;
}

static bool read_members(struct gw_record *record) {
    struct json_object *word;
    if (!json_object_is_type(record->json, json_type_object) || !read_number(record->json, "seq", &record->seq) ||
        !read_number(record->json, "time", &record->time_ms) ||
        !json_object_object_get_ex(record->json, "type", &word) || !json_object_is_type(word, json_type_string)) {
        return false;
    }
    record->type = type_of(json_object_get_string(word));
    return has_members(record->json, record->type);
}

bool gw_record_read(const char *line, size_t len, struct fm_buf *scratch, struct gw_record *record,
                    const char **fault) {
    size_t offset;
    *record = (struct gw_record){.line = line, .len = len};
    *fault = len > GW_RECORD_MAX ? "too long" : fm_json_check(line, len, VALUES_MAX, &offset);
    if (*fault) {
        return false;
    }
    if (!fm_json_tree(line, len, scratch, &record->json)) {
        *fault = gw_record_no_memory;
        return false;
    }
    if (!read_members(record)) {
        json_object_put(record->json);
        record->json = NULL;
        *fault = "not the members of a record";
        return false;
    }
    return true;
}

const char *gw_record_text(const struct gw_record *record, const char *name) {
    struct json_object *value;
    return json_object_object_get_ex(record->json, name, &value) && json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : NULL;
}

int64_t gw_record_event(struct json_object *json) {
    struct json_object *event;
    if (json_object_object_get_ex(json, "event", &event)) {
        int64_t number = json_object_get_int64(event);
        return number > 0 && number < GW_EVENT_MAX ? number : 0;
    }
    int64_t time_ms = json_object_get_int64(json_object_object_get(json, "time"));
    return time_ms > 0 && time_ms < GW_EVENT_MAX / GW_EVENTS_A_MS ? time_ms * GW_EVENTS_A_MS : 0;
}
