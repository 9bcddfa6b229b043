/* Makes the options and their schema. A label is unique in its slot, and stands for one thing. Other answers are
 * ignored. */
#include "match/schema.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define TITLE_SHOWN 48 /* characters */
#define TABS_PICKED 8

static const char *const type_names[] = {"focus_app", "switch_tab", "activate_preset", "place_app", "query",
                                         "list_apps", "list_tabs",  "close_tab",       "close_app", "ask"};
#define TYPE_COUNT (sizeof type_names / sizeof type_names[0])

static const char *const monitors[] = {"main", "left", "right"};

/* ---- labels ---- */

void sy_drop_queries(char *text) {
    char *to = text;
    bool address = false;
    bool dropping = false;
    for (const char *at = text; *at; at++) {
        if (*at == ' ') {
            address = dropping = false;
        }
        address |= *at == '/';
        dropping |= address && (*at == '?' || *at == '#');
        if (!dropping) {
            *to++ = *at;
        }
    }
    *to = '\0';
}

static void make_unique(struct sy_item *options, size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (strcmp(options[i].label, options[at].label) == 0) {
            size_t len = strlen(options[at].label);
            snprintf(options[at].label + len, SY_LABEL_SIZE - len, " #%zu", at + 1);
            i = (size_t)-1;
        }
    }
}

static void label_tab(const struct sy_index *index, struct sy_item *option) {
    char title[4 * TITLE_SHOWN + 4];
    char domain[4 * 30 + 4];
    const struct sy_numbered_tab *tab = &index->scene->snapshot->tabs[option->at];
    sy_plain(tab->tab->title, TITLE_SHOWN, title, sizeof title);
    sy_drop_queries(title);
    sy_plain(tab->domain, 30, domain, sizeof domain);
    snprintf(option->label, sizeof option->label - 8, "%.200s%s%.40s%s", title, domain[0] ? " (" : "", domain,
             domain[0] ? ")" : "");
}

static void add_option(const struct sy_index *index, enum sy_group group, size_t at, struct sy_item *options,
                       size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        if (options[i].at == at) {
            return;
        }
    }
    if (*count == SY_ITEMS_MAX) {
        return;
    }
    struct sy_item *option = &options[*count];
    option->at = at;
    if (group == SY_TABS) {
        label_tab(index, option);
    } else {
        sy_plain(group == SY_APPS ? index->apps[at].name : index->presets[at].name, TITLE_SHOWN, option->label,
                 sizeof option->label - 8);
    }
    make_unique(options, *count);
    (*count)++;
}

/* Fills a slot while there is room: first with the things that the words fit, then with the others in their order. */
static void fill_slot(const struct sy_index *index, enum sy_group group, const struct sy_hits *hits, size_t all,
                      struct sy_item *options, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < hits->count; i++) {
        add_option(index, group, hits->at[i].at, options, count);
    }
    for (size_t i = 0; i < all && *count < SY_ITEMS_MAX; i++) {
        add_option(index, group, i, options, count);
    }
}

/* ---- types ---- */

static unsigned bit(enum sy_pick_type type) {
    return 1u << type;
}

static unsigned types_of(const struct sy_reading *reading, bool may_close) {
    unsigned go = bit(SY_PICK_FOCUS) | bit(SY_PICK_SWITCH) | bit(SY_PICK_PRESET);
    unsigned close = bit(SY_PICK_CLOSE_TAB) | bit(SY_PICK_CLOSE_APP);
    switch (reading->verb) {
    case SY_CLOSE: return (may_close ? close : 0) | bit(SY_PICK_ASK);
    case SY_SWITCH:
    case SY_WANT:
    case SY_VISIT:
    case SY_OPEN: return go | bit(SY_PICK_ASK);
    case SY_PRESET: return bit(SY_PICK_PRESET) | bit(SY_PICK_ASK);
    case SY_PLACE: return bit(SY_PICK_PLACE) | bit(SY_PICK_ASK);
    default:
        return go | bit(SY_PICK_PLACE) | bit(SY_PICK_QUERY) | bit(SY_PICK_LIST_APPS) | bit(SY_PICK_LIST_TABS) |
               (may_close ? close : 0) | bit(SY_PICK_ASK);
    }
}

void sy_menu_make(const struct sy_index *index, const struct sy_reading *reading, bool may_close,
                  struct sy_menu *menu) {
    menu->types = types_of(reading, may_close);
    fill_slot(index, SY_APPS, &reading->apps, index->app_count, menu->apps, &menu->app_count);
    fill_slot(index, SY_TABS, &reading->tabs, index->tab_count, menu->tabs, &menu->tab_count);
    fill_slot(index, SY_PRESETS, &reading->presets, index->preset_count, menu->presets, &menu->preset_count);
    unsigned app = bit(SY_PICK_FOCUS) | bit(SY_PICK_PLACE) | bit(SY_PICK_CLOSE_APP);
    menu->types &= ~(menu->app_count ? 0 : app);
    menu->types &= ~(menu->tab_count ? 0 : bit(SY_PICK_SWITCH) | bit(SY_PICK_CLOSE_TAB));
    menu->types &= ~(menu->preset_count ? 0 : bit(SY_PICK_PRESET));
}

static void turn(struct sy_item *options, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        struct sy_item held = options[i];
        options[i] = options[count - 1 - i];
        options[count - 1 - i] = held;
    }
}

void sy_menu_turn(struct sy_menu *menu) {
    turn(menu->apps, menu->app_count);
    turn(menu->tabs, menu->tab_count);
    turn(menu->presets, menu->preset_count);
}

/* ---- the schema ---- */

static void write_enum(const struct sy_item *options, size_t count, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key(w, "enum");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        fm_json_str(w, options[i].label);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}

static void write_slots(enum sy_pick_type type, const struct sy_menu *menu, struct fm_json_writer *w) {
    if (type == SY_PICK_FOCUS || type == SY_PICK_PLACE || type == SY_PICK_CLOSE_APP) {
        fm_json_key(w, "app_name");
        write_enum(menu->apps, menu->app_count, w);
    } else if (type == SY_PICK_SWITCH) {
        fm_json_key(w, "tab");
        write_enum(menu->tabs, menu->tab_count, w);
    } else if (type == SY_PICK_PRESET) {
        fm_json_key(w, "preset_name");
        write_enum(menu->presets, menu->preset_count, w);
    } else if (type == SY_PICK_CLOSE_TAB) {
        fm_json_key(w, "tabs");
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "array");
        fm_json_key_int(w, "minItems", 1);
        fm_json_key_int(w, "maxItems", TABS_PICKED);
        fm_json_key(w, "items");
        write_enum(menu->tabs, menu->tab_count, w);
        fm_json_object_end(w);
    }
    if (type == SY_PICK_PLACE) {
        fm_json_key(w, "monitor");
        fm_json_object_begin(w);
        fm_json_key(w, "enum");
        fm_json_array_begin(w);
        for (size_t i = 0; i < sizeof monitors / sizeof monitors[0]; i++) {
            fm_json_str(w, monitors[i]);
        }
        fm_json_array_end(w);
        fm_json_object_end(w);
    }
}

static void write_required(enum sy_pick_type type, struct fm_json_writer *w) {
    static const char *const slots[] = {"app_name", "tab", "preset_name", "app_name", NULL,
                                        NULL,       NULL,  "tabs",        "app_name", NULL};
    fm_json_key(w, "required");
    fm_json_array_begin(w);
    fm_json_str(w, "type");
    if (slots[type]) {
        fm_json_str(w, slots[type]);
    }
    if (type == SY_PICK_PLACE) {
        fm_json_str(w, "monitor");
    }
    fm_json_array_end(w);
}

void sy_schema_write(const struct sy_menu *menu, struct fm_buf *schema) {
    struct fm_json_writer w = fm_json_writer_on(schema);
    fm_json_object_begin(&w);
    fm_json_key(&w, "anyOf");
    fm_json_array_begin(&w);
    for (enum sy_pick_type type = 0; type < TYPE_COUNT; type++) {
        if (!(menu->types & bit(type))) {
            continue;
        }
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "type", "object");
        fm_json_key(&w, "properties");
        fm_json_object_begin(&w);
        fm_json_key(&w, "type");
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "const", type_names[type]);
        fm_json_object_end(&w);
        write_slots(type, menu, &w);
        fm_json_object_end(&w);
        write_required(type, &w);
        fm_json_key_bool(&w, "additionalProperties", false);
        fm_json_object_end(&w);
    }
    fm_json_array_end(&w);
    fm_json_object_end(&w);
}

/* ---- the answer ---- */

static const struct sy_item *find_label(const struct sy_item *options, size_t count, struct json_object *label) {
    if (!json_object_is_type(label, json_type_string)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(options[i].label, json_object_get_string(label)) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

static bool add_tab(struct sy_found *found, size_t tab) {
    size_t all[TABS_PICKED];
    size_t count = 0;
    bool placed = false;
    for (size_t i = 0; i < found->tab_count; i++) {
        placed |= found->tabs[i] == tab;
        if (!placed && found->tabs[i] > tab) {
            all[count++] = tab;
            placed = true;
        }
        all[count++] = found->tabs[i];
    }
    if (!placed) {
        all[count++] = tab;
    }
    return sy_found_set_tabs(found, all, count);
}

static bool take_tabs(const struct sy_menu *menu, struct json_object *labels, struct sy_found *found, bool *known) {
    size_t count = json_object_is_type(labels, json_type_array) ? json_object_array_length(labels) : 0;
    *known = count > 0 && count <= TABS_PICKED;
    for (size_t i = 0; i < count && *known; i++) {
        const struct sy_item *option = find_label(menu->tabs, menu->tab_count, json_object_array_get_idx(labels, i));
        *known = option != NULL;
        if (option && !add_tab(found, option->at + 1)) {
            return false;
        }
    }
    return true;
}

static bool take_tab(const struct sy_menu *menu, struct json_object *label, struct sy_found *found, bool *known) {
    const struct sy_item *option = find_label(menu->tabs, menu->tab_count, label);
    *known = option != NULL;
    return !option || add_tab(found, option->at + 1);
}

/* Takes the place of a window. If the user's words have a place, the model's monitor is ignored. */
static bool take_place(const struct sy_index *index, struct json_object *answer, const struct sy_where *where,
                       struct sy_found *found) {
    const struct sy_snapshot *snapshot = index->scene->snapshot;
    const struct sy_running *running = sy_find_running(snapshot, found->name);
    const char *name = json_object_get_string(json_object_object_get(answer, "monitor"));
    struct sy_where own = {.given = true};
    for (size_t i = 0; i < sizeof monitors / sizeof monitors[0] && name; i++) {
        own.monitor = strcmp(name, monitors[i]) == 0 ? monitors[i] : own.monitor;
    }
    const struct sy_rect *window = running ? &snapshot->windows.at[running->windows[0]].bounds : NULL;
    return running && (where->given || own.monitor) &&
           sy_where_bounds(where->given ? where : &own, snapshot, window, &found->monitor, &found->has_bounds,
                           &found->bounds);
}

static enum sy_pick_type type_of(struct json_object *answer, unsigned types) {
    struct json_object *name = json_object_object_get(answer, "type");
    for (enum sy_pick_type type = 0; type < TYPE_COUNT; type++) {
        bool same =
            json_object_is_type(name, json_type_string) && strcmp(json_object_get_string(name), type_names[type]) == 0;
        if (same && (types & bit(type))) {
            return type;
        }
    }
    return SY_PICK_ASK;
}

enum fm_code sy_pick_read(const struct sy_index *index, const struct sy_menu *menu, struct json_object *answer,
                          const struct sy_where *where, const char *question, struct sy_found *found,
                          struct fm_error *error) {
    *found = (struct sy_found){.type = NULL};
    enum sy_pick_type type = json_object_is_type(answer, json_type_object) ? type_of(answer, menu->types) : SY_PICK_ASK;
    bool apps = type == SY_PICK_FOCUS || type == SY_PICK_PLACE || type == SY_PICK_CLOSE_APP;
    bool known = type != SY_PICK_ASK;
    bool done = true;
    if (apps) {
        const struct sy_item *option =
            find_label(menu->apps, menu->app_count, json_object_object_get(answer, "app_name"));
        found->name = option ? index->apps[option->at].name : NULL;
        known = option && (type != SY_PICK_PLACE || take_place(index, answer, where, found));
    } else if (type == SY_PICK_SWITCH) {
        done = take_tab(menu, json_object_object_get(answer, "tab"), found, &known);
    } else if (type == SY_PICK_CLOSE_TAB) {
        done = take_tabs(menu, json_object_object_get(answer, "tabs"), found, &known);
    } else if (type == SY_PICK_PRESET) {
        const struct sy_item *option =
            find_label(menu->presets, menu->preset_count, json_object_object_get(answer, "preset_name"));
        found->name = option ? index->presets[option->at].name : NULL;
        known = option != NULL;
    } else if (type == SY_PICK_QUERY) {
        found->text = strdup(question);
        done = found->text != NULL;
    }
    if (!done || !known) {
        sy_found_free(found);
    } else {
        found->type = type_names[type];
    }
    return done ? FM_OK : fm_fail_no_memory(error);
}
