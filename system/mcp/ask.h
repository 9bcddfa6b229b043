/*
 * Asks the user before something is closed, where the client can (2026-07-28, "Multi Round-Trip Requests"): the answer
 * to the call is a question with a state; the client repeats the call with the user's answer and that state. A client
 * that does not say that it can ask is not asked: it has the tools' hints.
 */
#ifndef SY_MCP_ASK_H
#define SY_MCP_ASK_H

#include "mcp/caller.h"

/*
 * FM_OK with `caller->asks` false: the plan may run. True: the user is to be asked, by sy_ask_write.
 * FM_INVALID_REQUEST: the user said no, or the state is not that of this question (commands/confirm.h).
 */
FM_MUST_USE enum fm_code sy_ask(struct sy_caller *caller, const struct sy_request *request, const struct sy_plan *plan,
                                struct fm_error *error);

/* Writes the members of the question into the result. */
void sy_ask_write(struct sy_caller *caller, struct fm_json_writer *w);

#endif
