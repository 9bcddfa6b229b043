/*
 * The options from which a model picks: up to 8 candidates for each slot. The prompt and the schema of the answer have
 * their names. The answer is one command, or "ask". Tabs are named by title and site, never by number, because small
 * models compare words better. The model's answer is always checked here, even if the model was made to match the
 * schema.
 */
#ifndef SY_SCHEMA_H
#define SY_SCHEMA_H

#include "match/lexical.h"

struct fm_buf;
struct json_object;

#define SY_ITEMS_MAX  8   /* candidates of a slot */
#define SY_LABEL_SIZE 256 /* bytes of a candidate's name, its NUL included */

struct sy_item {
    size_t at; /* index in the index's applications or presets; for tabs: the tab's index - 1 */
    char label[SY_LABEL_SIZE];
};

struct sy_menu {
    struct sy_item apps[SY_ITEMS_MAX], tabs[SY_ITEMS_MAX], presets[SY_ITEMS_MAX];
    size_t app_count, tab_count, preset_count;
    unsigned types; /* bits of enum sy_pick_type */
};

enum sy_pick_type {
    SY_PICK_FOCUS,
    SY_PICK_SWITCH,
    SY_PICK_PRESET,
    SY_PICK_PLACE,
    SY_PICK_QUERY,
    SY_PICK_LIST_APPS,
    SY_PICK_LIST_TABS,
    SY_PICK_CLOSE_TAB,
    SY_PICK_CLOSE_APP,
    SY_PICK_ASK,
};

/* Makes the menu for the reading's verb and candidates. `may_close`: the user's own words have a verb that closes.
 * Pure. */
void sy_menu_make(const struct sy_index *index, const struct sy_reading *reading, bool may_close, struct sy_menu *menu);

/* Drops the queries and fragments of addresses in the text: they may hold secrets. */
void sy_drop_queries(char *text);

/* Reverses each list of options. */
void sy_menu_turn(struct sy_menu *menu);

/* Appends the JSON schema of the answer. */
void sy_schema_write(const struct sy_menu *menu, struct fm_buf *schema);

/*
 * Reads what the model picked; `question` is the text for a query. FM_OK with `found->type` NULL: the model asks back,
 * or its answer is not among the options. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code sy_pick_read(const struct sy_index *index, const struct sy_menu *menu,
                                      struct json_object *answer, const struct sy_where *where, const char *question,
                                      struct sy_found *found, struct fm_error *error);

#endif
