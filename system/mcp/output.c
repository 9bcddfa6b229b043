/*
 * The JSON Schemas of tools' results. A result is an object with "ok". If that is false, "error" says why. With
 * "dry_run", "would" says what would be done. Otherwise there are the members of the tool's row. The root is an object,
 * because versions before 2026-07-28 need that.
 */
#include "mcp/lists.h"

#include <string.h>

#define STRING     "{\"type\":\"string\"}"
#define MAYBE      "{\"anyOf\":[" STRING ",{\"type\":\"null\"}]}"
#define INTEGER    "{\"type\":\"integer\"}"
#define BOOLEAN    "{\"type\":\"boolean\"}"
#define INTEGERS   "{\"type\":\"array\",\"items\":" INTEGER "}"
#define BOUNDS     "{\"type\":\"array\",\"items\":" INTEGER ",\"minItems\":4,\"maxItems\":4}"
#define LIST_OF(m) "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{" m "}}}"

static const struct row {
    const char *name;
    const char *members;  /* properties, without the braces */
    const char *required; /* the members that a success always has; without the brackets */
} rows[] = {
    {"list_apps", "\"apps\":" LIST_OF("\"name\":" STRING ",\"windows\":" INTEGER ",\"is_active\":" BOOLEAN),
     "\"apps\""},
    {"focus_app", "\"app_name\":" STRING ",\"launched\":" BOOLEAN, "\"app_name\",\"launched\""},
    {"place_app", "\"app_name\":" STRING ",\"bounds\":" BOUNDS ",\"exact\":" BOOLEAN ",\"undo\":" STRING,
     "\"app_name\",\"bounds\""},
    {"close_app", "\"app_name\":" STRING ",\"closed_windows\":" INTEGER, "\"app_name\",\"closed_windows\""},
    {"list_tabs",
     "\"snapshot\":" STRING
     ",\"tabs\":" LIST_OF("\"index\":" INTEGER ",\"title\":" STRING ",\"url\":" STRING ",\"domain\":" STRING
                          ",\"content_summary\":" MAYBE ",\"is_active\":" BOOLEAN ",\"window_index\":" INTEGER
                          ",\"local_index\":" INTEGER),
     "\"snapshot\",\"tabs\""},
    {"switch_tab", "\"title\":" STRING ",\"url\":" STRING, "\"title\",\"url\""},
    {"open_url", "\"url\":" STRING, "\"url\""},
    {"activate_preset",
     "\"preset_name\":" STRING ",\"apps\":" LIST_OF(
         "\"app_name\":" STRING ",\"bounds\":" BOUNDS ",\"exact\":" BOOLEAN
         ",\"launched\":" BOOLEAN) ",\"urls\":" LIST_OF("\"url\":" STRING ",\"opened\":" BOOLEAN) ",\"undo\":" STRING,
     "\"preset_name\",\"apps\",\"urls\""},
    {"query", "\"answer\":" STRING ",\"by\":" STRING ",\"conversation\":" STRING, "\"answer\",\"by\",\"conversation\""},
    {"undo",
     "\"restored\":" LIST_OF("\"app_name\":" STRING ",\"bounds\":" BOUNDS
                             ",\"exact\":" BOOLEAN) ",\"closed_meanwhile\":" INTEGER,
     "\"restored\""},
    {"close_tab", "\"closed\":" INTEGERS ",\"blocked\":" INTEGERS ",\"changed\":" INTEGERS,
     "\"closed\",\"blocked\",\"changed\""},
    {"run_commands",
     "\"results\":" LIST_OF("\"type\":" STRING ",\"ok\":" BOOLEAN) ",\"needs_clarification\":" BOOLEAN
                                                                   ",\"clarification_reason\":" STRING,
     "\"results\""},
    {"match",
     "\"commands\":" LIST_OF("\"type\":" STRING) ",\"needs_clarification\":" BOOLEAN ",\"clarification_reason\":" MAYBE,
     "\"commands\",\"needs_clarification\""},
    {"", "", ""}, /* any other tool: only the common members */
};

static const char common[] =
    "\"ok\":{\"type\":\"boolean\",\"description\":\"false: error says why\"},\"type\":" STRING ",\"dry_run\":" BOOLEAN
    ",\"would\":{\"type\":\"array\",\"description\":\"what a dry run would do\",\"items\":{\"type\":\"object\"}}"
    ",\"error\":{\"type\":\"object\",\"properties\":{"
    "\"code\":{\"type\":\"string\",\"description\":\"such as unknown_app\"},"
    "\"param\":{\"type\":\"string\",\"description\":\"the parameter at fault; empty: none\"},"
    "\"detail\":" STRING ","
    "\"candidates\":{\"type\":\"array\",\"description\":\"what may have been meant\"}},"
    "\"required\":[\"code\",\"param\",\"detail\"]}";

static void raw(struct fm_json_writer *w, const char *text) {
    fm_buf_append_str(w->buf, text);
}

void sy_write_output_schema(const char *name, struct fm_json_writer *w) {
    const struct row *row = rows;
    while (row->name[0] && strcmp(row->name, name) != 0) {
        row++;
    }
    raw(w, "{\"type\":\"object\",\"properties\":{");
    raw(w, common);
    raw(w, row->members[0] ? "," : "");
    raw(w, row->members);
    raw(w, "},\"required\":[\"ok\"],\"anyOf\":[");
    raw(w, "{\"properties\":{\"ok\":{\"const\":true},\"dry_run\":{\"const\":true}},\"required\":[\"dry_run\",\"would\"]"
           "},");
    raw(w, "{\"properties\":{\"ok\":{\"const\":false}},\"required\":[\"error\"]},");
    raw(w, "{\"properties\":{\"ok\":{\"const\":true}},\"required\":[");
    raw(w, row->required);
    raw(w, "]}]}");
    w->comma = true;
}
