/* Has the table of requests about the desktop, and opens and frees the desktop. Each request gets exactly one line
 * back. */
#include "mcp/caller.h"

#include <string.h>

static const struct row {
    const char *method;
    sy_answer *answer;
    enum sy_keep keep;
} rows[] = {
    {"tools/call", sy_tools_call, SY_KEEP_NOT},
    {"resources/read", sy_resources_read, SY_KEEP_NEVER},
    {"prompts/get", sy_prompts_get, SY_KEEP_NOT},
};

enum fm_code sy_caller_open(struct sy_caller *caller, struct fm_error *error) {
    if (!caller->open) {
        enum fm_code code =
            caller->open_desktop(caller->open_context, caller->cancel_fd, &caller->world.desktop, error);
        if (code != FM_OK) {
            return code;
        }
        caller->open = true;
        fm_buf_init(&caller->question, SY_REPLY_MAX);
#ifdef SY_GLIB
        sy_confirm_init(&caller->confirm);
#endif
        if (caller->furnish) {
            caller->furnish(caller->open_context, caller->cancel_fd, &caller->world);
        }
    }
    return FM_OK;
}

void sy_caller_answer(struct sy_caller *caller, const struct sy_request *request, struct fm_buf *reply) {
    struct sy_fault fault = {.code = 0};
    const struct row *row = rows;
    while (strcmp(row->method, request->method) != 0) {
        row++;
    }
    struct fm_json_writer w = sy_result_begin(reply, request, row->keep);
    caller->asks = false;
    caller->forged = false;
    bool done = row->answer(caller, request, &w, &fault);
    sy_result_end(reply, request, caller->asks ? "input_required" : "complete", &w);
    if (done && reply->failed) {
        done = sy_fail(&fault, FM_RPC_INTERNAL, "the answer has more than %u bytes", SY_REPLY_MAX);
    }
    if (!done) {
        fm_buf_reset(reply);
        sy_write_fault(reply, &request->id, request->era, &fault);
    }
}

void sy_caller_close(struct sy_caller *caller) {
    sy_world_free(&caller->world);
    fm_buf_free(&caller->question);
    if (caller->open) {
        if (caller->dismiss) {
            caller->dismiss(caller->open_context);
        }
        caller->world.desktop.backend->free(caller->world.desktop.self);
        caller->open = false;
    }
}
