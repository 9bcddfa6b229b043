/*
 * A conversation in the form that chat templates take: messages with their images and calls, the tools, and how much to
 * think.
 */
#ifndef FM_ENGINE_CHAT_CHAT_H
#define FM_ENGINE_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

struct fm_chat_call { /* all borrowed, as below */
    const char *id;
    const char *name;
    const char *arguments; /* JSON text of an object */
    size_t arguments_len;
};

/* An image in a message. Templates don't see it: the caller that renders puts a mark in its place. */
struct fm_chat_image {
    size_t at;    /* bytes of the content before the image */
    size_t index; /* the index among the job's images */
};

struct fm_chat_message {
    const char *role;
    const char *content;
    size_t content_len;
    size_t controls_at; /* in the content, before any image: text in these `controls_len` bytes may be control tokens */
    size_t controls_len;
    const struct fm_chat_image *images; /* of a user's message, in order */
    size_t image_count;
    const char *reasoning; /* the assistant's; NULL: none. Templates that show no reasoning, or none beside a text and
                              calls, leave it out silently */
    size_t reasoning_len;
    const struct fm_chat_call *calls; /* of an assistant's message */
    size_t call_count;
    const char *answered_id; /* of a message of a tool: the id of the call that it answers; else NULL */
    const char *answered_name;
};

struct fm_chat_tool {
    const char *name;
    const char *description; /* NULL: none */
    const char *parameters;  /* JSON text of a schema */
    size_t parameters_len;
};

/* What a template gets about thinking, under the names that templates use. */
enum fm_chat_thinking {
    FM_CHAT_THINKING_DEFAULT,
    FM_CHAT_THINKING_ON,
    FM_CHAT_THINKING_OFF,
};

/*
 * What a template renders. Calls and tools are only for templates that support them, because other templates leave them
 * out silently.
 */
struct fm_chat {
    const struct fm_chat_message *messages;
    size_t count;
    const struct fm_chat_tool *tools;
    size_t tool_count;
    enum fm_chat_thinking thinking;
    const char *effort; /* how much to think, such as "low"; NULL: not set */
    bool closed;        /* without the start of the assistant's turn */
};

#endif
