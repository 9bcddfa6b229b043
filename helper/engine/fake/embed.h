/*
 * The fake engine's vectors: numbers made of a hash of the text, so that the same text has the same vector. An input
 * that is a script (script.h) is run first; its vector is that of the script's text.
 */
#ifndef FM_ENGINE_FAKE_EMBED_H
#define FM_ENGINE_FAKE_EMBED_H

#include "engine/kit/kit.h"

/* Does all of a job that embeds but its end. An input may have `context` words. `error` is filled for FM_REASON_ERROR.
 */
enum fm_reason fm_fake_embed(struct fm_kit_job *job, int64_t context, struct fm_error *error);

#endif
