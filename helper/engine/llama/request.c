/* Turns a job's messages and images into a prompt: request.h. */
#include "engine/llama/request.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the prompt ---- */

/* The tokens of the first arrangement of `chat` that the template takes. */
static enum fm_code arrange(const struct fm_llama_request *request, const struct fm_chat *chat, size_t context,
                            struct fm_prompt_thought *thought, struct fm_prompt *made, struct fm_error *error) {
    const struct fm_tool_template from = fm_llama_model_template(request->model);
    struct fm_turns turns;
    enum fm_code code = fm_turns_init(&turns, chat, &request->model->turns, error);
    if (code != FM_OK) {
        return code;
    }
    do {
        code = fm_turns_next(&turns, &from, error);
        if (code != FM_OK) {
            break;
        }
        code = fm_prompter_tokens(&request->model->prompter, &turns.chat, &request->pictures, context, thought, made,
                                  error);
    } while (code == FM_INVALID_REQUEST);
    fm_turns_free(&turns);
    return code;
}

/* fm_kit_job_fit_fn: replaces the prompt if the new one fits. FM_CANCELLED: an abort was requested meanwhile. */
static enum fm_code fit_messages(void *state, size_t reserve, struct fm_error *error) {
    struct fm_llama_request *request = state;
    struct fm_llama_model *model = request->model;
    struct fm_prompt_thought thought = {.job = request->job};
    struct fm_tool_prompt prompt;
    struct fm_prompt made;
    if (!request->go_on(request->state)) {
        return fm_fail(error, FM_CANCELLED, "the job was aborted");
    }
    enum fm_code code = fm_llama_model_thought_form(model, &thought.form, error);
    code = code ? code : fm_tool_prompt_init(&prompt, request->job, request->form, error);
    if (code != FM_OK) {
        return code;
    }
    fm_thought_ask(thought.form, request->job, &prompt.chat);
    code = arrange(request, &prompt.chat, model->context_length + 1 - reserve, &thought, &made, error);
    fm_tool_prompt_free(&prompt);
    if (code == FM_OK) {
        fm_prompt_free(&request->prompt);
        request->prompt = made;
        request->thought_form = thought.form;
        request->thought_state = thought.state;
    }
    return code;
}

static enum fm_code make_prompt(struct fm_llama_request *request, struct fm_error *error) {
    const struct fm_kit_job *job = request->job;
    const struct fm_llama_model *model = request->model;
    if (job->prompt) {
        return fm_prompter_plain_tokens(&model->prompter, job->prompt, job->prompt_len, job->suffix, job->suffix_len,
                                        model->context_length, &request->prompt.tokens, &request->prompt.count, error);
    }
    return fm_kit_job_fit(request->job, model->context_length, fit_messages, request, error);
}

/* A template that refuses calls in these messages may take them in our form, in which they are ordinary messages. */
enum fm_code fm_llama_request_make_prompt(struct fm_llama_request *request, struct fm_error *error) {
    enum fm_code code = make_prompt(request, error);
    if (code == FM_INVALID_REQUEST && request->form->native) {
        request->form = &fm_tool_form_own;
        *error = (struct fm_error){.code = FM_OK};
        code = make_prompt(request, error);
    }
    return code;
}

/* ---- images ---- */

/* Only looks at each image: it is not known yet which turns stay. */
static enum fm_code look_at_images(struct fm_llama_request *request, struct fm_error *error) {
    const struct fm_kit_job *job = request->job;
    enum fm_code code = FM_OK;
    if (job->image_count == 0) {
        return FM_OK;
    }
    request->pictures.list = calloc(job->image_count, sizeof(struct fm_picture *));
    if (!request->pictures.list) {
        return fm_fail_no_memory(error);
    }
    request->pictures.count = job->image_count;
    for (size_t i = 0; i < job->message_count; i++) {
        for (size_t k = 0; k < job->messages[i].image_count && code == FM_OK; k++) {
            if (!request->go_on(request->state)) {
                return fm_fail(error, FM_CANCELLED, "the job was aborted");
            }
            const struct fm_image *image = &job->messages[i].images[k];
            code = fm_picture_new(request->model->vision, image, &request->pictures.list[image->index], error);
        }
    }
    return code;
}

static enum fm_code refuse_span(const struct fm_llama_request *request, const struct fm_span *span,
                                struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST, "the image takes %zu tokens at once, %u are the most with this model",
            span->count, request->model->batch_size);
    snprintf(error->param, sizeof error->param, "images[%zu]", span->image);
    return error->code;
}

/* Checks the images of the prompt: a damaged one is a bad request, so it must be found before the job is accepted. */
static enum fm_code check_images(struct fm_llama_request *request, struct fm_error *error) {
    const struct fm_llama_model *model = request->model;
    const struct fm_prompt *prompt = &request->prompt;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < prompt->span_count && code == FM_OK; i++) {
        const struct fm_span *span = &prompt->spans[i];
        bool again = i > 0 && prompt->spans[i - 1].image == span->image;
        if (span->count > model->batch_size && fm_vision_needs_whole_spans(model->vision)) {
            return refuse_span(request, span, error);
        }
        code = again ? FM_OK
                     : fm_picture_check(request->pictures.list[span->image], request->go_on, request->state, error);
    }
    return code;
}

/* ---- all of it ---- */

enum fm_code fm_llama_request_read(struct fm_llama_request *request, struct fm_llama_model *model,
                                   struct fm_kit_job *job, fm_image_go_on *go_on, void *state, struct fm_error *error) {
    *request = (struct fm_llama_request){
        .model = model, .job = job, .go_on = go_on, .state = state, .thought_state = FM_THOUGHT_OVER};
    if (job->inputs) {
        (void)fm_fail(error, FM_INVALID_REQUEST, "this model generates text and gives no embeddings: name one that does, "
                                                 "such as Qwen3-Embedding or all-MiniLM");
        snprintf(error->param, sizeof error->param, "model");
        return error->code;
    }
    enum fm_code code = fm_llama_model_tool_form(model, job, &request->form, error);
    code = code ? code : look_at_images(request, error);
    code = code ? code : fm_llama_request_make_prompt(request, error);
    return code ? code : check_images(request, error);
}

void fm_llama_request_free(struct fm_llama_request *request) {
    fm_prompt_free(&request->prompt);
    for (size_t i = 0; i < request->pictures.count; i++) {
        fm_picture_free(request->pictures.list[i]);
    }
    free(request->pictures.list);
    request->pictures = (struct fm_pictures){0};
}
