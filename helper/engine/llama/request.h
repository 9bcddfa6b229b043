/* What is known of a job's request before anything is computed: its prompt as tokens, and its images. */
#ifndef FM_ENGINE_LLAMA_REQUEST_H
#define FM_ENGINE_LLAMA_REQUEST_H

#include "engine/kit/kit.h"
#include "engine/llama/model.h"

struct fm_llama_request {
    struct fm_llama_model *model; /* borrowed */
    struct fm_kit_job *job;       /* borrowed */
    fm_image_go_on *go_on;        /* called with `state` while the request is read */
    void *state;
    const struct fm_tool_form *form;            /* how it calls tools; the model's */
    const struct fm_thought_form *thought_form; /* how the model thinks; NULL: it does not */
    enum fm_thought_state thought_state;        /* the state in which the answer begins */
    struct fm_pictures pictures;                /* owned */
    struct fm_prompt prompt;                    /* owned */
};

/*
 * Reads `job`. Engine thread; blocks as long as it takes, and calls `go_on` meanwhile. FM_CANCELLED when that returned
 * false; otherwise the errors of fm_prompter_tokens and of images, with the param that is wrong. Free it either way.
 */
FM_MUST_USE enum fm_code fm_llama_request_read(struct fm_llama_request *request, struct fm_llama_model *model,
                                               struct fm_kit_job *job, fm_image_go_on *go_on, void *state,
                                               struct fm_error *error);

/* Replaces the prompt by that of the messages that the job has now. The errors are those of fm_llama_request_read. */
FM_MUST_USE enum fm_code fm_llama_request_make_prompt(struct fm_llama_request *request, struct fm_error *error);
void fm_llama_request_free(struct fm_llama_request *request);

#endif
