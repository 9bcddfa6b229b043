/*
 * One job that embeds. Each text is computed by itself, with an empty memory and always in the same pieces. So its
 * vector is the same to the last bit, whatever else the job has and whatever came before: the results of a batch depend
 * on everything in it.
 */
#include "engine/llama/embed.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct text {
    llama_token *tokens; /* owned */
    size_t count;
};

struct embedding {
    struct fm_llama_model *model;
    struct fm_kit_job *job;
    struct text *texts; /* owned; one for each input */
    struct llama_batch batch;
    int64_t processed; /* tokens of all texts so far */
    struct fm_error error;
};

/* llama.cpp calls this between the operations of a batch, which may take a minute, on this thread. */
static bool abort_asked(void *argument) {
    struct embedding *run = argument;
    return !fm_kit_job_go_on(run->job, run->processed, 0);
}

static enum fm_reason fail_no_memory(struct embedding *run) {
    (void)fm_fail_no_memory(&run->error);
    return FM_REASON_ERROR;
}

/* Turns the texts into tokens, `*sum` in all. Nothing is computed before it is known that all texts fit. */
static enum fm_reason read_texts(struct embedding *run, int64_t *sum) {
    const struct fm_kit_job *job = run->job;
    *sum = 0;
    for (size_t i = 0; i < job->input_count; i++) {
        struct text *text = &run->texts[i];
        if (fm_kit_job_aborted(job)) {
            return FM_REASON_ABORTED;
        }
        enum fm_code code =
            fm_prompter_input_tokens(&run->model->prompter, job->inputs[i].text, job->inputs[i].len,
                                     run->model->context_length, &text->tokens, &text->count, &run->error);
        if (code != FM_OK) {
            snprintf(run->error.param, sizeof run->error.param, "embed[%zu]", i);
            return FM_REASON_ERROR;
        }
        *sum += (int64_t)text->count;
    }
    return FM_REASON_NONE;
}

/* Computes `count` tokens of a text, from `from` on. */
static enum fm_reason compute_chunk(struct embedding *run, const struct text *text, size_t from, size_t count) {
    struct llama_context *context = run->model->context;
    struct llama_batch *batch = &run->batch;
    batch->n_tokens = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        batch->token[i] = text->tokens[from + i];
        batch->pos[i] = (llama_pos)(from + i);
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = 0;
        batch->logits[i] = true; /* all states are pooled */
    }
    int32_t status = fm_llama_model_compute(run->model, batch, !llama_get_memory(context));
    if (status == 0) {
        run->processed += (int64_t)count;
        return FM_REASON_NONE;
    }
    if (status == FM_COMPUTE_ABORTED) {
        return FM_REASON_ABORTED;
    }
    fm_log(FM_LOG_ERROR, "llama_decode: %d", (int)status);
    (void)fm_fail(&run->error, FM_INTERNAL, "the model could not be evaluated");
    return FM_REASON_ERROR;
}

static enum fm_reason embed_text(struct embedding *run, const struct text *text) {
    size_t chunk = run->model->chunk;
    enum fm_reason reason = FM_REASON_NONE;
    llama_memory_t memory = llama_get_memory(run->model->context);
    if (memory) {
        llama_memory_clear(memory, false);
    }
    for (size_t at = 0; at < text->count && !reason; at += chunk) {
        size_t left = text->count - at;
        if (at > 0) {
            fm_kit_job_progress(run->job, run->processed, 0);
        }
        reason = compute_chunk(run, text, at, left < chunk ? left : chunk);
    }
    float *vector = reason ? NULL : llama_get_embeddings_seq(run->model->context, 0);
    if (!reason && !vector) {
        (void)fm_fail(&run->error, FM_INTERNAL, "the model gave no vector");
        return FM_REASON_ERROR;
    }
    return reason ? reason : fm_kit_job_embedding(run->job, vector, &run->error);
}

static enum fm_reason embed_all(struct embedding *run) {
    int64_t tokens;
    if (!run->job->inputs) {
        (void)fm_fail(&run->error, FM_INVALID_REQUEST, "this model embeds texts; it does not generate any");
        snprintf(run->error.param, sizeof run->error.param, "model");
        return FM_REASON_ERROR;
    }
    run->texts = calloc(run->job->input_count, sizeof *run->texts);
    if (!run->texts || !run->batch.token) {
        return fail_no_memory(run);
    }
    enum fm_reason reason = read_texts(run, &tokens);
    if (reason) {
        return reason;
    }
    run->job->dimension = (size_t)llama_model_n_embd_out(run->model->weights);
    reason = fm_kit_job_accept(run->job, tokens);
    for (size_t i = 0; !reason; i++) { /* the vector of the last text ends the job */
        reason = embed_text(run, &run->texts[i]);
    }
    return reason;
}

void fm_embed(struct fm_llama_model *model, struct fm_kit_job *job) {
    struct embedding run = {.model = model, .job = job, .batch = llama_batch_init((int32_t)model->chunk, 0, 1)};
    int64_t start = fm_now_ms();
    fm_llama_model_watch(model, abort_asked, &run);
    enum fm_reason reason = embed_all(&run);
    fm_llama_model_watch(model, NULL, NULL);
    for (size_t i = 0; run.texts && i < job->input_count; i++) {
        free(run.texts[i].tokens);
    }
    free(run.texts);
    llama_batch_free(run.batch);
    fm_log(FM_LOG_INFO, "job %lld: %zu of %zu texts, %lld tokens, %lld ms", (long long)job->id, job->embedded,
           job->input_count, (long long)run.processed, (long long)(fm_now_ms() - start));
    fm_kit_job_finish(job, reason, &run.error);
}
