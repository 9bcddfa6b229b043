/* Draws ids: 128 random bits each, so that no two are the same and none can be guessed. */
#include "surface/ids.h"
#include "base/platform.h"

#include <string.h>

#define ID_RANDOM 16 /* bytes; each is two hex digits */

void fm_id_draw(char id[FM_ID_SIZE], const char *prefix) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_RANDOM];
    fm_random(bytes, sizeof bytes);
    size_t len = strlen(prefix);
    memcpy(id, prefix, len);
    for (size_t i = 0; i < sizeof bytes; i++) {
        id[len++] = digits[bytes[i] >> 4];
        id[len++] = digits[bytes[i] & 15];
    }
    id[len] = '\0';
}
