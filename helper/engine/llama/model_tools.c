/* A loaded model in the form that tools.h and thoughts.h need: its chat template with its vocabulary. */
#include "base/log.h"
#include "engine/llama/model.h"
#include "engine/llama/tokens.h"

static enum fm_code render(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                           struct fm_error *error) {
    const struct fm_prompter *prompter = argument;
    return fm_templates_apply(prompter->templates, chat, text, len, error);
}

static size_t control(const void *argument, const char *text, size_t len, int32_t *token, bool *ends_turn) {
    const struct fm_prompter *prompter = argument;
    const struct fm_control_text *found = fm_prompter_control(prompter, text, len);
    if (!found) {
        return 0;
    }
    *token = found->token;
    *ends_turn = llama_vocab_is_eog(prompter->vocab, found->token);
    return found->len;
}

static bool is_token(const void *argument, const char *text) {
    const struct fm_prompter *prompter = argument;
    return fm_token_of(prompter->vocab, text) != LLAMA_TOKEN_NULL;
}

struct fm_tool_template fm_llama_model_template(const struct fm_llama_model *model) {
    return (struct fm_tool_template){
        .render = render, .control = control, .is_token = is_token, .argument = &model->prompter};
}

enum fm_code fm_llama_model_thought_form(struct fm_llama_model *model, const struct fm_thought_form **form,
                                         struct fm_error *error) {
    const struct fm_tool_template from = fm_llama_model_template(model);
    *form = &model->thought_form;
    if (!model->thought_form_read) {
        enum fm_code code = fm_thought_form_read(&from, &model->thought_form, error);
        if (code != FM_OK) {
            return code;
        }
        model->thought_form_read = true;
        const struct fm_thought_form *read = &model->thought_form;
        model->prompter.text_end = read->ends_texts ? read->text_end : LLAMA_TOKEN_NULL;
        fm_log(FM_LOG_INFO, "thoughts: %s%s%s", read->thinks ? read->begin : "none", read->thinks ? " " : "",
               read->end);
    }
    return FM_OK;
}

enum fm_code fm_llama_model_tool_form(struct fm_llama_model *model, const struct fm_kit_job *job,
                                      const struct fm_tool_form **form, struct fm_error *error) {
    const struct fm_tool_template from = fm_llama_model_template(model);
    *form = &fm_tool_form_own;
    if (!fm_kit_job_uses_tools(job)) {
        return FM_OK;
    }
    if (!model->tool_form_read) {
        const struct fm_thought_form *thoughts;
        enum fm_code code = fm_llama_model_thought_form(model, &thoughts, error);
        if (code == FM_OK) {
            const struct fm_tool_turn turn = {thoughts->begin, thoughts->end, thoughts->lead};
            code = fm_tool_form_read(&from, &turn, &model->tool_form, error);
        }
        if (code != FM_OK) {
            return code;
        }
        model->tool_form_read = true;
        fm_log(FM_LOG_INFO, "tools: %s", model->tool_form.native ? "in the model's own form" : "in our form");
    }
    *form = fm_tool_form_for(&model->tool_form, &from, job);
    return FM_OK;
}
