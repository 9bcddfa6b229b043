/*
 * What the fake engine saves when it ends, and has of its predecessor: a short text. FM_ENGINE_FAKE_SAVE says which,
 * and how it goes:
 *
 *     text:TEXT    it saves the text
 *     untold:TEXT  it saves the text, and does not tell the front
 *     more:TEXT    it tells of one byte more than there are
 *     hang:TEXT    it saves the text, and stands still
 *     full         it saves bytes up to the file's limit, or as many as the disk takes
 *     beyond       the same, and goes on beyond the limit; tells of what it could write
 *     unusable     it says of what it has that it can't use it; saves nothing
 *
 * Without it nothing is saved. Engine thread, except fm_fake_saved_text.
 */
#ifndef FM_ENGINE_FAKE_SAVED_H
#define FM_ENGINE_FAKE_SAVED_H

#include "engine/kit/kit.h"

/* In `load`: reads what was saved. */
void fm_fake_saved_load(struct fm_kit *kit, const struct fm_model_files *files);

/* After the last job. */
void fm_fake_saved_end(struct fm_kit *kit);

/* What the predecessor has saved, as far as it is short; "nothing": no file. Any thread after the load. */
const char *fm_fake_saved_text(void);

#endif
