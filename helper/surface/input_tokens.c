/*
 * responses.input_tokens counts the tokens of a Responses request's input. Writes the members of the result, besides
 * `ok`. There is no stream: the count is known when the engine has accepted the prompt, and nothing else follows.
 */
#include "surface/answer.h"
#include "surface/request.h"

static void input_tokens_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key_str(w, "object", "response.input_tokens");
    fm_json_key_count(w, "input_tokens", answer->usage.input);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
}

const struct fm_surface fm_surface_input_tokens = {
    .id_prefix = "count_",
    .parse = fm_input_tokens_parse,
    .write = input_tokens_write,
};
