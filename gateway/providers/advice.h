/* What a user can do about a turn that failed. Pure. */
#ifndef GW_PROVIDERS_ADVICE_H
#define GW_PROVIDERS_ADVICE_H

#include "agents/agent.h"

/*
 * Makes the detail of a helper's error a sentence for people who use the gateway: who failed, why, and what to do next,
 * in the gateway's words where the helper has its own (its options, its parameters). The code stays.
 */
void gw_advise(const struct gw_model_ref *model, struct fm_error *error);

#endif
