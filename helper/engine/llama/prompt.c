/*
 * Messages to tokens: how text that looks like a control token is kept text: it is replaced by a marker before the
 * template is rendered, and the rendered prompt is tokenized piece by piece between the markers, the replaced text
 * without control tokens. Messages without such text, which is nearly all, take none of that way and are tokenized in
 * one piece. Images go the same way: a marker stands for each, which no text of a user's can be.
 *
 * A template may also alter text: upper-case, cut, or count it. So marked messages are rendered twice, with markers
 * that have no letter and no length in common: where the results differ, something of a marker is left in them.
 *
 * Most tokenizers split text by std::regex, which recurses once for each character that one match takes in. None of
 * their patterns goes on past the end of a line, so the longest line says how much stack is needed.
 */
#include "engine/llama/prompt.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/kit/kit.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMPT_MAX (64u * 1024u * 1024u) /* bytes; a request has at most 10 MB */

#define MARKER_LETTERS 16 /* with 8 values each: one of 2^48, not guessable */

/* docs/limits.md names it: 256 MiB of stack, at worst, which the kernel hands out as it is used. */
#define LINE_CHARACTERS_MAX 524288

#define STACK_PER_CHARACTER 512                                      /* bytes; GCC's library takes 365 */
#define LINE_ON_OUR_STACK   (FM_KIT_STACK / 2 / STACK_PER_CHARACTER) /* characters; longer ones get another stack */

/*
 * Letters of both cases, so that no change of case leaves them as they are; then a control text's index, or an image's
 * after those, and `end`.
 */
struct marker {
    char begin[MARKER_LETTERS + 2];
    char end;
};

struct render {
    const struct fm_prompter *prompter;
    const struct fm_pictures *pictures; /* NULL: there are no images */
    size_t context;                     /* tokens */
    bool embeds;                        /* no room for output is needed */
    struct fm_prompt_thought *thought;
    struct marker markers[2];
    struct fm_buf tokens; /* of llama_token */
    struct fm_buf spans;  /* of struct fm_span */
};

/* What the template made of the messages; malloc'd. */
struct rendered {
    char *text;
    size_t len;
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
            prompter->controls[prompter->control_count++] = (struct fm_control_text){text, strlen(text), token};
            prompter->control_starts[(unsigned char)text[0]] = true;
        }
    }
    return true;
}

/*
 * A token's text, as the vocabulary has it, is at least as long as what it stands for. 0 for the rarer kinds, some of
 * which drop or merge text, and where a token swallows the white space beside it.
 */
static size_t longest_token(const struct llama_vocab *vocab) {
    enum llama_vocab_type type = llama_vocab_type(vocab);
    size_t longest = 0;
    for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); token++) {
        if (llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP)) {
            return 0;
        }
        size_t len = strlen(llama_vocab_get_text(vocab, token));
        longest = len > longest ? len : longest;
    }
    return type == LLAMA_VOCAB_TYPE_BPE || type == LLAMA_VOCAB_TYPE_SPM ? longest : 0;
}

enum fm_code fm_prompter_init(struct fm_prompter *prompter, const struct llama_model *model, const char *source,
                              struct fm_error *error) {
    bool replaced;
    *prompter = (struct fm_prompter){.vocab = llama_model_get_vocab(model)};
    enum fm_code code = fm_templates_load(model, source, &prompter->templates, &replaced, error);
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
    prompter->longest_token = longest_token(prompter->vocab);
    return FM_OK;
}

void fm_prompter_init_plain(struct fm_prompter *prompter, const struct llama_model *model) {
    *prompter = (struct fm_prompter){.vocab = llama_model_get_vocab(model)};
    prompter->longest_token = longest_token(prompter->vocab);
}

void fm_prompter_free(struct fm_prompter *prompter) {
    fm_templates_free(prompter->templates);
    free(prompter->controls);
    *prompter = (struct fm_prompter){0};
}

/* ---- markers ---- */

const struct fm_control_text *fm_prompter_control(const struct fm_prompter *prompter, const char *text, size_t len) {
    const struct fm_control_text *found = NULL;
    if (!prompter->control_starts[(unsigned char)text[0]]) {
        return NULL;
    }
    for (size_t i = 0; i < prompter->control_count; i++) {
        const struct fm_control_text *control = &prompter->controls[i];
        bool longer = !found || control->len > found->len;
        if (longer && control->len <= len && memcmp(text, control->text, control->len) == 0) {
            found = control;
        }
    }
    return found;
}

static void append_marker(const struct marker *marker, size_t index, struct fm_buf *out) {
    char digits[24];
    snprintf(digits, sizeof digits, "%zu%c", index, marker->end);
    fm_buf_append_str(out, marker->begin);
    fm_buf_append_str(out, digits);
}

/* Appends `text` (`len` bytes) to `out` with markers for control texts, `most` at most. Returns how many there are. */
static size_t mark(const struct fm_prompter *prompter, const struct marker *marker, const char *text, size_t len,
                   size_t most, struct fm_buf *out) {
    size_t marked = 0;
    size_t plain = 0; /* start of what is not copied yet */
    for (size_t i = 0; i < len && marked < most;) {
        const struct fm_control_text *control = fm_prompter_control(prompter, text + i, len - i);
        if (!control) {
            i++;
            continue;
        }
        fm_buf_append(out, text + plain, i - plain);
        append_marker(marker, (size_t)(control - prompter->controls), out);
        i += control->len;
        plain = i;
        marked++;
    }
    fm_buf_append(out, text + plain, len - plain);
    return marked;
}

static void make_markers(struct render *render) {
    unsigned char random[MARKER_LETTERS];
    char *first = render->markers[0].begin;
    char *second = render->markers[1].begin;
    fm_random(random, sizeof random);
    for (size_t i = 0; i < MARKER_LETTERS; i++) {
        char letter = (char)((i % 2 ? 'A' : 'a') + random[i] % 8);
        first[i] = letter;
        second[i] = (char)(letter + 8);
    }
    second[MARKER_LETTERS] = 'q'; /* another length */
    render->markers[0].end = 'x';
    render->markers[1].end = 'y';
}

/* A whole marker in a text. */
struct found {
    size_t at;
    size_t end;   /* after it */
    size_t index; /* which control text it stands for, or, from their count on, which image */
};

/* What markers may stand for. */
static size_t marked_things(const struct render *render) {
    return render->prompter->control_count + (render->pictures ? render->pictures->count : 0);
}

/* The index and the end after a marker's beginning at `at`. */
static bool read_marker(const struct render *render, const struct marker *marker, const struct rendered *prompt,
                        struct found *found) {
    size_t at = found->at + strlen(marker->begin);
    size_t index = 0;
    size_t count = marked_things(render);
    while (at < prompt->len && prompt->text[at] >= '0' && prompt->text[at] <= '9' && index < count) {
        index = index * 10 + (size_t)(prompt->text[at++] - '0');
    }
    found->end = at + 1;
    found->index = index;
    return at < prompt->len && prompt->text[at] == marker->end && index < count;
}

/* The next marker from `from` on. False when there is none; `found->at` is the end of the text then. */
static bool find_marker(const struct render *render, const struct marker *marker, const struct rendered *prompt,
                        size_t from, struct found *found) {
    const char *begin;
    while ((begin = memmem(prompt->text + from, prompt->len - from, marker->begin, strlen(marker->begin)))) {
        found->at = (size_t)(begin - prompt->text);
        if (read_marker(render, marker, prompt, found)) {
            return true;
        }
        from = found->at + 1;
    }
    found->at = prompt->len;
    return false;
}

/* True when the texts differ only in their markers, and those stand for the same. */
static bool same_but_for_markers(const struct render *render, const struct rendered prompts[2]) {
    size_t from[2] = {0, 0};
    for (;;) {
        struct found found[2];
        bool more[2];
        for (size_t i = 0; i < 2; i++) {
            more[i] = find_marker(render, &render->markers[i], &prompts[i], from[i], &found[i]);
        }
        size_t len = found[0].at - from[0];
        if (more[0] != more[1] || len != found[1].at - from[1] ||
            memcmp(prompts[0].text + from[0], prompts[1].text + from[1], len) != 0) {
            return false;
        }
        if (!more[0]) {
            return true;
        }
        if (found[0].index != found[1].index) {
            return false;
        }
        from[0] = found[0].end;
        from[1] = found[1].end;
    }
}

/* ---- tokens ---- */

struct piece {
    struct render *render;
    const char *text;
    size_t len;
    bool first;
    bool parse_control;
    enum fm_code code;
    struct fm_error *error;
};

static size_t token_count(const struct render *render) {
    return render->tokens.len / sizeof(llama_token);
}

/* Refuses what is `count` tokens long, or more. */
static enum fm_code check_fits(const struct render *render, size_t count, bool or_more, struct fm_error *error) {
    if (count < render->context || (render->embeds && count == render->context)) {
        return FM_OK;
    }
    return fm_fail(error, FM_CONTEXT_OVERFLOW, "the input has %s%zu tokens, the context holds %zu%s",
                   or_more ? "at least " : "", count, render->context,
                   render->embeds ? "" : " with at least one of output");
}

/*
 * Characters of the longest line, with the blank lines and the indent that follow it: patterns take in white space on
 * both sides of a line's end.
 */
static size_t longest_line(const char *text, size_t len) {
    size_t longest = 0;
    size_t current = 0;
    bool ended = false;
    for (size_t i = 0; i < len; i++) {
        bool space = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        if (ended && !space) {
            current = 0;
            ended = false;
        }
        ended = ended || text[i] == '\n';
        current += ((unsigned char)text[i] & 0xC0) != 0x80; /* not inside a UTF-8 sequence */
        longest = current > longest ? current : longest;
    }
    return longest;
}

static void tokenize_piece(void *argument) {
    struct piece *piece = argument;
    struct fm_buf *tokens = &piece->render->tokens;
    /* A token has at least one byte, except those that are added at the ends. */
    size_t room = piece->len + 8;
    if (!fm_buf_reserve(tokens, room * sizeof(llama_token))) {
        piece->code = fm_fail_no_memory(piece->error);
        return;
    }
    /* Allocated memory is aligned, and `len` is a multiple of a token's size. */
    llama_token *end = (llama_token *)(void *)(tokens->data + tokens->len);
    size_t count;
    piece->code = fm_tokenize(piece->render->prompter->vocab, piece->text, piece->len, piece->first,
                              piece->parse_control, end, room, &count, piece->error);
    tokens->len += count * sizeof(llama_token);
}

/* With the stack that a line of so many characters takes. */
static enum fm_code run_piece(struct piece *piece, size_t line) {
    if (line <= LINE_ON_OUR_STACK) {
        tokenize_piece(piece);
        return piece->code;
    }
    size_t stack = FM_KIT_STACK + line * STACK_PER_CHARACTER;
    return fm_run_on_stack(stack, tokenize_piece, piece) == 0 ? piece->code : fm_fail_no_memory(piece->error);
}

/* A line is too long to tokenize. Mostly the text does not fit either, which its beginning tells: that is said first.
 */
static enum fm_code refuse_line(struct piece *piece, size_t line) {
    size_t characters = 0;
    size_t len = 0;
    while (characters < LINE_CHARACTERS_MAX) { /* there are more of them */
        characters += ((unsigned char)piece->text[++len] & 0xC0) != 0x80;
    }
    piece->len = len;
    enum fm_code code = run_piece(piece, LINE_CHARACTERS_MAX);
    code = code ? code : check_fits(piece->render, token_count(piece->render), true, piece->error);
    return code ? code
                : fm_fail(piece->error, FM_INVALID_REQUEST,
                          "a line of the input has %zu characters, %d are the most: break it into lines", line,
                          LINE_CHARACTERS_MAX);
}

static enum fm_code tokenize(struct render *render, const char *text, size_t len, bool first, bool parse_control,
                             struct fm_error *error) {
    struct piece piece = {render, text, len, first, parse_control, FM_OK, error};
    size_t longest = render->prompter->longest_token;
    size_t least = token_count(render) + (longest ? len / longest : 0);
    enum fm_code code = check_fits(render, least, true, error);
    if (code != FM_OK) {
        return code;
    }
    size_t line = longest_line(text, len);
    if (len > INT32_MAX - 8) {
        return fm_fail(error, FM_INVALID_REQUEST, "the prompt is longer than 2 GiB");
    }
    return line > LINE_CHARACTERS_MAX ? refuse_line(&piece, line) : run_piece(&piece, line);
}

/* What a marker stands for. */
static enum fm_code write_marked(struct render *render, size_t index, struct fm_error *error) {
    const struct fm_prompter *prompter = render->prompter;
    if (index < prompter->control_count) {
        const struct fm_control_text *control = &prompter->controls[index];
        return tokenize(render, control->text, control->len, false, false, error);
    }
    fm_picture_write(render->pictures->list[index - prompter->control_count], &render->tokens, &render->spans);
    return render->tokens.failed || render->spans.failed ? fm_fail_no_memory(error)
                                                         : check_fits(render, token_count(render), true, error);
}

static enum fm_code tokenize_marked(struct render *render, const struct rendered *prompt, struct fm_error *error) {
    for (size_t from = 0;;) {
        struct found found;
        bool more = find_marker(render, &render->markers[0], prompt, from, &found);
        enum fm_code code = tokenize(render, prompt->text + from, found.at - from, from == 0, true, error);
        if (code != FM_OK || !more) {
            return code;
        }
        code = write_marked(render, found.index, error);
        if (code != FM_OK) {
            return code;
        }
        from = found.end;
    }
}

/* Appends a message's content with its images' markers, and with those of control texts as mark does. */
static size_t mark_content(const struct render *render, const struct marker *marker,
                           const struct fm_chat_message *message, size_t most, struct fm_buf *out) {
    size_t marked = 0;
    size_t from = 0;
    for (size_t i = 0; i < message->image_count; i++) {
        const struct fm_chat_image *image = &message->images[i];
        size_t left = most > marked ? most - marked : 0;
        marked += 1 + mark(render->prompter, marker, message->content + from, image->at - from, left, out);
        append_marker(marker, render->prompter->control_count + image->index, out);
        from = image->at;
    }
    size_t left = most > marked ? most - marked : 0;
    return marked + mark(render->prompter, marker, message->content + from, message->content_len - from, left, out);
}

/*
 * Copies of the messages whose contents and thoughts lie in `text`, marked. As many marks as the context has tokens are
 * enough: each is a token at least. NULL: out of memory.
 */
static struct fm_chat_message *mark_messages(const struct render *render, const struct marker *marker,
                                             const struct fm_chat *chat, struct fm_buf *text, size_t *marked) {
    struct fm_chat_message *copies = calloc(chat->count, sizeof *copies);
    if (!copies) {
        return NULL;
    }
    *marked = 0;
    for (size_t i = 0; i < chat->count; i++) {
        const struct fm_chat_message *from = &chat->messages[i];
        size_t start = text->len;
        copies[i] = *from;
        size_t left = render->context > *marked ? render->context - *marked : 0;
        *marked += mark_content(render, marker, from, left, text);
        copies[i].content_len = text->len - start;
        left = render->context > *marked ? render->context - *marked : 0;
        *marked += mark(render->prompter, marker, from->reasoning, from->reasoning_len, left, text);
        copies[i].reasoning_len = text->len - start - copies[i].content_len;
    }
    if (text->failed) {
        free(copies);
        return NULL;
    }
    size_t at = 0;
    for (size_t i = 0; i < chat->count; i++) {
        copies[i].content = text->len ? text->data + at : "";
        at += copies[i].content_len;
        copies[i].reasoning = copies[i].reasoning_len ? text->data + at : NULL;
        at += copies[i].reasoning_len;
    }
    return copies;
}

/* How the answer begins, and what the prompt needs for that. */
static enum fm_code begin_answer(const struct render *render, struct rendered *prompt, struct fm_error *error) {
    struct fm_prompt_thought *thought = render->thought;
    struct fm_buf more;
    fm_buf_init(&more, FM_THOUGHT_MORE_MAX);
    thought->state = fm_thought_prompt(thought->form, thought->job, prompt->text, prompt->len, &more);
    char *text = more.len ? realloc(prompt->text, prompt->len + more.len + 1) : NULL;
    bool failed = more.failed || (more.len && !text);
    if (text) {
        memcpy(text + prompt->len, more.data, more.len);
        prompt->text = text;
        prompt->len += more.len;
        text[prompt->len] = '\0';
    }
    fm_buf_free(&more);
    return failed ? fm_fail_no_memory(error) : FM_OK;
}

/* The template's text of the messages, marked. `*marked` is how many control texts there are. */
static enum fm_code apply_template(const struct render *render, const struct marker *marker, const struct fm_chat *chat,
                                   struct rendered *prompt, size_t *marked, struct fm_error *error) {
    struct fm_buf text;
    fm_buf_init(&text, PROMPT_MAX);
    struct fm_chat_message *copies = mark_messages(render, marker, chat, &text, marked);
    struct fm_chat copy = *chat;
    copy.messages = copies;
    enum fm_code code = copies ? check_fits(render, *marked, true, error) : fm_fail_no_memory(error);
    code = code ? code : fm_templates_apply(render->prompter->templates, &copy, &prompt->text, &prompt->len, error);
    code = code ? code : begin_answer(render, prompt, error);
    free(copies);
    fm_buf_free(&text);
    return code;
}

/* Refuses messages whose marked text the template alters. */
static enum fm_code check_template(const struct render *render, const struct fm_chat *chat,
                                   const struct rendered *prompt, struct fm_error *error) {
    struct rendered prompts[2] = {*prompt, {NULL, 0}};
    size_t marked;
    enum fm_code code = apply_template(render, &render->markers[1], chat, &prompts[1], &marked, error);
    if (code == FM_OK && !same_but_for_markers(render, prompts)) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the model's chat template alters control tokens in a message");
    }
    free(prompts[1].text);
    return code;
}

static enum fm_code render_tokens(struct render *render, const struct fm_chat *chat, struct fm_error *error) {
    struct rendered prompt = {NULL, 0};
    size_t marked = 0;
    enum fm_code code = apply_template(render, &render->markers[0], chat, &prompt, &marked, error);
    if (code == FM_OK && marked) {
        code = check_template(render, chat, &prompt, error);
        code = code ? code : tokenize_marked(render, &prompt, error);
    } else if (code == FM_OK) {
        code = tokenize(render, prompt.text, prompt.len, true, true, error);
    }
    if (code == FM_OK && render->tokens.len == 0) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the prompt is empty");
    }
    free(prompt.text);
    return code ? code : check_fits(render, token_count(render), false, error);
}

/* The tokens to the caller, or none after a failure. */
static enum fm_code hand_over(struct render *render, enum fm_code code, llama_token **tokens, size_t *count) {
    *tokens = NULL;
    *count = 0;
    if (code != FM_OK) {
        fm_buf_free(&render->tokens);
        return code;
    }
    *tokens = (llama_token *)(void *)render->tokens.data;
    *count = token_count(render);
    return FM_OK;
}

enum fm_code fm_prompter_tokens(const struct fm_prompter *prompter, const struct fm_chat *chat,
                                const struct fm_pictures *pictures, size_t context, struct fm_prompt_thought *thought,
                                struct fm_prompt *prompt, struct fm_error *error) {
    struct render render = {.prompter = prompter, .pictures = pictures, .context = context, .thought = thought};
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    fm_buf_init(&render.spans, PROMPT_MAX);
    make_markers(&render);
    enum fm_code code = hand_over(&render, render_tokens(&render, chat, error), &prompt->tokens, &prompt->count);
    if (code != FM_OK) {
        fm_buf_free(&render.spans);
    }
    prompt->spans = (struct fm_span *)(void *)render.spans.data; /* allocated memory is aligned */
    prompt->span_count = render.spans.len / sizeof *prompt->spans;
    return code;
}

void fm_prompt_free(struct fm_prompt *prompt) {
    free(prompt->tokens);
    free(prompt->spans);
    *prompt = (struct fm_prompt){0};
}

enum fm_code fm_prompter_input_tokens(const struct fm_prompter *prompter, const char *text, size_t len, size_t context,
                                      llama_token **tokens, size_t *count, struct fm_error *error) {
    struct render render = {.prompter = prompter, .context = context, .embeds = true};
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    enum fm_code code = tokenize(&render, text, len, true, false, error);
    code = code ? code : check_fits(&render, token_count(&render), false, error);
    if (code == FM_OK && render.tokens.len == 0) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the model has no token for the input");
    }
    return hand_over(&render, code, tokens, count);
}

/* ---- without a template ---- */

static void append_token(struct render *render, llama_token token) {
    fm_buf_append(&render->tokens, &token, sizeof token);
}

static enum fm_code refuse_suffix(struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST, "the model has no tokens for what stands between a prompt and a suffix");
    snprintf(error->param, sizeof error->param, "suffix");
    return error->code;
}

/* The order that models are trained with most: the place to fill comes last. */
static enum fm_code infill(struct render *render, const char *text, size_t len, const char *suffix, size_t suffix_len,
                           struct fm_error *error) {
    const struct llama_vocab *vocab = render->prompter->vocab;
    llama_token prefix_mark = llama_vocab_fim_pre(vocab);
    llama_token suffix_mark = llama_vocab_fim_suf(vocab);
    llama_token middle_mark = llama_vocab_fim_mid(vocab);
    if (prefix_mark == LLAMA_TOKEN_NULL || suffix_mark == LLAMA_TOKEN_NULL || middle_mark == LLAMA_TOKEN_NULL) {
        return refuse_suffix(error);
    }
    append_token(render, prefix_mark);
    enum fm_code code = tokenize(render, text, len, false, false, error);
    append_token(render, suffix_mark);
    code = code ? code : tokenize(render, suffix, suffix_len, false, false, error);
    append_token(render, middle_mark);
    return code;
}

static enum fm_code plain(struct render *render, const char *text, size_t len, const char *suffix, size_t suffix_len,
                          struct fm_error *error) {
    const struct llama_vocab *vocab = render->prompter->vocab;
    llama_token first = llama_vocab_bos(vocab);
    bool nothing = !suffix && len == 0; /* then the answer is any text, from its beginning */
    if (nothing && first == LLAMA_TOKEN_NULL) {
        return fm_fail(error, FM_INVALID_REQUEST, "the prompt is empty");
    }
    if (nothing || llama_vocab_get_add_bos(vocab)) {
        append_token(render, first);
    }
    enum fm_code code = suffix ? infill(render, text, len, suffix, suffix_len, error)
                               : tokenize(render, text, len, false, false, error);
    code = code ? code : check_fits(render, token_count(render), false, error);
    return code == FM_OK && render->tokens.failed ? fm_fail_no_memory(error) : code;
}

enum fm_code fm_prompter_plain_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                      const char *suffix, size_t suffix_len, size_t context, llama_token **tokens,
                                      size_t *count, struct fm_error *error) {
    struct render render = {.prompter = prompter, .context = context};
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    return hand_over(&render, plain(&render, text, len, suffix, suffix_len, error), tokens, count);
}

enum fm_code fm_prompter_text_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                     llama_token **tokens, size_t *count, struct fm_error *error) {
    struct render render = {.prompter = prompter, .context = SIZE_MAX};
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    return hand_over(&render, tokenize(&render, text, len, false, false, error), tokens, count);
}

enum fm_code fm_prompter_mark_tokens(const struct fm_prompter *prompter, const char *mark, llama_token **tokens,
                                     size_t *count, struct fm_error *error) {
    struct render render = {.prompter = prompter, .context = SIZE_MAX};
    fm_buf_init(&render.tokens, PROMPT_MAX * sizeof(llama_token));
    return hand_over(&render, tokenize(&render, mark, strlen(mark), false, true, error), tokens, count);
}
