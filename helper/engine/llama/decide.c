/* Decides questions by the likelihoods of their choices: decide.h. */
#include "engine/llama/decide.h"
#include "engine/llama/cache.h"
#include "engine/llama/logprobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGPROB_MIN (-9999) /* in place of the logarithm of 0 */
#define LOGITS_MAX  16u     /* tokens of a batch whose logits are wanted; each takes 600 kB if the vocabulary is large */

/* ---- prompts ---- */

static size_t common_prefix(const llama_token *a, size_t a_count, const llama_token *b, size_t b_count) {
    size_t i = 0;
    while (i < a_count && i < b_count && a[i] == b[i]) {
        i++;
    }
    return i;
}

/* fm_image_go_on, for prompts that are made between two batches. */
static bool goes_on(void *job) {
    return !fm_kit_job_aborted(job);
}

static enum fm_code make_prompt(const struct fm_decide *decide, const char *text, size_t len, struct fm_error *error) {
    fm_kit_job_ask(decide->request->job, text, len);
    return fm_llama_request_make_prompt(decide->request, error);
}

static enum fm_code find_shared(struct fm_decide *decide, struct fm_error *error) {
    const struct fm_prompt *prompt = &decide->request->prompt;
    enum fm_code code = make_prompt(decide, "?", 1, error);
    if (code != FM_OK) {
        return code;
    }
    decide->shared_count = prompt->count;
    decide->shared = malloc(prompt->count * sizeof *decide->shared);
    if (!decide->shared) {
        return fm_fail_no_memory(error);
    }
    memcpy(decide->shared, prompt->tokens, prompt->count * sizeof *decide->shared);
    code = make_prompt(decide, "!", 1, error);
    decide->shared_count = common_prefix(decide->shared, decide->shared_count, prompt->tokens, prompt->count);
    return code;
}

static const struct fm_question *find_longest(const struct fm_kit_job *job) {
    const struct fm_question *longest = job->questions;
    for (size_t i = 1; i < job->question_count; i++) {
        longest = job->questions[i].text.len > longest->text.len ? &job->questions[i] : longest;
    }
    return longest;
}

enum fm_code fm_decide_begin(struct fm_llama_request *request, struct fm_decide **decide, struct fm_error *error) {
    struct fm_decide *made = calloc(1, sizeof *made);
    *decide = NULL;
    if (!made) {
        return fm_fail_no_memory(error);
    }
    made->request = request;
    made->question = SIZE_MAX; /* the next one is the first */
    const struct fm_input *longest = &find_longest(request->job)->text;
    enum fm_code code = find_shared(made, error);
    code = code ? code : make_prompt(made, longest->text, longest->len, error);
    if (code != FM_OK) {
        fm_decide_free(made);
        return code;
    }
    request->go_on = goes_on;
    request->state = request->job;
    *decide = made;
    return FM_OK;
}

/* ---- choices ---- */

static void free_choices(struct fm_decide *decide) {
    for (size_t i = 0; i < FM_QUESTION_CHOICES_MAX; i++) {
        free(decide->choices[0][i].tokens);
        free(decide->choices[1][i].tokens);
    }
    memset(decide->choices, 0, sizeof decide->choices);
}

void fm_decide_free(struct fm_decide *decide) {
    if (decide) {
        free_choices(decide);
        free(decide->shared);
        free(decide->rest);
        free(decide);
    }
}

static const struct fm_question *asked_now(const struct fm_decide *decide) {
    return &decide->request->job->questions[decide->question];
}

/*
 * In some vocabularies (SentencePiece) most words have a space in front, and so has the first word of an answer. So
 * these have a second variant of each choice.
 */
static size_t variants(const struct fm_decide *decide) {
    return llama_vocab_type(decide->request->model->prompter.vocab) == LLAMA_VOCAB_TYPE_SPM ? 2 : 1;
}

static enum fm_code tokenize(const struct fm_decide *decide, const struct fm_input *choice, bool space,
                             struct fm_choice_tokens *made, struct fm_error *error) {
    char *text = malloc(choice->len + 1);
    if (!text) {
        return fm_fail_no_memory(error);
    }
    text[0] = ' ';
    memcpy(text + space, choice->text, choice->len);
    enum fm_code code = fm_prompter_text_tokens(&decide->request->model->prompter, text, choice->len + space,
                                                &made->tokens, &made->count, error);
    free(text);
    return code == FM_OK && made->count == 0
               ? fm_fail(error, FM_INVALID_REQUEST, "the model has no token for one of the choices")
               : code;
}

static enum fm_code read_choices(struct fm_decide *decide, struct fm_error *error) {
    const struct fm_question *question = asked_now(decide);
    enum fm_code code = FM_OK;
    size_t longest = 0;
    free_choices(decide);
    for (size_t v = 0; v < variants(decide); v++) {
        for (size_t i = 0; i < question->choice_count && code == FM_OK; i++) {
            struct fm_choice_tokens *choice = &decide->choices[v][i];
            code = tokenize(decide, &question->choices[i], v == 1, choice, error);
            longest = choice->count > longest ? choice->count : longest;
        }
    }
    if (code == FM_OK && longest > decide->room) {
        double *rest = realloc(decide->rest, longest * sizeof *rest);
        decide->rest = rest ? rest : decide->rest;
        decide->room = rest ? longest : decide->room;
        code = rest ? FM_OK : fm_fail_no_memory(error);
    }
    if (code == FM_OK && decide->asked + longest > decide->request->model->context_length) {
        code = fm_fail(error, FM_CONTEXT_OVERFLOW,
                       "the text, a question and its longest choice have %zu tokens; the context has %zu",
                       decide->asked + longest, (size_t)decide->request->model->context_length);
    }
    if (code == FM_INVALID_REQUEST) {
        snprintf(error->param, sizeof error->param, "questions[%zu]", decide->question);
    }
    return code;
}

/* ---- questions ---- */

/* What must come before the text of an answer without a thought; NULL: nothing. */
static const char *opening_of(const struct fm_llama_request *request) {
    const struct fm_thought_form *form = request->thought_form;
    if (!form || !form->thinks || request->thought_state == FM_THOUGHT_OVER) {
        return NULL;
    }
    bool inside = request->thought_state == FM_THOUGHT_BEGUN || request->thought_state == FM_THOUGHT_INSIDE;
    return inside ? form->end : form->lead[0] ? form->lead : NULL;
}

static enum fm_code add_mark(const struct fm_decide *decide, const char *mark, llama_token *tokens, size_t *count,
                             struct fm_error *error) {
    llama_token *more;
    size_t more_count;
    const struct fm_llama_model *model = decide->request->model;
    enum fm_code code = fm_prompter_mark_tokens(&model->prompter, mark, &more, &more_count, error);
    if (code != FM_OK) {
        return code;
    }
    size_t room = model->context_length - *count;
    more_count = more_count < room ? more_count : room; /* if there is no room, the choices have none either */
    memcpy(tokens + *count, more, more_count * sizeof *tokens);
    *count += more_count;
    free(more);
    return FM_OK;
}

static enum fm_code add_opening(const struct fm_decide *decide, llama_token *tokens, size_t *count,
                                struct fm_error *error) {
    const struct fm_llama_request *request = decide->request;
    const char *opening = opening_of(request);
    enum fm_code code = opening ? add_mark(decide, opening, tokens, count, error) : FM_OK;
    bool gap = opening && opening == request->thought_form->end && request->thought_form->gap[0];
    return code || !gap ? code : add_mark(decide, request->thought_form->gap, tokens, count, error);
}

enum fm_code fm_decide_next(struct fm_decide *decide, llama_token *tokens, size_t *count, struct fm_error *error) {
    const struct fm_prompt *prompt = &decide->request->prompt;
    decide->question++;
    enum fm_code code = make_prompt(decide, asked_now(decide)->text.text, asked_now(decide)->text.len, error);
    if (code != FM_OK) {
        return code;
    }
    memcpy(tokens, prompt->tokens, prompt->count * sizeof *tokens);
    *count = prompt->count;
    code = add_opening(decide, tokens, count, error);
    decide->asked = *count;
    decide->variant = 0;
    decide->choice = 0;
    decide->input += (int64_t)(decide->question == 0 ? *count : *count - decide->shared_count);
    return code ? code : read_choices(decide, error);
}

/* ---- likelihoods ---- */

size_t fm_decide_limit(const struct fm_decide *decide, size_t from, size_t count) {
    const size_t first = from + 1 > decide->asked ? from : decide->asked - 1; /* whose logits are wanted */
    const size_t most = first + LOGITS_MAX - from;
    bool over = from < decide->shared_count && from + count > decide->shared_count;
    count = over ? decide->shared_count - from : count;
    return count < most ? count : most;
}

bool fm_decide_wants(const struct fm_decide *decide, size_t index) {
    return index + 1 >= decide->asked;
}

/* Takes the logits after the question: the first token of all choices, in the variant that the model prefers. */
static void take_first(struct fm_decide *decide, const float *logits, double sum) {
    double likely[2] = {0, 0};
    for (size_t v = 0; v < variants(decide); v++) {
        for (size_t i = 0; i < asked_now(decide)->choice_count; i++) {
            decide->first[v][i] = (double)logits[decide->choices[v][i].tokens[0]] - sum;
            likely[v] += exp(decide->first[v][i]);
        }
    }
    decide->variant = likely[1] > likely[0];
}

void fm_decide_take(struct fm_decide *decide, const llama_token *tokens, size_t count, size_t index,
                    const float *logits) {
    size_t size = (size_t)llama_vocab_n_tokens(decide->request->model->prompter.vocab);
    double sum = fm_llama_log_sum_exp(logits, size);
    if (index + 1 == decide->asked) {
        take_first(decide, logits, sum);
        return;
    }
    /* `tokens` has a choice without its last token */
    const struct fm_choice_tokens *choice = &decide->choices[decide->variant][decide->choice];
    llama_token next = index + 1 < count ? tokens[index + 1] : choice->tokens[choice->count - 1];
    decide->rest[index - decide->asked] = (double)logits[next] - sum;
}

static bool is_beginning(const struct fm_choice_tokens *a, const struct fm_choice_tokens *b) {
    return a->count < b->count && memcmp(a->tokens, b->tokens, a->count * sizeof *a->tokens) == 0;
}

/* Whether no choice is between `a` and `b`, which begins with `a`. */
static bool is_nearest(const struct fm_choice_tokens *list, size_t count, size_t a, size_t b) {
    for (size_t i = 0; i < count; i++) {
        if (is_beginning(&list[a], &list[i]) && is_beginning(&list[i], &list[b])) {
            return false;
        }
    }
    return true;
}

/* An answer that begins with a longer choice is not one that begins with its first tokens, which are a choice too. */
static double without_longer(const struct fm_decide *decide, size_t index) {
    const struct fm_choice_tokens *list = decide->choices[decide->variant];
    size_t count = asked_now(decide)->choice_count;
    double likely = exp(decide->logprobs[index]);
    bool longer = false;
    for (size_t i = 0; i < count; i++) {
        if (is_beginning(&list[index], &list[i]) && is_nearest(list, count, index, i)) {
            likely -= exp(decide->logprobs[i]);
            longer = true;
        }
    }
    return !longer ? decide->logprobs[index] : likely > 0 ? log(likely) : LOGPROB_MIN;
}

static enum fm_reason report(struct fm_decide *decide, struct fm_error *error) {
    double logprobs[FM_QUESTION_CHOICES_MAX];
    for (size_t i = 0; i < asked_now(decide)->choice_count; i++) {
        double logprob = without_longer(decide, i);
        logprobs[i] = logprob > 0 ? 0 : logprob < LOGPROB_MIN ? LOGPROB_MIN : logprob;
    }
    return fm_kit_job_decision(decide->request->job, logprobs, error);
}

/* ---- the next tokens ---- */

/* Notes the likelihood of the choice whose tokens are computed. */
static void end_choice(struct fm_decide *decide) {
    const struct fm_choice_tokens *choice = &decide->choices[decide->variant][decide->choice];
    double sum = decide->first[decide->variant][decide->choice];
    for (size_t i = 0; i + 1 < choice->count; i++) {
        sum += decide->rest[i];
    }
    decide->logprobs[decide->choice++] = sum;
}

enum fm_reason fm_decide_step(struct fm_decide *decide, struct fm_cached *cached, llama_token *tokens, size_t *count,
                              struct fm_error *error) {
    const struct fm_question *question = asked_now(decide);
    const struct fm_choice_tokens *list = decide->choices[decide->variant];
    bool computed = *count > decide->asked;
    while (decide->choice < question->choice_count && (computed || list[decide->choice].count == 1)) {
        end_choice(decide);
        computed = false;
    }
    if (decide->choice < question->choice_count) {
        const struct fm_choice_tokens *choice = &list[decide->choice];
        fm_cached_cut(cached, decide->asked);
        memcpy(tokens + decide->asked, choice->tokens, (choice->count - 1) * sizeof *tokens);
        *count = decide->asked + choice->count - 1;
        decide->input += (int64_t)choice->count - 1;
        return FM_REASON_NONE;
    }
    enum fm_reason reason = report(decide, error);
    if (reason) {
        return reason;
    }
    if (fm_decide_next(decide, tokens, count, error) != FM_OK) {
        return error->code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
    }
    size_t shared = common_prefix(decide->shared, decide->shared_count, tokens, *count);
    fm_cached_cut(cached, shared == decide->shared_count ? shared : 0);
    return FM_REASON_NONE;
}
