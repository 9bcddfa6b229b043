/* What the fake engine saves, and what it finds saved: saved.h. */
#include "engine/fake/saved.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE     (1u << 20) /* bytes */
#define BEYOND_MS 200        /* time for a test to look at the file */

static struct {
    int write;
    int64_t max_bytes;
    char text[64];
} saved = {.write = -1, .text = "nothing"};

/* The text after "how:" in the variable, or "" if the variable is just `how`; NULL: it is something else. */
static const char *asked(const char *how) {
    const char *value = getenv("FM_ENGINE_FAKE_SAVE");
    size_t len = strlen(how);
    if (!value || strncmp(value, how, len) != 0 || (value[len] && value[len] != ':')) {
        return NULL;
    }
    return value[len] ? value + len + 1 : "";
}

void fm_fake_saved_load(struct fm_kit *kit, const struct fm_model_files *files) {
    int64_t size = files->saved_read >= 0 ? fm_private_file_size(files->saved_read) : -1;
    size_t len = size < (int64_t)sizeof saved.text ? (size_t)size : sizeof saved.text - 1;
    saved.write = files->saved_write;
    saved.max_bytes = files->saved_max_bytes;
    if (size < 0) {
        return;
    }
    bool read = fm_private_file_read(files->saved_read, saved.text, len, 0);
    saved.text[read ? len : 0] = '\0';
    if (asked("unusable")) {
        fm_kit_saved_unusable(kit, "FM_ENGINE_FAKE_SAVE asks for it");
    }
}

static void save_text(struct fm_kit *kit, const char *text) {
    size_t len = strlen(text);
    if (!fm_write_all(saved.write, text, len) || asked("untold")) {
        return;
    }
    while (asked("hang")) {
        fm_sleep_ms(1000);
    }
    fm_kit_saved(kit, (int64_t)len + (asked("more") ? 1 : 0));
}

static void fill_file(struct fm_kit *kit, int64_t most) {
    static char piece[PIECE];
    int64_t bytes = 0;
    while (bytes + PIECE <= most && fm_write_all(saved.write, piece, PIECE)) {
        bytes += PIECE;
    }
    if (bytes + PIECE > saved.max_bytes) {
        fm_kit_saved(kit, bytes);
    }
}

void fm_fake_saved_end(struct fm_kit *kit) {
    static const char *const hows[] = {"text", "untold", "more", "hang"};
    if (saved.write < 0 || fm_kit_save_ms(kit) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        if (asked(hows[i])) {
            save_text(kit, asked(hows[i]));
        }
    }
    if (asked("full")) {
        fill_file(kit, saved.max_bytes);
    } else if (asked("beyond")) {
        fill_file(kit, 2 * saved.max_bytes);
        fm_sleep_ms(BEYOND_MS);
    }
}

const char *fm_fake_saved_text(void) {
    return saved.text;
}
