/* A job's messages, tools and calls in the form that a chat template takes, in the tool form that fits. */
#include "engine/chat/tools.h"
#include "protocol/json_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* bytes; a request has at most 10 MB, and a JSON escape can turn one byte into six */
#define PROMPT_MAX (64u * 1024u * 1024u)

#define FUNCTION_NAME    "<function-name>" /* stands for the real text */
#define ARGUMENTS_OBJECT "<args-json-object>"

/* ---- one message's text ---- */

static void write_tool(const struct fm_tool *tool, struct fm_buf *text) {
    struct fm_json_writer w = fm_json_writer_on(text);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "type", "function");
    fm_json_key(&w, "function");
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "name", tool->name);
    if (tool->description) {
        fm_json_key_str(&w, "description", tool->description);
    }
    if (tool->parameters) {
        fm_json_key_value(&w, "parameters", tool->parameters);
    }
    fm_json_object_end(&w);
    fm_json_object_end(&w);
    fm_buf_append_char(text, '\n');
}

/* Explains how to call only if a call is allowed. The list of tools itself is the same for each tool_choice. */
static void write_tools(const struct fm_kit_job *job, struct fm_buf *text) {
    fm_buf_append_str(text, "# Tools\n\nThese functions are there to help with the user's request, one a line:\n"
                            "<tools>\n");
    for (size_t i = 0; i < job->tool_count; i++) {
        write_tool(&job->tools[i], text);
    }
    fm_buf_append_str(text, "</tools>");
    if (fm_tools_callable(job)) {
        fm_buf_append_str(text, "\n\nTo call one, answer with its name and its arguments as JSON in these tags, and end "
                                "there:\n");
    }
}

/* A call in the model's form. */
static void write_example(const struct fm_tool_form *form, struct fm_buf *text) {
    fm_buf_append(text, form->trigger.text, form->trigger.len);
    fm_buf_append(text, form->name.text, form->name.len);
    fm_buf_append_str(text, FUNCTION_NAME);
    fm_buf_append(text, form->arguments.text, form->arguments.len);
    fm_buf_append_str(text, ARGUMENTS_OBJECT);
    fm_buf_append(text, form->end.text, form->end.len);
}

/* Writes the content of `message`: `system` (NULL: none), and then the tools. */
static void write_system(const struct fm_kit_job *job, const struct fm_message *system, const struct fm_tool_form *form,
                         struct fm_chat_message *message, struct fm_buf *text) {
    const size_t start = text->len;
    if (system && system->content_len > 0) {
        fm_buf_append(text, system->content, system->content_len);
        fm_buf_append_str(text, "\n\n");
    }
    write_tools(job, text);
    const size_t example = text->len;
    if (fm_tools_callable(job) && form->native) {
        write_example(form, text);
        message->controls_at = example - start;
        message->controls_len = text->len - example;
    } else if (fm_tools_callable(job)) {
        fm_buf_append_str(text, FM_TOOL_BEGIN FM_TOOL_NAME_KEY FUNCTION_NAME FM_TOOL_ARGUMENTS_KEY ARGUMENTS_OBJECT
                                FM_TOOL_END);
    }
    message->content_len = text->len - start;
}

static void write_calls(const struct fm_message *message, struct fm_buf *text) {
    fm_buf_append(text, message->content, message->content_len);
    for (size_t i = 0; i < message->tool_call_count; i++) {
        const struct fm_tool_call *call = &message->tool_calls[i];
        fm_buf_append_str(text, i > 0 || message->content_len > 0 ? FM_TOOL_NEXT : FM_TOOL_BEGIN);
        fm_buf_append_str(text, FM_TOOL_NAME_KEY);
        struct fm_json_writer w = fm_json_writer_on(text);
        fm_json_str(&w, call->name);
        fm_buf_append_str(text, FM_TOOL_ARGUMENTS_KEY);
        fm_buf_append(text, call->arguments, call->arguments_len);
        fm_buf_append_str(text, FM_TOOL_END);
    }
}

static void write_outcome(const struct fm_message *message, bool first, struct fm_buf *text) {
    fm_buf_append_str(text, first ? "<tool_response>\n" : "\n<tool_response>\n");
    fm_buf_append(text, message->content, message->content_len);
    fm_buf_append_str(text, "\n</tool_response>");
}

/* ---- in our own form ---- */

static bool begins_with_system(const struct fm_kit_job *job) {
    return strcmp(job->messages[0].role, "system") == 0;
}

/*
 * Adds a message whose content is the next one in `text`. The pointers to the contents are set when all of `text` is
 * written.
 */
static struct fm_chat_message *add_written(struct fm_tool_prompt *prompt, const char *role) {
    struct fm_chat_message *message = &prompt->messages[prompt->chat.count++];
    *message = (struct fm_chat_message){.role = role};
    return message;
}

/* Adds the images of a message whose content comes after `before` bytes of another text. */
static void add_images(struct fm_tool_prompt *prompt, struct fm_chat_message *to, const struct fm_message *message,
                       size_t before) {
    to->images = prompt->images + prompt->image_count;
    to->image_count = message->image_count;
    for (size_t i = 0; i < message->image_count; i++) {
        const struct fm_image *image = &message->images[i];
        prompt->images[prompt->image_count++] = (struct fm_chat_image){before + image->at, image->index};
    }
}

/*
 * Adds a user's text after outcomes to the turn of the outcomes: many templates want the user and the assistant to
 * alternate.
 */
static void join_user(struct fm_tool_prompt *prompt, struct fm_chat_message *outcomes,
                      const struct fm_message *message) {
    add_images(prompt, outcomes, message, outcomes->content_len + 1);
    fm_buf_append_char(&prompt->text, '\n');
    fm_buf_append(&prompt->text, message->content, message->content_len);
    outcomes->content_len += 1 + message->content_len;
}

static void add_messages(struct fm_tool_prompt *prompt, const struct fm_kit_job *job) {
    struct fm_chat_message *outcomes = NULL; /* the turn of the last message, if that is a tool's message */
    for (size_t i = 0; i < job->message_count; i++) {
        const struct fm_message *message = &job->messages[i];
        size_t start = prompt->text.len;
        bool first = !outcomes;
        if (message->tool_call_id) {
            outcomes = first ? add_written(prompt, "user") : outcomes;
            write_outcome(message, first, &prompt->text);
            outcomes->content_len += prompt->text.len - start;
            continue;
        }
        if (outcomes && strcmp(message->role, "user") == 0) {
            join_user(prompt, outcomes, message);
            outcomes = NULL;
            continue;
        }
        outcomes = NULL;
        if (i == 0 && job->tool_count > 0 && begins_with_system(job)) {
            continue; /* the message is there already */
        }
        struct fm_chat_message *added = add_written(prompt, message->role);
        add_images(prompt, added, message, 0);
        added->reasoning = message->reasoning_len > 0 ? message->reasoning : NULL;
        added->reasoning_len = message->reasoning_len;
        if (message->tool_call_count > 0) {
            write_calls(message, &prompt->text);
            added->content_len = prompt->text.len - start;
        } else {
            added->content = message->content;
            added->content_len = message->content_len;
        }
    }
}

/* Adds the first message, a system message, which describes the tools. */
static void add_system(struct fm_tool_prompt *prompt, const struct fm_kit_job *job, const struct fm_tool_form *form) {
    struct fm_chat_message *system = add_written(prompt, "system");
    write_system(job, begins_with_system(job) ? &job->messages[0] : NULL, form, system, &prompt->text);
}

static void write_own(struct fm_tool_prompt *prompt, const struct fm_kit_job *job) {
    if (job->tool_count > 0) {
        add_system(prompt, job, &fm_tool_form_own);
    }
    add_messages(prompt, job);
    size_t at = 0;
    for (size_t i = 0; i < prompt->chat.count && !prompt->text.failed; i++) {
        struct fm_chat_message *message = &prompt->messages[i];
        if (!message->content) {
            message->content = prompt->text.data + at;
            at += message->content_len;
        }
    }
}

/* ---- in the model's form ---- */

const struct fm_tool_call *fm_tool_answered(const struct fm_kit_job *job, size_t index, size_t *called) {
    const char *id = job->messages[index].tool_call_id;
    while (id && index-- > 0) {
        const struct fm_message *message = &job->messages[index];
        for (size_t i = 0; i < message->tool_call_count; i++) {
            if (strcmp(message->tool_calls[i].id, id) == 0) {
                *called = index;
                return &message->tool_calls[i];
            }
        }
    }
    return NULL;
}

static void add_tools(struct fm_tool_prompt *prompt, const struct fm_kit_job *job) {
    size_t at = prompt->text.len;
    for (size_t i = 0; i < job->tool_count; i++) {
        const struct fm_tool *tool = &job->tools[i];
        size_t start = prompt->text.len;
        struct fm_json_writer w = fm_json_writer_on(&prompt->text);
        if (tool->parameters) {
            fm_json_value(&w, tool->parameters);
        } else {
            fm_buf_append_str(&prompt->text, "{\"type\":\"object\",\"properties\":{}}");
        }
        prompt->tools[i] = (struct fm_chat_tool){
            .name = tool->name, .description = tool->description, .parameters_len = prompt->text.len - start};
    }
    prompt->chat.tool_count = job->tool_count;
    for (size_t i = 0; i < job->tool_count && !prompt->text.failed; i++) {
        prompt->tools[i].parameters = prompt->text.data + at;
        at += prompt->tools[i].parameters_len;
    }
}

/* Writes the id of a call, with the call's number in the conversation or in its message, whichever the form uses. */
static void write_id(const struct fm_tool_form *form, const char *name, size_t number, size_t in_message,
                     struct fm_buf *text) {
    const struct fm_tool_mark *before = &form->id_before;
    const struct fm_tool_mark *after = &form->id_after;
    char digits[32];
    if (form->ids == FM_TOOL_IDS_OF_LEN) {
        snprintf(digits, sizeof digits, "%0*zu", (int)FM_TOOL_ID_LEN, number % 1000000000u);
        fm_buf_append_str(text, digits);
    } else {
        snprintf(digits, sizeof digits, "%zu", in_message);
        fm_buf_append(text, before->text, before->len);
        fm_buf_append_str(text, name);
        fm_buf_append(text, after->text, after->place_at);
        fm_buf_append_str(text, digits);
        fm_buf_append(text, after->text + after->place_at + 1, after->len - after->place_at - 1);
    }
    fm_buf_append_char(text, '\0');
}

static void write_ids(struct fm_tool_prompt *prompt, const struct fm_kit_job *job, const struct fm_tool_form *form) {
    size_t count = 0;
    for (size_t i = 0; i < job->message_count && form->ids; i++) {
        const struct fm_message *message = &job->messages[i];
        for (size_t k = 0; k < message->tool_call_count; k++) {
            write_id(form, message->tool_calls[k].name, count++, k, &prompt->text);
        }
    }
}

/* Adds the calls of all messages. Ids that the form needs are written to the text before them. */
static void add_calls(struct fm_tool_prompt *prompt, const struct fm_kit_job *job, const struct fm_tool_form *form) {
    struct fm_chat_call *call = prompt->calls;
    const char *id = prompt->text.data;
    for (size_t i = 0; i < job->message_count; i++) {
        const struct fm_message *message = &job->messages[i];
        for (size_t k = 0; k < message->tool_call_count; k++, call++) {
            const struct fm_tool_call *from = &message->tool_calls[k];
            *call = (struct fm_chat_call){from->id, from->name, from->arguments, from->arguments_len};
            if (form->ids) {
                call->id = id;
                id += strlen(id) + 1;
            }
        }
    }
}

/* Adds the message `index` of the job. `prompt` has the messages before it, and `added` more. */
static void add_native(struct fm_tool_prompt *prompt, const struct fm_kit_job *job, size_t index, size_t added) {
    const struct fm_message *message = &job->messages[index];
    size_t called = 0;
    const struct fm_tool_call *answered = fm_tool_answered(job, index, &called);
    const struct fm_chat_call *shown = NULL;
    if (answered) {
        shown = prompt->messages[called + added].calls + (answered - job->messages[called].tool_calls);
    }
    prompt->messages[prompt->chat.count] = (struct fm_chat_message){
        .role = message->role,
        .content = message->content,
        .content_len = message->content_len,
        .reasoning = message->reasoning_len > 0 ? message->reasoning : NULL,
        .reasoning_len = message->reasoning_len,
        .call_count = message->tool_call_count,
        .answered_id = shown ? shown->id : NULL,
        .answered_name = shown ? shown->name : NULL,
    };
    add_images(prompt, &prompt->messages[prompt->chat.count++], message, 0);
}

static void write_native(struct fm_tool_prompt *prompt, const struct fm_kit_job *job,
                         const struct fm_tool_form *form) {
    const bool tells = form->tells_tools && job->tool_count > 0;
    const struct fm_chat_call *call = prompt->calls;
    write_ids(prompt, job, form);
    const size_t start = prompt->text.len;
    if (tells) {
        add_system(prompt, job, form);
    } else {
        add_tools(prompt, job);
    }
    if (prompt->text.failed) {
        return;
    }
    add_calls(prompt, job, form);
    prompt->messages[0].content = tells ? prompt->text.data + start : NULL;
    const size_t first = tells && begins_with_system(job) ? 1 : 0;
    const size_t added = prompt->chat.count - first;
    for (size_t i = first; i < job->message_count; i++) {
        add_native(prompt, job, i, added);
        prompt->messages[i + added].calls = call;
        call += job->messages[i].tool_call_count;
    }
}

static size_t count_images(const struct fm_kit_job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->message_count; i++) {
        count += job->messages[i].image_count;
    }
    return count;
}

static size_t count_calls(const struct fm_kit_job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->message_count; i++) {
        count += job->messages[i].tool_call_count;
    }
    return count;
}

/* ---- all ---- */

enum fm_code fm_tool_prompt_init(struct fm_tool_prompt *prompt, const struct fm_kit_job *job,
                                 const struct fm_tool_form *form, struct fm_error *error) {
    *prompt = (struct fm_tool_prompt){.messages = calloc(job->message_count + 1, sizeof *prompt->messages),
                                      .tools = calloc(job->tool_count + 1, sizeof *prompt->tools),
                                      .calls = calloc(count_calls(job) + 1, sizeof *prompt->calls),
                                      .images = calloc(count_images(job) + 1, sizeof *prompt->images)};
    fm_buf_init(&prompt->text, PROMPT_MAX);
    prompt->chat = (struct fm_chat){.messages = prompt->messages, .tools = prompt->tools};
    bool made = prompt->messages && prompt->tools && prompt->calls && prompt->images;
    if (made && form->native) {
        write_native(prompt, job, form);
    } else if (made) {
        write_own(prompt, job);
    }
    if (!made || prompt->text.failed) {
        fm_tool_prompt_free(prompt);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_tool_prompt_free(struct fm_tool_prompt *prompt) {
    free(prompt->messages);
    free(prompt->tools);
    free(prompt->calls);
    free(prompt->images);
    fm_buf_free(&prompt->text);
    *prompt = (struct fm_tool_prompt){.text = {.data = NULL}};
}
