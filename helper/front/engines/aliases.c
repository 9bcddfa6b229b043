/* Reads other names of models. */
#include "front/engines/aliases.h"

#include <stddef.h>
#include <string.h>

/* One NAME=MODEL of the list. */
struct entry {
    const char *name;
    size_t name_len;
    const char *model;
    size_t model_len;
};

/* Reads the entry at `text`. Returns the text after the entry; NULL: there is no valid entry. */
static const char *read_entry(const char *text, struct entry *entry) {
    size_t len = strcspn(text, ",");
    const char *equals = memchr(text, '=', len);
    if (!equals) {
        return NULL;
    }
    entry->name = text;
    entry->name_len = (size_t)(equals - text);
    entry->model = equals + 1;
    entry->model_len = len - entry->name_len - 1;
    bool fits =
        entry->name_len && entry->name_len <= FM_ALIAS_MAX && entry->model_len && entry->model_len <= FM_ALIAS_MAX;
    return fits ? text + len + (text[len] == ',') : NULL;
}

bool fm_aliases_valid(const char *text) {
    struct entry entry;
    while (text && *text) {
        text = read_entry(text, &entry);
    }
    return text;
}

static bool is_named(const struct entry *entry, const char *name) {
    return strlen(name) == entry->name_len && memcmp(entry->name, name, entry->name_len) == 0;
}

bool fm_aliases_find(const char *text, const char *name, char model[FM_ALIAS_MAX + 1]) {
    struct entry found = {0};
    struct entry entry;
    while (text && *text && (text = read_entry(text, &entry))) {
        if (is_named(&entry, name)) {
            found = entry;
            break;
        }
        if (!found.name && is_named(&entry, "*")) {
            found = entry;
        }
    }
    if (!found.name) {
        return false;
    }
    memcpy(model, found.model, found.model_len);
    model[found.model_len] = '\0';
    return true;
}
