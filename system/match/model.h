/* The local model for the matcher: fm-proxy as a child, called by protocol/client. One thread. */
#ifndef SY_MODEL_H
#define SY_MODEL_H

#include "base/error.h"
#include "commands/query.h"

#include <stddef.h>
#include <stdint.h>

struct fm_buf;
struct json_object;
struct sy_example;

/* What a model is asked. Borrowed. */
struct sy_question {
    const char *instructions;
    const struct sy_example *examples;
    size_t example_count;
    const struct fm_buf *prompt;
    const struct fm_buf *schema; /* the JSON Schema of the answer */
    int64_t ms;                  /* time limit for the answer; 0: the picker's own */
};

/* A model that picks. */
struct sy_picker {
    void *self;
    /* Asks a question. The caller frees `*answer` with json_object_put. The answer may not match the schema. May block
     * as long as the picker's time limit. */
    enum fm_code (*pick)(void *self, const struct sy_question *question, struct json_object **answer,
                         struct fm_error *error);
    /* Returns `count` vectors of `*size` numbers, one after the other; the caller frees `*vectors`. The function is
     * NULL if there is no model that embeds. */
    enum fm_code (*embed)(void *self, const char *const *texts, size_t count, int64_t ms, float **vectors, size_t *size,
                          struct fm_error *error);
};

/* A member that is NULL or 0 means its default. */
struct sy_proxy_options {
    const char *path;             /* the path of fm-proxy; required */
    const char *const *arguments; /* NULL-terminated */
    const char *model;            /* the model's id; NULL: the first model */
    const char *embedding_models; /* the folder of a model that embeds; NULL: there is none */
    int64_t ms;                   /* time limit for an answer, including the first load of the model; default 60,000 */
    int cancel_fd;                /* when it becomes readable, the answer is cancelled (FM_CANCELLED); default: none */
};

struct sy_proxy;

/* Makes a helper. The first question starts its process. NULL: out of memory. Free the helper with sy_proxy_free, which
 * ends the process. */
struct sy_proxy *sy_proxy_new(const struct sy_proxy_options *options);
void sy_proxy_free(struct sy_proxy *proxy);

/* A picker that asks this helper, valid as long as the helper. FM_UNAVAILABLE: the helper does not start, or has no
 * model. */
struct sy_picker sy_proxy_picker(struct sy_proxy *proxy);

/* This helper as a model for query. An answer has 400 tokens at most. */
struct sy_model sy_proxy_model(struct sy_proxy *proxy);

#endif
