/*
 * How text that looks like a control token is kept text: it is replaced by a marker before the template is rendered,
 * and the rendered prompt is tokenized piece by piece between the markers, the replaced text without control tokens.
 * Messages without such text, which is nearly all, take none of that way and are tokenized in one piece.
 */
#include "engine/llama/prompt.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/platform.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMPT_MAX (64u * 1024u * 1024u) /* bytes; a request has at most 10 MB */

#define MARKER_KEY_SIZE 24

struct render {
    const struct fm_prompter *prompter;
    char marker[MARKER_KEY_SIZE]; /* what a marker begins with; not guessable. A control text's index and 'x' follow */
    struct fm_buf tokens;         /* of llama_token */
};

/* ---- set-up ---- */

static bool is_control(const struct llama_vocab *vocab, llama_token token) {
    return (llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
}

static bool collect_controls(struct fm_prompter *prompter) {
    int32_t vocab_size = llama_vocab_n_tokens(prompter->vocab);
    size_t count = 0;
    for (llama_token token = 0; token < vocab_size; token++) {
        count += is_control(prompter->vocab, token);
    }
    prompter->controls = calloc(count ? count : 1, sizeof *prompter->controls);
    if (!prompter->controls) {
        return false;
    }
    for (llama_token token = 0; token < vocab_size; token++) {
        const char *text = is_control(prompter->vocab, token) ? llama_vocab_get_text(prompter->vocab, token) : NULL;
        if (text && text[0]) {
            prompter->controls[prompter->control_count++] = (struct fm_control_text){text, strlen(text)};
            prompter->control_starts[(unsigned char)text[0]] = true;
        }
    }
    return true;
}

enum fm_code fm_prompter_init(struct fm_prompter *prompter, const struct llama_model *model, struct fm_error *error) {
    bool replaced;
    *prompter = (struct fm_prompter){.vocab = llama_model_get_vocab(model)};
    enum fm_code code = fm_templates_load(model, &prompter->templates, &replaced, error);
    if (code != FM_OK) {
        return code;
    }
    if (replaced) {
        fm_log(FM_LOG_WARN, "the model has no usable chat template: ChatML is used");
    }
    if (!collect_controls(prompter)) {
        fm_prompter_free(prompter);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_prompter_free(struct fm_prompter *prompter) {
    fm_templates_free(prompter->templates);
    free(prompter->controls);
    *prompter = (struct fm_prompter){0};
}

/* ---- markers ---- */

/* The longest control text that `text` begins with; `control_count` when there is none. */
static size_t find_control(const struct fm_prompter *prompter, const char *text, size_t len) {
    size_t found = prompter->control_count;
    if (!prompter->control_starts[(unsigned char)text[0]]) {
        return found;
    }
    for (size_t i = 0; i < prompter->control_count; i++) {
        const struct fm_control_text *control = &prompter->controls[i];
        bool longer = found == prompter->control_count || control->len > prompter->controls[found].len;
        if (longer && control->len <= len && memcmp(text, control->text, control->len) == 0) {
            found = i;
        }
    }
    return found;
}

/* Appends `message`'s content to `out` with markers for control texts. Returns how many there are. */
static size_t mark(const struct render *render, const struct fm_chat_message *message, struct fm_buf *out) {
    const struct fm_prompter *prompter = render->prompter;
    size_t marked = 0;
    size_t plain = 0; /* start of what is not copied yet */
    for (size_t i = 0; i < message->content_len;) {
        size_t control = find_control(prompter, message->content + i, message->content_len - i);
        if (control == prompter->control_count) {
            i++;
            continue;
        }
        char index[24];
        snprintf(index, sizeof index, "%zux", control);
        fm_buf_append(out, message->content + plain, i - plain);
        fm_buf_append_str(out, render->marker);
        fm_buf_append_str(out, index);
        i += prompter->controls[control].len;
        plain = i;
        marked++;
    }
    fm_buf_append(out, message->content + plain, message->content_len - plain);
    return marked;
}

static void make_marker(struct render *render) {
    uint64_t random;
    fm_random(&random, sizeof random);
    snprintf(render->marker, sizeof render->marker, "fm%016llxq", (unsigned long long)random);
}

/* ---- tokens ---- */

static enum fm_code tokenize(struct render *render, const char *text, size_t len, bool first, bool parse_control,
                             struct fm_error *error) {
    const size_t size = sizeof(llama_token);
    if (len > INT32_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "the prompt is longer than 2 GiB");
    }
    /* A token has at least one byte, but for those that are added at the ends. */
    size_t room = len + 8;
    if (!fm_buf_reserve(&render->tokens, room * size)) {
        return fm_fail_no_memory(error);
    }
    /* Allocated memory is aligned, and `len` is a multiple of a token's size. */
    llama_token *end = (llama_token *)(void *)(render->tokens.data + render->tokens.len);
    int32_t count =
        llama_tokenize(render->prompter->vocab, text, (int32_t)len, end, (int32_t)room, first, parse_control);
    if (count < 0) {
        return fm_fail(error, FM_INTERNAL, "the prompt can't be tokenized");
    }
    render->tokens.len += (size_t)count * size;
    return FM_OK;
}

/* Reads the marker at `text`: its control text's index, and in `*len` its length. `control_count` when it is none. */
static size_t read_marker(const struct render *render, const char *text, size_t available, size_t *len) {
    size_t at = strlen(render->marker);
    size_t index = 0;
    while (at < available && text[at] >= '0' && text[at] <= '9' && index < render->prompter->control_count) {
        index = index * 10 + (size_t)(text[at++] - '0');
    }
    *len = at + 1;
    bool whole = at < available && text[at] == 'x' && index < render->prompter->control_count;
    return whole ? index : render->prompter->control_count;
}

static enum fm_code tokenize_marked(struct render *render, const char *prompt, size_t len, struct fm_error *error) {
    const struct fm_prompter *prompter = render->prompter;
    size_t from = 0;
    for (;;) {
        const char *found =
            from < len ? memmem(prompt + from, len - from, render->marker, strlen(render->marker)) : NULL;
        size_t upto = found ? (size_t)(found - prompt) : len;
        enum fm_code code = tokenize(render, prompt + from, upto - from, from == 0, true, error);
        if (code != FM_OK || !found) {
            return code;
        }
        size_t marker_len;
        size_t control = read_marker(render, found, len - upto, &marker_len);
        if (control == prompter->control_count) {
            return fm_fail(error, FM_INVALID_REQUEST, "the model's chat template alters control tokens in a message");
        }
        code = tokenize(render, prompter->controls[control].text, prompter->controls[control].len, false, false, error);
        if (code != FM_OK) {
            return code;
        }
        from = upto + marker_len;
    }
}

/* Copies of the messages whose contents lie in `text`, marked. NULL: out of memory. */
static struct fm_chat_message *mark_messages(const struct render *render, const struct fm_chat_message *messages,
                                             size_t count, struct fm_buf *text, size_t *marked) {
    struct fm_chat_message *copies = calloc(count, sizeof *copies);
    if (!copies) {
        return NULL;
    }
    *marked = 0;
    for (size_t i = 0; i < count; i++) {
        size_t start = text->len;
        *marked += mark(render, &messages[i], text);
        copies[i] = (struct fm_chat_message){.role = messages[i].role, .content_len = text->len - start};
    }
    if (text->failed) {
        free(copies);
        return NULL;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        copies[i].content = text->len ? text->data + at : "";
        at += copies[i].content_len;
    }
    return copies;
}

static enum fm_code render_tokens(struct render *render, const struct fm_chat_message *messages, size_t count,
                                  struct fm_buf *text, struct fm_error *error) {
    size_t marked;
    char *prompt = NULL;
    size_t len;
    struct fm_chat_message *copies = mark_messages(render, messages, count, text, &marked);
    if (!copies) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_templates_apply(render->prompter->templates, copies, count, &prompt, &len, error);
    if (code == FM_OK) {
        code = marked ? tokenize_marked(render, prompt, len, error) : tokenize(render, prompt, len, true, true, error);
    }
    if (code == FM_OK && render->tokens.len == 0) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the prompt is empty");
    }
    free(prompt);
    free(copies);
    return code;
}

enum fm_code fm_prompter_tokens(const struct fm_prompter *prompter, const struct fm_chat_message *messages,
                                size_t message_count, llama_token **tokens, size_t *count, struct fm_error *error) {
    struct render render = {.prompter = prompter};
    struct fm_buf text;
    *tokens = NULL;
    *count = 0;
    fm_buf_init(&text, PROMPT_MAX);
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    make_marker(&render);
    enum fm_code code = render_tokens(&render, messages, message_count, &text, error);
    fm_buf_free(&text);
    if (code != FM_OK) {
        fm_buf_free(&render.tokens);
        return code;
    }
    *tokens = (llama_token *)(void *)render.tokens.data;
    *count = render.tokens.len / sizeof(llama_token);
    return FM_OK;
}
