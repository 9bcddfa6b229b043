/* What a user can do about a turn that failed. Pure. */
#ifndef GW_PROVIDERS_ADVICE_H
#define GW_PROVIDERS_ADVICE_H

#include "agents/agent.h"

/*
 * Rewrites the detail of a helper's error for users of the gateway: who failed, why, and what to do next. If the helper
 * names its own options and parameters, the gateway's names replace them. The code stays.
 */
void gw_advise(const struct gw_model_ref *model, struct fm_error *error);

#endif
