/* Draws ids: 128 random bits each, so that no two are the same and none can be guessed. */
#include "surface/ids.h"
#include "base/hex.h"
#include "base/platform.h"

#include <string.h>

#define ID_RANDOM 16 /* bytes; each is two hex digits */

void fm_id_draw(char id[FM_ID_SIZE], const char *prefix) {
    unsigned char bytes[ID_RANDOM];
    fm_random(bytes, sizeof bytes);
    size_t len = strlen(prefix);
    memcpy(id, prefix, len);
    fm_hex(id + len, bytes, sizeof bytes);
}
