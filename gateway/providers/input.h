/* A transcript becomes what a model reads: the items of the Responses API. Pure. */
#ifndef GW_PROVIDERS_INPUT_H
#define GW_PROVIDERS_INPUT_H

#include "agents/agent.h"
#include "protocol/json_writer.h"
#include "sessions/story.h"

/*
 * Writes the array of items up to the run `run_id`, which is open: runs that gave no answer are left out, and so are
 * those that wait. What the same model has said before goes back as it came, with what only it can read; of another
 * model's turns texts and calls remain.
 */
void gw_input_write(const struct gw_story *story, const char *run_id, const struct gw_model_ref *model,
                    struct fm_json_writer *w);

#endif
