/*
 * The fake engine's vectors: their numbers come from a hash of the text, so the same text has the same vector. An input
 * that is a script (script.h) is run first; its vector is that of the script's text.
 */
#ifndef FM_ENGINE_FAKE_EMBED_H
#define FM_ENGINE_FAKE_EMBED_H

#include "engine/kit/kit.h"

/*
 * Runs a job that embeds, up to but without its end. An input may have `context` words. FM_REASON_ERROR: `error` is
 * filled.
 */
enum fm_reason fm_fake_embed(struct fm_kit_job *job, int64_t context, struct fm_error *error);

#endif
