/*
 * The short text that the fake engine saves when it ends, and gets from its predecessor. FM_ENGINE_FAKE_SAVE says what
 * the engine does:
 *
 *     text:TEXT    it saves the text
 *     untold:TEXT  it saves the text, but does not report that to the front
 *     more:TEXT    it saves the text, but reports one byte more than there are
 *     hang:TEXT    it saves the text, and then hangs
 *     full         it saves bytes up to the file's limit, or as many as the disk takes
 *     beyond       the same, and tries to write beyond the limit; reports what it could write
 *     unusable     it reports that it can't use what its predecessor saved; saves nothing
 *
 * Without the variable nothing is saved. Engine thread, except fm_fake_saved_text.
 */
#ifndef FM_ENGINE_FAKE_SAVED_H
#define FM_ENGINE_FAKE_SAVED_H

#include "engine/kit/kit.h"

/* Call it in `load`: reads what the predecessor saved. */
void fm_fake_saved_load(struct fm_kit *kit, const struct fm_model_files *files);

/* Saves. Call it after the last job. */
void fm_fake_saved_end(struct fm_kit *kit);

/* The beginning of what the predecessor saved; "nothing": there is no file. Any thread, after the load. */
const char *fm_fake_saved_text(void);

#endif
