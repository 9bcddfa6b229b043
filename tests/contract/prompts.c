/*
 * Prints the prompts that the llama engine makes, as text. Reads requests, one a line, and answers each with a line.
 *
 *     {"model": GGUF file, "template": file, ...the members of job.start}
 *     {"prompt": text, "native": the calls are in the template's own form, "thinks": it has a form of thoughts,
 *      "begins": where the answer begins: "text", "thought" (the prompt has opened one) or "either"}
 *     {"error": code, "detail": text, "param": text}
 *
 * With "own": true or "closed": true the prompt is only the template's own text, with calls as the template writes
 * them. With "closed", the conversation needs no answer. Only the vocabulary of the model is read, once for consecutive
 * lines that name the same model. Control tokens are written as their text. For tests/contract/scripted.py.
 */
#include "base/file.h"
#include "engine/kit/job_read.h"
#include "engine/llama/request.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX    (64u * 1024u * 1024u) /* bytes of a template or a prompt */
#define CONTEXT     (1u << 20)            /* tokens: no prompt of the tests has as many */
#define PIECE_MAX   512                   /* bytes of a token */
#define BEGIN_COUNT 5

static const char *const begins[BEGIN_COUNT] = {
    [FM_THOUGHT_AT_START] = "either", [FM_THOUGHT_BEGUN] = "thought", [FM_THOUGHT_INSIDE] = "thought",
    [FM_THOUGHT_AFTER] = "text",      [FM_THOUGHT_OVER] = "text",
};

/* The members of a request that job.start does not have. */
static const char *const ours[] = {"model", "template", "own", "closed"};

/* A vocabulary with a template, and the files that they come from. */
struct subject {
    struct fm_llama_model model;
    char model_path[1024];
    char template_path[1024];
};

static bool always(void *unused) {
    (void)unused;
    return true;
}

static void on_log(enum ggml_log_level level, const char *text, void *unused) {
    (void)level;
    (void)text;
    (void)unused;
}

/* ---- the subject ---- */

static void forget_template(struct subject *subject) {
    fm_tool_form_free(&subject->model.tool_form);
    fm_prompter_free(&subject->model.prompter);
    subject->model.tool_form_read = subject->model.thought_form_read = false;
    subject->model.turns = (struct fm_turns_memory){.next = 0};
    subject->template_path[0] = '\0';
}

static void forget(struct subject *subject) {
    forget_template(subject);
    llama_model_free(subject->model.weights);
    *subject = (struct subject){.model = {.context_length = CONTEXT}};
}

static enum fm_code take_model(struct subject *subject, const char *path, struct fm_error *error) {
    if (strcmp(path, subject->model_path) == 0) {
        return FM_OK;
    }
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    forget(subject);
    subject->model.weights = llama_model_load_from_file(path, params);
    if (!subject->model.weights) {
        return fm_fail(error, FM_UNAVAILABLE, "no vocabulary: %s", path);
    }
    snprintf(subject->model_path, sizeof subject->model_path, "%s", path);
    return FM_OK;
}

static enum fm_code take_template(struct subject *subject, const char *path, struct fm_error *error) {
    struct fm_buf source;
    if (strcmp(path, subject->template_path) == 0) {
        return FM_OK;
    }
    forget_template(subject);
    fm_buf_init(&source, TEXT_MAX);
    enum fm_code code = fm_file_read(path, &source, error);
    fm_buf_append(&source, "", 1);
    code = code ? code : fm_prompter_init(&subject->model.prompter, subject->model.weights, source.data, error);
    fm_buf_free(&source);
    if (code == FM_OK) {
        snprintf(subject->template_path, sizeof subject->template_path, "%s", path);
    }
    return code;
}

/* ---- a line ---- */

static void write_prompt(const struct fm_llama_request *request, struct fm_json_writer *w) {
    const struct llama_vocab *vocab = request->model->prompter.vocab;
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < request->prompt.count; i++) {
        char piece[PIECE_MAX];
        int32_t len = llama_token_to_piece(vocab, request->prompt.tokens[i], piece, sizeof piece, 0, true);
        fm_buf_append(&text, piece, len > 0 ? (size_t)len : 0);
    }
    fm_json_key(w, "prompt");
    fm_json_string(w, text.data, text.len);
    fm_json_key_bool(w, "native", request->form->native);
    fm_json_key_bool(w, "thinks", request->thought_form && request->thought_form->thinks);
    fm_json_key_str(w, "begins", begins[request->thought_state]);
    fm_buf_free(&text);
}

static enum fm_code answered(struct subject *subject, struct fm_kit_job *job, struct fm_json_writer *w,
                             struct fm_error *error) {
    struct fm_llama_request request;
    enum fm_code code = fm_llama_request_read(&request, &subject->model, job, always, NULL, error);
    if (code == FM_OK) {
        write_prompt(&request, w);
    }
    fm_llama_request_free(&request);
    return code;
}

static enum fm_code own(struct subject *subject, const struct fm_kit_job *job, bool closed, struct fm_json_writer *w,
                        struct fm_error *error) {
    const struct fm_tool_form native = {.native = true};
    const struct fm_thought_form *thoughts;
    struct fm_tool_prompt prompt;
    char *text;
    size_t len;
    enum fm_code code = fm_llama_model_thought_form(&subject->model, &thoughts, error);
    code = code ? code : fm_tool_prompt_init(&prompt, job, &native, error);
    if (code != FM_OK) {
        return code;
    }
    fm_thought_ask(thoughts, job, &prompt.chat);
    prompt.chat.closed = closed;
    code = fm_templates_apply(subject->model.prompter.templates, &prompt.chat, &text, &len, error);
    fm_tool_prompt_free(&prompt);
    if (code == FM_OK) {
        fm_json_key(w, "prompt");
        fm_json_string(w, text, len);
        free(text);
    }
    return code;
}

static const char *member(struct json_object *line, const char *name) {
    struct json_object *value = json_object_object_get(line, name);
    return value ? json_object_get_string(value) : "";
}

static enum fm_code answer(struct subject *subject, struct json_object *line, struct fm_json_writer *w,
                           struct fm_error *error) {
    struct fm_kit_job job = {0};
    enum fm_code code = take_model(subject, member(line, "model"), error);
    code = code ? code : take_template(subject, member(line, "template"), error);
    bool closed = json_object_get_boolean(json_object_object_get(line, "closed"));
    bool is_own = closed || json_object_get_boolean(json_object_object_get(line, "own"));
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        json_object_object_del(line, ours[i]);
    }
    if (code != FM_OK) {
        return code;
    }
    code = fm_kit_job_read(&job, line, error);
    code = code ? code : is_own ? own(subject, &job, closed, w, error) : answered(subject, &job, w, error);
    fm_kit_job_free_lists(&job);
    return code;
}

/* Prints the answer to a line; a line that is not a request ends this program. */
static void print_answer(struct subject *subject, const char *text, size_t len) {
    struct fm_buf buf;
    struct json_object *line = NULL;
    struct fm_error error = {.code = FM_OK};
    size_t offset;
    fm_buf_init(&buf, TEXT_MAX);
    const char *wrong = fm_json_check(text, len, FM_ENGINE_VALUES_MAX, &offset);
    if (wrong || !fm_json_tree(text, len, &buf, &line) || !json_object_is_type(line, json_type_object)) {
        fprintf(stderr, "no request: %s\n", wrong ? wrong : "no object");
        exit(2);
    }
    buf.len = 0;
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_object_begin(&w);
    if (answer(subject, line, &w, &error) != FM_OK) {
        fm_json_key_str(&w, "error", fm_code_name(error.code));
        fm_json_key_str(&w, "detail", error.detail);
        fm_json_key_str(&w, "param", error.param);
    }
    fm_json_object_end(&w);
    printf("%.*s\n", (int)buf.len, buf.data);
    fflush(stdout);
    json_object_put(line);
    fm_buf_free(&buf);
}

int main(void) {
    struct subject subject = {.model = {.context_length = CONTEXT}};
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    llama_log_set(on_log, NULL);
    llama_backend_init();
    while ((len = getline(&line, &room, stdin)) > 0) {
        print_answer(&subject, line, (size_t)len);
    }
    free(line);
    forget(&subject);
    return 0;
}
