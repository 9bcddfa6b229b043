/*
 * A transcript by its runs: each has its user message, its outcome and its end. Runs are in the order in which they
 * were started; a message that waited while another run was in progress belongs to its own run. Pure.
 */
#ifndef GW_SESSIONS_STORY_H
#define GW_SESSIONS_STORY_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* The story owns the records. */
struct gw_story_run {
    const char *id;
    struct json_object *started; /* run_started */
    struct json_object *user;    /* message; NULL: it is missing */
    struct json_object **parts;  /* step, tool_call, approval_settled, tool_result: in their order */
    size_t part_count;
    struct json_object *answer; /* the assistant's message; NULL: there is none */
    struct json_object *ended;  /* run_ended; NULL: it is open */
    int64_t event;              /* the number of the event that reported its end */
    bool taken_back;            /* the run never began */
};

struct gw_story {
    struct gw_story_run *runs;
    size_t count;
    bool browsed; /* text of a web page is in the story */
    struct json_object *records;
};

/*
 * Reads an array of records, as gw_view_write has written it (GW_VIEW_RECORDS). False: out of memory, and nothing is
 * left to free.
 */
FM_MUST_USE bool gw_story_read(const char *text, size_t len, struct gw_story *story);
void gw_story_free(struct gw_story *story);

/* The string `name` of a record; "": it has none. */
const char *gw_text_of(struct json_object *record, const char *name);

/* Whether the record has this type. NULL is no record. */
bool gw_is_record(struct json_object *record, const char *type);

#endif
