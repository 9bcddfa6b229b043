/*
 * Turns messages into the entries of a transcript. Its form is that of the library's own transcripts: instructions,
 * then "user", "response" and "tool" entries; each entry and each part has a unique id.
 */
#include "engine/apple/transcript.h"
#include "protocol/json_check.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

struct writer {
    struct fm_json_writer w;
    int next_id;
};

static bool is_role(const struct fm_message *message, const char *role) {
    return strcmp(message->role, role) == 0;
}

static void write_id(struct writer *writer) {
    char id[24];
    snprintf(id, sizeof id, "fm-%d", writer->next_id++);
    fm_json_key_str(&writer->w, "id", id);
}

static void begin_entry(struct writer *writer, const char *role) {
    fm_json_object_begin(&writer->w);
    fm_json_key_str(&writer->w, "role", role);
    write_id(writer);
}

static void write_part(struct writer *writer, const char *text, size_t len) {
    fm_json_object_begin(&writer->w);
    fm_json_key_str(&writer->w, "type", "text");
    write_id(writer);
    fm_json_key(&writer->w, "text");
    fm_json_string(&writer->w, text, len);
    fm_json_object_end(&writer->w);
}

static void write_text(struct writer *writer, const char *text, size_t len) {
    fm_json_key(&writer->w, "contents");
    fm_json_array_begin(&writer->w);
    write_part(writer, text, len);
    fm_json_array_end(&writer->w);
}

/* Writes an instruction as a separate paragraph. */
static void write_instruction(struct writer *writer, const char *text, size_t len, bool *first) {
    if (!*first) {
        write_part(writer, "\n\n", 2);
    }
    write_part(writer, text, len);
    *first = false;
}

static void write_instructions(struct writer *writer, const struct fm_kit_job *job,
                               const struct fm_apple_extras *extras) {
    bool some = extras->tools || extras->instructions;
    for (size_t i = 0; i < job->message_count; i++) {
        some = some || is_role(&job->messages[i], "system");
    }
    if (!some) {
        return;
    }
    begin_entry(writer, "instructions");
    fm_json_key(&writer->w, "contents");
    fm_json_array_begin(&writer->w);
    bool first = true;
    for (size_t i = 0; i < job->message_count; i++) {
        if (is_role(&job->messages[i], "system")) {
            write_instruction(writer, job->messages[i].content, job->messages[i].content_len, &first);
        }
    }
    if (extras->instructions) {
        write_instruction(writer, extras->instructions, strlen(extras->instructions), &first);
    }
    fm_json_array_end(&writer->w);
    fm_json_key(&writer->w, "tools");
    if (extras->tools) {
        fm_json_value(&writer->w, extras->tools);
    } else {
        fm_json_array_begin(&writer->w);
        fm_json_array_end(&writer->w);
    }
    fm_json_object_end(&writer->w);
}

static void write_user(struct writer *writer, const char *text, size_t len, struct json_object *format) {
    begin_entry(writer, "user");
    write_text(writer, text, len);
    fm_json_key(&writer->w, "options");
    fm_json_object_begin(&writer->w);
    fm_json_object_end(&writer->w);
    if (format) {
        struct json_object *title = NULL;
        json_object_object_get_ex(format, "title", &title);
        fm_json_key(&writer->w, "responseFormat");
        fm_json_object_begin(&writer->w);
        fm_json_key_str(&writer->w, "type", "jsonSchema");
        fm_json_key(&writer->w, "jsonSchema");
        fm_json_object_begin(&writer->w);
        fm_json_key_str(&writer->w, "name", title ? json_object_get_string(title) : "Answer");
        fm_json_key_value(&writer->w, "schema", format);
        fm_json_object_end(&writer->w);
        fm_json_object_end(&writer->w);
    }
    fm_json_object_end(&writer->w);
}

/*
 * Writes a call's arguments, which are the text of an object. If a host sent something else, that becomes the only
 * member of an object, so that nothing is lost.
 */
static void write_arguments(struct writer *writer, const struct fm_tool_call *call) {
    size_t offset;
    bool json = !fm_json_check(call->arguments, call->arguments_len, FM_ENGINE_VALUES_MAX, &offset);
    fm_json_key(&writer->w, "arguments");
    if (json && call->arguments[strspn(call->arguments, " \t\r\n")] == '{') {
        fm_json_string(&writer->w, call->arguments, call->arguments_len);
    } else {
        struct fm_buf wrapped;
        fm_buf_init(&wrapped, call->arguments_len * 6 + 64);
        struct fm_json_writer inner = fm_json_writer_on(&wrapped);
        fm_json_object_begin(&inner);
        fm_json_key(&inner, "arguments");
        fm_json_string(&inner, call->arguments, call->arguments_len);
        fm_json_object_end(&inner);
        fm_json_string(&writer->w, wrapped.data ? wrapped.data : "", wrapped.len);
        writer->w.buf->failed |= wrapped.failed;
        fm_buf_free(&wrapped);
    }
}

static void write_assistant(struct writer *writer, const struct fm_message *message) {
    if (message->content_len > 0 || message->tool_call_count == 0) {
        begin_entry(writer, "response");
        write_text(writer, message->content, message->content_len);
        fm_json_key(&writer->w, "assets");
        fm_json_array_begin(&writer->w);
        fm_json_array_end(&writer->w);
        fm_json_object_end(&writer->w);
    }
    if (message->tool_call_count == 0) {
        return;
    }
    begin_entry(writer, "response");
    fm_json_key(&writer->w, "toolCalls");
    fm_json_array_begin(&writer->w);
    for (size_t i = 0; i < message->tool_call_count; i++) {
        fm_json_object_begin(&writer->w);
        fm_json_key_str(&writer->w, "id", message->tool_calls[i].id);
        fm_json_key_str(&writer->w, "name", message->tool_calls[i].name);
        write_arguments(writer, &message->tool_calls[i]);
        fm_json_object_end(&writer->w);
    }
    fm_json_array_end(&writer->w);
    fm_json_object_end(&writer->w);
}

/*
 * Returns the tool's name in the call that has this id and comes before message `index`. The kit has checked that there
 * is such a call.
 */
static const char *called(const struct fm_kit_job *job, size_t index, const char *id) {
    for (size_t i = index; i > 0; i--) {
        const struct fm_message *message = &job->messages[i - 1];
        for (size_t k = 0; k < message->tool_call_count; k++) {
            if (strcmp(message->tool_calls[k].id, id) == 0) {
                return message->tool_calls[k].name;
            }
        }
    }
    return "tool";
}

static void write_output(struct writer *writer, const struct fm_kit_job *job, size_t index) {
    const struct fm_message *message = &job->messages[index];
    fm_json_object_begin(&writer->w);
    fm_json_key_str(&writer->w, "role", "tool");
    fm_json_key_str(&writer->w, "id", message->tool_call_id);
    fm_json_key_str(&writer->w, "toolCallID", message->tool_call_id);
    fm_json_key_str(&writer->w, "toolName", called(job, index, message->tool_call_id));
    write_text(writer, message->content, message->content_len);
    fm_json_object_end(&writer->w);
}

static void write_entry(struct writer *writer, const struct fm_kit_job *job, size_t index) {
    const struct fm_message *message = &job->messages[index];
    if (is_role(message, "user")) {
        write_user(writer, message->content, message->content_len, NULL);
    } else if (is_role(message, "assistant")) {
        write_assistant(writer, message);
    } else if (is_role(message, "tool")) {
        write_output(writer, job, index);
    }
}

/* Returns the last message that is not a system message; NULL: there is none. */
static const struct fm_message *last_message(const struct fm_kit_job *job) {
    size_t count = job->message_count;
    while (count > 0 && is_role(&job->messages[count - 1], "system")) {
        count--;
    }
    return count > 0 ? &job->messages[count - 1] : NULL;
}

void fm_apple_transcript(const struct fm_kit_job *job, const struct fm_apple_extras *extras, bool whole,
                         struct fm_buf *json, const char **prompt, size_t *prompt_len) {
    const struct fm_message *last = last_message(job);
    bool asked = last && is_role(last, "user");
    *prompt = asked ? last->content : last && is_role(last, "tool") ? FM_APPLE_AFTER_TOOLS : FM_APPLE_GO_ON;
    *prompt_len = asked ? last->content_len : strlen(*prompt);
    struct writer writer = {.w = fm_json_writer_on(json)};
    fm_json_object_begin(&writer.w);
    fm_json_key_int(&writer.w, "version", 1);
    fm_json_key_str(&writer.w, "type", "FoundationModels.Transcript");
    fm_json_key(&writer.w, "transcript");
    fm_json_object_begin(&writer.w);
    fm_json_key(&writer.w, "entries");
    fm_json_array_begin(&writer.w);
    write_instructions(&writer, job, extras);
    for (size_t i = 0; i < job->message_count; i++) {
        if (!asked || &job->messages[i] != last) {
            write_entry(&writer, job, i);
        }
    }
    if (whole) {
        write_user(&writer, *prompt, *prompt_len, extras->format);
    }
    fm_json_array_end(&writer.w);
    fm_json_object_end(&writer.w);
    fm_json_object_end(&writer.w);
    fm_buf_append_char(json, '\0');
}
