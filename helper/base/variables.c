/* The functions of variables.h. */
#include "base/variables.h"

#include <string.h>

bool fm_variable_is_in(const char *const names[], size_t count, const char *entry) {
    size_t name_len = strcspn(entry, "=");
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(names[i]);
        bool prefix = names[i][len - 1] == '_';
        if (strncmp(entry, names[i], len) == 0 && (prefix || name_len == len)) {
            return true;
        }
    }
    return false;
}
