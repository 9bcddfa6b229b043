/*
 * Asks the user before something is closed, if the client supports that (2026-07-28, "Multi Round-Trip Requests"). The
 * answer to the call is a question with a state. The client then repeats the call with the user's answer and that
 * state. A client that can't ask gets no question; it only has the hints of the tools.
 */
#ifndef SY_MCP_ASK_H
#define SY_MCP_ASK_H

#include "mcp/caller.h"

/*
 * FM_OK: if `caller->asks` is false, the plan may run; if it is true, the user must be asked, by sy_ask_write.
 * FM_INVALID_REQUEST: the user said no, or the state does not belong to this question (commands/confirm.h).
 */
FM_MUST_USE enum fm_code sy_ask(struct sy_caller *caller, const struct sy_request *request, const struct sy_plan *plan,
                                struct fm_error *error);

/* Writes the members of the question into the result. */
void sy_ask_write(struct sy_caller *caller, struct fm_json_writer *w);

#endif
