/* The tool `match`: turns what a user said into a request for run_commands. It asks no model, because the caller is a
 * model. */
#include "commands/table.h"
#include "match/match.h"
#include "mcp/tools.h"

#include <json-c/json.h>

static const struct sy_param params[] = {
    {"words", SY_STRING, true, NULL, "what the user said, in English"},
    {NULL, SY_STRING, false, NULL, NULL},
};
/* `match` is checked and described like a command, but it can't be a command of a request. */
static const struct sy_command shape = {.type = SY_MATCH, .params = params, .reads = true};

void sy_write_match_schema(const struct sy_policy *policy, struct fm_json_writer *w) {
    (void)policy;
    sy_write_input_schema(&shape, w);
}

bool sy_call_match(struct sy_caller *caller, const struct sy_request *request, struct json_object *args,
                   struct fm_json_writer *w) {
    struct fm_error error;
    struct fm_buf text;
    (void)request;
    fm_buf_init(&text, SY_REPLY_MAX);
    struct fm_json_writer on_text = fm_json_writer_on(&text);
    enum fm_code code = sy_check_params(&shape, args, "", &error);
    if (code == FM_OK) {
        const char *words = json_object_get_string(json_object_object_get(args, "words"));
        code = sy_match_now(&caller->world, words, NULL, &on_text, NULL, &error);
    }
    bool ok = sy_write_outcome(code ? NULL : &text, code ? &error : NULL, w);
    fm_buf_free(&text);
    return ok;
}
