/*
 * Turns messages into tokens. Text that looks like a control token must stay text: a marker replaces it before the
 * template is rendered, and the rendered prompt is tokenized piece by piece between the markers, the replaced text
 * without control tokens. Nearly all messages have no such text, and are tokenized in one piece. Images are handled in
 * the same way: a marker, which no user's text can contain, stands for each.
 *
 * A template may also change text: make it upper case, cut it, or count it. So marked messages are rendered twice, with
 * markers that have no letter and no length in common: if the results differ in more than the markers, the template
 * changed a marker.
 */
#include "engine/llama/prompt.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/llama/tokens.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMPT_MAX (64u * 1024u * 1024u) /* bytes; a request has at most 10 MB */

#define MARKER_LETTERS 16 /* with 8 values each: 2^48 possibilities, so it can't be guessed */

/*
 * A marker has letters of both cases, so that every change of case changes it; then the index of a control text or of
 * an image (images are counted after the control texts), and `end`.
 */
struct marker {
    char begin[MARKER_LETTERS + 2];
    char end;
};

struct render {
    const struct fm_prompter *prompter;
    const struct fm_pictures *pictures; /* NULL: there are no images */
    struct fm_prompt_thought *thought;
    struct marker markers[2];
    struct fm_tokens tokens;
    struct fm_buf spans; /* of struct fm_span */
};

/* The rendered messages; malloc'd. */
struct rendered {
    char *text;
    size_t len;
};

/* ---- set-up ---- */

/* Every kind of vocabulary has the unchanged text of a user-defined token, if the text does not begin with a space. */
static bool is_tag(const struct llama_vocab *vocab, llama_token token) {
    bool user_defined = llama_vocab_get_attr(vocab, token) & LLAMA_TOKEN_ATTR_USER_DEFINED;
    return user_defined && !fm_token_is_control(vocab, token) && strchr("<[", llama_vocab_get_text(vocab, token)[0]);
}

/* Collects the tokens for which `is_one` is true. False: out of memory. */
static bool collect_tokens(const struct llama_vocab *vocab, bool (*is_one)(const struct llama_vocab *, llama_token),
                           struct fm_control_text **list, size_t *count) {
    int32_t vocab_size = llama_vocab_n_tokens(vocab);
    size_t room = 1;
    for (llama_token token = 0; token < vocab_size; token++) {
        room += is_one(vocab, token);
    }
    *list = calloc(room, sizeof **list);
    for (llama_token token = 0; *list && token < vocab_size; token++) {
        const char *text = is_one(vocab, token) ? llama_vocab_get_text(vocab, token) : "";
        if (text[0]) {
            (*list)[(*count)++] = (struct fm_control_text){text, strlen(text), token};
        }
    }
    return *list;
}

static bool collect_all(struct fm_prompter *prompter) {
    bool collected =
        collect_tokens(prompter->vocab, fm_token_is_control, &prompter->controls, &prompter->control_count) &&
        collect_tokens(prompter->vocab, is_tag, &prompter->tags, &prompter->tag_count);
    for (size_t i = 0; i < prompter->control_count; i++) {
        prompter->control_starts[(unsigned char)prompter->controls[i].text[0]] = true;
    }
    return collected;
}

/*
 * The length of the longest token. A token's text in the vocabulary is at least as long as the text that the token
 * stands for. 0 for rarer kinds of vocabularies, because some of them drop or merge text, and if a token includes the
 * white space beside it.
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
    *prompter = (struct fm_prompter){.vocab = llama_model_get_vocab(model), .text_end = LLAMA_TOKEN_NULL};
    enum fm_code code = fm_templates_load(model, source, &prompter->templates, &replaced, error);
    if (code != FM_OK) {
        return code;
    }
    if (replaced) {
        fm_log(FM_LOG_WARN, "the model has no usable chat template: ChatML is used");
    }
    if (!collect_all(prompter)) {
        fm_prompter_free(prompter);
        return fm_fail_no_memory(error);
    }
    prompter->longest_token = longest_token(prompter->vocab);
    return FM_OK;
}

void fm_prompter_init_plain(struct fm_prompter *prompter, const struct llama_model *model) {
    *prompter = (struct fm_prompter){.vocab = llama_model_get_vocab(model), .text_end = LLAMA_TOKEN_NULL};
    prompter->longest_token = longest_token(prompter->vocab);
}

void fm_prompter_free(struct fm_prompter *prompter) {
    fm_templates_free(prompter->templates);
    free(prompter->controls);
    free(prompter->tags);
    *prompter = (struct fm_prompter){0};
}

/* ---- markers ---- */

static const struct fm_control_text *find_longest(const struct fm_control_text *list, size_t count, const char *text,
                                                  size_t len) {
    const struct fm_control_text *found = NULL;
    for (size_t i = 0; i < count; i++) {
        bool longer = !found || list[i].len > found->len;
        if (longer && list[i].len <= len && memcmp(text, list[i].text, list[i].len) == 0) {
            found = &list[i];
        }
    }
    return found;
}

const struct fm_control_text *fm_prompter_control(const struct fm_prompter *prompter, const char *text, size_t len) {
    bool may = prompter->control_starts[(unsigned char)text[0]];
    return may ? find_longest(prompter->controls, prompter->control_count, text, len) : NULL;
}

const struct fm_control_text *fm_prompter_tag(const struct fm_prompter *prompter, const char *text, size_t len) {
    return find_longest(prompter->tags, prompter->tag_count, text, len);
}

static void append_marker(const struct marker *marker, size_t index, struct fm_buf *out) {
    char digits[24];
    snprintf(digits, sizeof digits, "%zu%c", index, marker->end);
    fm_buf_append_str(out, marker->begin);
    fm_buf_append_str(out, digits);
}

/* Appends `text` (`len` bytes) to `out` with markers for at most `most` control texts. Returns how many there are. */
static size_t mark(const struct fm_prompter *prompter, const struct marker *marker, const char *text, size_t len,
                   size_t most, struct fm_buf *out) {
    size_t marked = 0;
    size_t plain = 0; /* the start of the text that is not copied yet */
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
    second[MARKER_LETTERS] = 'q'; /* makes the lengths of the two markers differ */
    render->markers[0].end = 'x';
    render->markers[1].end = 'y';
}

/* A complete marker in a text. */
struct found {
    size_t at;
    size_t end;   /* after it */
    /* index of the control text that it stands for; indices from the number of control texts on are images */
    size_t index;
};

/* The number of control texts and images that markers may stand for. */
static size_t marked_things(const struct render *render) {
    return render->prompter->control_count + (render->pictures ? render->pictures->count : 0);
}

/* Reads the index and the end of the marker that begins at `at`. */
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

/* The next marker from `from` on. False when there is none; `found->at` is then the end of the text. */
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

/* True when the texts differ only in their markers, and each marker stands for the same thing in both. */
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

/* Writes the tokens of the control text or image that a marker stands for. */
static enum fm_code write_marked(struct render *render, size_t index, struct fm_error *error) {
    const struct fm_prompter *prompter = render->prompter;
    if (index < prompter->control_count) {
        /* in two pieces, because the tokenizer turns the text of a user-defined token into that token everywhere */
        const struct fm_control_text *control = &prompter->controls[index];
        bool user_defined = llama_vocab_get_attr(prompter->vocab, control->token) & LLAMA_TOKEN_ATTR_USER_DEFINED;
        size_t first = user_defined ? 1 : control->len;
        enum fm_code code = fm_tokens_add(&render->tokens, control->text, first, FM_TOKENS_TEXT, error);
        return code || first == control->len ? code
                                             : fm_tokens_add(&render->tokens, control->text + first,
                                                             control->len - first, FM_TOKENS_TEXT, error);
    }
    fm_picture_write(render->pictures->list[index - prompter->control_count], &render->tokens.buf, &render->spans);
    return render->tokens.buf.failed || render->spans.failed
               ? fm_fail_no_memory(error)
               : fm_tokens_check(&render->tokens, fm_tokens_count(&render->tokens), true, error);
}

static enum fm_code tokenize_marked(struct render *render, const struct rendered *prompt, struct fm_error *error) {
    for (size_t from = 0;;) {
        struct found found;
        bool more = find_marker(render, &render->markers[0], prompt, from, &found);
        enum fm_code code = fm_tokens_add(&render->tokens, prompt->text + from, found.at - from,
                                          from == 0 ? FM_TOKENS_PROMPT : FM_TOKENS_MARKS, error);
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

/* Appends a message's content as `mark` appends a text, and a marker for each of its images. */
static size_t mark_content(const struct render *render, const struct marker *marker,
                           const struct fm_chat_message *message, size_t most, struct fm_buf *out) {
    size_t marked = 0;
    size_t from = 0;
    if (message->controls_len > 0) {
        marked = mark(render->prompter, marker, message->content, message->controls_at, most, out);
        fm_buf_append(out, message->content + message->controls_at, message->controls_len);
        from = message->controls_at + message->controls_len;
    }
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
 * Copies the messages; their contents and thoughts are in `text`, with markers. No more markers are needed than the
 * context has tokens, because each marker is at least one token. NULL: out of memory.
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
        size_t left = render->tokens.context > *marked ? render->tokens.context - *marked : 0;
        *marked += mark_content(render, marker, from, left, text);
        copies[i].content_len = text->len - start;
        left = render->tokens.context > *marked ? render->tokens.context - *marked : 0;
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

/* Decides how the answer begins, and adds what the prompt needs for that. */
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

/* Renders the messages with markers. `*marked` becomes the number of control texts. */
static enum fm_code apply_template(const struct render *render, const struct marker *marker, const struct fm_chat *chat,
                                   struct rendered *prompt, size_t *marked, struct fm_error *error) {
    struct fm_buf text;
    fm_buf_init(&text, PROMPT_MAX);
    struct fm_chat_message *copies = mark_messages(render, marker, chat, &text, marked);
    struct fm_chat copy = *chat;
    copy.messages = copies;
    enum fm_code code = copies ? fm_tokens_check(&render->tokens, *marked, true, error) : fm_fail_no_memory(error);
    code = code ? code : fm_templates_apply(render->prompter->templates, &copy, &prompt->text, &prompt->len, error);
    code = code ? code : begin_answer(render, prompt, error);
    free(copies);
    fm_buf_free(&text);
    return code;
}

/* Refuses messages if the template changes their marked text. */
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
        code = fm_tokens_add(&render->tokens, prompt.text, prompt.len, FM_TOKENS_PROMPT, error);
    }
    if (code == FM_OK && render->tokens.buf.len == 0) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the prompt is empty");
    }
    free(prompt.text);
    return code ? code : fm_tokens_check(&render->tokens, fm_tokens_count(&render->tokens), false, error);
}

enum fm_code fm_prompter_tokens(const struct fm_prompter *prompter, const struct fm_chat *chat,
                                const struct fm_pictures *pictures, size_t context, struct fm_prompt_thought *thought,
                                struct fm_prompt *prompt, struct fm_error *error) {
    struct render render = {.prompter = prompter, .pictures = pictures, .thought = thought};
    fm_tokens_init(&render.tokens, prompter->vocab, prompter->longest_token, context);
    fm_buf_init(&render.spans, PROMPT_MAX);
    make_markers(&render);
    enum fm_code code =
        fm_tokens_take(&render.tokens, render_tokens(&render, chat, error), &prompt->tokens, &prompt->count);
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

/* ---- without a template ---- */

static struct fm_tokens new_tokens(const struct fm_prompter *prompter, size_t context) {
    struct fm_tokens tokens;
    fm_tokens_init(&tokens, prompter->vocab, prompter->longest_token, context);
    return tokens;
}

enum fm_code fm_prompter_input_tokens(const struct fm_prompter *prompter, const char *text, size_t len, size_t context,
                                      llama_token **tokens, size_t *count, struct fm_error *error) {
    struct fm_tokens all = new_tokens(prompter, context);
    all.embeds = true;
    enum fm_code code = fm_tokens_add(&all, text, len, FM_TOKENS_INPUT, error);
    code = code ? code : fm_tokens_check(&all, fm_tokens_count(&all), false, error);
    if (code == FM_OK && all.buf.len == 0) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the model has no token for the input");
    }
    return fm_tokens_take(&all, code, tokens, count);
}

static enum fm_code refuse_suffix(struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST, "the model has no tokens for what stands between a prompt and a suffix");
    snprintf(error->param, sizeof error->param, "suffix");
    return error->code;
}

/* Uses the order in which most models are trained: the gap to fill comes last. */
static enum fm_code infill(struct fm_tokens *tokens, const char *text, size_t len, const char *suffix,
                           size_t suffix_len, struct fm_error *error) {
    llama_token prefix_mark = llama_vocab_fim_pre(tokens->vocab);
    llama_token suffix_mark = llama_vocab_fim_suf(tokens->vocab);
    llama_token middle_mark = llama_vocab_fim_mid(tokens->vocab);
    if (prefix_mark == LLAMA_TOKEN_NULL || suffix_mark == LLAMA_TOKEN_NULL || middle_mark == LLAMA_TOKEN_NULL) {
        return refuse_suffix(error);
    }
    fm_tokens_append(tokens, prefix_mark);
    enum fm_code code = fm_tokens_add(tokens, text, len, FM_TOKENS_TEXT, error);
    fm_tokens_append(tokens, suffix_mark);
    code = code ? code : fm_tokens_add(tokens, suffix, suffix_len, FM_TOKENS_TEXT, error);
    fm_tokens_append(tokens, middle_mark);
    return code;
}

static enum fm_code plain(struct fm_tokens *tokens, const char *text, size_t len, const char *suffix, size_t suffix_len,
                          struct fm_error *error) {
    llama_token first = llama_vocab_bos(tokens->vocab);
    bool nothing = !suffix && len == 0; /* then the answer may be any text, from the start */
    if (nothing && first == LLAMA_TOKEN_NULL) {
        return fm_fail(error, FM_INVALID_REQUEST, "the prompt is empty");
    }
    if (nothing || llama_vocab_get_add_bos(tokens->vocab)) {
        fm_tokens_append(tokens, first);
    }
    enum fm_code code = suffix ? infill(tokens, text, len, suffix, suffix_len, error)
                               : fm_tokens_add(tokens, text, len, FM_TOKENS_TEXT, error);
    code = code ? code : fm_tokens_check(tokens, fm_tokens_count(tokens), false, error);
    return code == FM_OK && tokens->buf.failed ? fm_fail_no_memory(error) : code;
}

enum fm_code fm_prompter_plain_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                      const char *suffix, size_t suffix_len, size_t context, llama_token **tokens,
                                      size_t *count, struct fm_error *error) {
    struct fm_tokens all = new_tokens(prompter, context);
    return fm_tokens_take(&all, plain(&all, text, len, suffix, suffix_len, error), tokens, count);
}

enum fm_code fm_prompter_text_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                     llama_token **tokens, size_t *count, struct fm_error *error) {
    struct fm_tokens all = new_tokens(prompter, SIZE_MAX);
    return fm_tokens_take(&all, fm_tokens_add(&all, text, len, FM_TOKENS_TEXT, error), tokens, count);
}

enum fm_code fm_prompter_mark_tokens(const struct fm_prompter *prompter, const char *mark, llama_token **tokens,
                                     size_t *count, struct fm_error *error) {
    struct fm_tokens all = new_tokens(prompter, SIZE_MAX);
    return fm_tokens_take(&all, fm_tokens_add(&all, mark, strlen(mark), FM_TOKENS_MARKS, error), tokens, count);
}
