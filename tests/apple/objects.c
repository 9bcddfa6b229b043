/* The stand-in's objects and exported functions. They count references and check every argument. */
#include "standin.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIVE 0x5afe0b1e
#define DEAD  0xdeadbeef

#define WORKERS_END_MS 2000

static atomic_int objects_alive;
static atomic_int strings_alive;
atomic_int tasks_alive;
/* This thread-local variable is in the static block of each thread. The leak checker of gcc 12 can't read the dynamic
 * block of a library that is loaded later. */
__attribute__((tls_model("initial-exec"))) static _Thread_local bool in_callback;

void broken(int rule, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "stand-in: rule %d is broken: ", rule);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(STATUS_BROKEN);
}

void enter(const char *function) {
    if (in_callback) {
        broken(1, "%s is called inside of a callback", function);
    }
}

void callback_begins(void) {
    in_callback = true;
}

void callback_ends(void) {
    in_callback = false;
}

bool is_told(const char *word, int64_t *number) {
    const char *told = getenv("FM_ENGINE_STANDIN");
    size_t len = strlen(word);
    while (told && *told) {
        size_t part = strcspn(told, ",");
        if (part >= len && memcmp(told, word, len) == 0 && (part == len || told[len] == '=')) {
            if (number && part > len) {
                *number = strtoll(told + len + 1, NULL, 10);
            }
            return true;
        }
        told += part + (told[part] == ',');
    }
    return false;
}

/* ---- references ---- */

void *make(enum kind kind, size_t size) {
    struct object *object = calloc(1, size);
    if (!object) {
        abort();
    }
    object->magic = ALIVE;
    object->kind = kind;
    atomic_init(&object->refs, 1);
    atomic_fetch_add(&objects_alive, 1);
    return object;
}

void retain(void *ref) {
    struct object *object = ref;
    atomic_fetch_add(&object->refs, 1);
}

struct property {
    struct object object;
    char *name;
    char *schema; /* JSON */
    bool optional;
};

struct schema {
    struct object object;
    char *name;
    struct json_object *properties;
    struct json_object *required;
    struct json_object *definitions;
};

struct prompt {
    struct object object;
    struct fm_buf text;
};

struct stream {
    struct object object;
    struct session *session;
    char *prompt;
    int64_t max_tokens;
    struct run *run; /* NULL: not begun */
};

static void destroy_tool(struct tool *tool) {
    if (tool->waiting_count > 0) {
        broken(7, "tool %s is released while a call of it waits", tool->name);
    }
    pthread_mutex_destroy(&tool->lock);
    free(tool->name);
    free(tool->schema);
}

static void destroy_session(struct session *session) {
    for (size_t i = 0; i < session->tool_count; i++) {
        release(session->tools[i]);
    }
    free(session->transcript);
}

static void cancel(struct run *run) {
    atomic_store(&run->cancelled, true);
}

static void destroy(struct object *object) {
    if (object->kind == SESSION) {
        destroy_session((struct session *)object);
    } else if (object->kind == PROMPT) {
        fm_buf_free(&((struct prompt *)object)->text);
    } else if (object->kind == STREAM) {
        struct stream *stream = (struct stream *)object;
        if (stream->run) {
            cancel(stream->run);
            run_drop(stream->run);
        }
        release(stream->session);
        free(stream->prompt);
    } else if (object->kind == TASK) {
        run_drop(((struct task *)object)->run);
    } else if (object->kind == SCHEMA) {
        struct schema *schema = (struct schema *)object;
        free(schema->name);
        json_object_put(schema->properties);
        json_object_put(schema->required);
        json_object_put(schema->definitions);
    } else if (object->kind == PROPERTY) {
        free(((struct property *)object)->name);
        free(((struct property *)object)->schema);
    } else if (object->kind == TOOL) {
        destroy_tool((struct tool *)object);
    } else if (object->kind == CONTENT) {
        free(((struct content *)object)->json);
    }
}

void release(const void *ref) {
    struct object *object = (struct object *)(uintptr_t)ref;
    if (!object || object->magic != ALIVE) {
        broken(3, "what is released is no object, or was released before");
    }
    if (atomic_fetch_sub(&object->refs, 1) == 1) {
        destroy(object);
        object->magic = DEAD;
        free(object);
        atomic_fetch_sub(&objects_alive, 1);
    }
}

void *expect(const void *ref, enum kind kind) {
    struct object *object = (struct object *)(uintptr_t)ref;
    if (!object || object->magic != ALIVE || object->kind != kind) {
        broken(3, "an object of kind %d is expected; this is %s", (int)kind, object ? "another, or freed" : "NULL");
    }
    return object;
}

char *give_string(const char *text, size_t len) {
    char *copy = malloc(len + 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    atomic_fetch_add(&strings_alive, 1);
    return copy;
}

/* A process that ends in the middle of tasks (_exit) does not get here. */
__attribute__((destructor)) static void check_what_is_left(void) {
    /* A worker that returns from its last callback still holds the task's session. */
    for (int ms = 0; ms < WORKERS_END_MS && atomic_load(&objects_alive) > 0; ms++) {
        usleep(1000);
    }
    int objects = atomic_load(&objects_alive);
    int strings = atomic_load(&strings_alive);
    int tasks = atomic_load(&tasks_alive);
    if (tasks > 0) {
        broken(2, "the process ends before the last callback of %d tasks", tasks);
    }
    if (objects > 0 || strings > 0) {
        broken(3, "%d references and %d strings are left", objects, strings);
    }
}

EXPORT void FMRelease(const void *object) {
    enter("FMRelease");
    release(object);
}

EXPORT void FMFreeString(char *string) {
    enter("FMFreeString");
    if (string) {
        atomic_fetch_sub(&strings_alive, 1);
        free(string);
    }
}

/* ---- model ---- */

EXPORT const void *FMSystemLanguageModelCreate(int use_case, int guardrails) {
    enter("FMSystemLanguageModelCreate");
    if (use_case != 0 || guardrails < 0 || guardrails > 1) {
        broken(3, "no such use case or guardrails");
    }
    return make(MODEL, sizeof(struct object));
}

EXPORT bool FMSystemLanguageModelIsAvailable(const void *model, int *reason) {
    int64_t number = 255;
    enter("FMSystemLanguageModelIsAvailable");
    expect(model, MODEL);
    if (!is_told("reason", &number)) {
        return true;
    }
    *reason = (int)number;
    return false;
}

EXPORT int FMSystemLanguageModelGetContextSize(const void *model) {
    int64_t tokens = 4096;
    enter("FMSystemLanguageModelGetContextSize");
    expect(model, MODEL);
    (void)is_told("context", &tokens);
    return (int)tokens;
}

/* ---- sessions and prompts ---- */

EXPORT const void *FMTranscriptCreateFromJSONString(const char *json, int *status, char **why) {
    enter("FMTranscriptCreateFromJSONString");
    (void)status;
    (void)why;
    check_transcript(json);
    struct session *session = make(SESSION, sizeof *session);
    session->transcript = strdup(json);
    return session;
}

EXPORT const void *FMLanguageModelSessionCreateFromTranscript(const void *transcript, const void *model,
                                                              const void **tools, int count) {
    enter("FMLanguageModelSessionCreateFromTranscript");
    const struct session *from = expect(transcript, SESSION);
    expect(model, MODEL);
    struct session *session = make(SESSION, sizeof *session);
    session->transcript = strdup(from->transcript);
    for (int i = 0; i < count; i++) {
        struct tool *tool = expect(tools[i], TOOL);
        for (size_t k = 0; k < session->tool_count; k++) {
            if (session->tools[k]->callback == tool->callback) {
                broken(6, "two tools have one callback: who is called can't be told");
            }
        }
        retain(tool);
        session->tools[session->tool_count++] = tool;
    }
    return session;
}

EXPORT const void *FMComposedPromptInitialize(void) {
    enter("FMComposedPromptInitialize");
    struct prompt *prompt = make(PROMPT, sizeof *prompt);
    fm_buf_init(&prompt->text, TEXTS_MAX);
    return prompt;
}

EXPORT void FMComposedPromptAddText(const void *ref, const char *text) {
    enter("FMComposedPromptAddText");
    struct prompt *prompt = expect(ref, PROMPT);
    fm_buf_append_str(&prompt->text, text);
}

static char *prompt_text(const void *ref) {
    const struct prompt *prompt = expect(ref, PROMPT);
    return strndup(prompt->text.data ? prompt->text.data : "", prompt->text.len);
}

/* ---- tasks ---- */

static struct run *new_run(struct session *session, void *user) {
    struct run *run = calloc(1, sizeof *run);
    if (!run) {
        abort();
    }
    retain(session);
    run->session = session;
    run->user = user;
    fm_buf_init(&run->text, TEXTS_MAX);
    atomic_init(&run->owners, 2);
    return run;
}

static const void *new_task(struct run *run) {
    struct task *task = make(TASK, sizeof *task);
    task->run = run;
    run_start(run);
    return task;
}

EXPORT const void *FMLanguageModelSessionStreamResponse(const void *ref, const void *prompt, const char *options) {
    enter("FMLanguageModelSessionStreamResponse");
    struct session *session = expect(ref, SESSION);
    struct stream *stream = make(STREAM, sizeof *stream);
    retain(session);
    stream->session = session;
    stream->prompt = prompt_text(prompt);
    stream->max_tokens = check_options(options);
    return stream;
}

EXPORT void FMLanguageModelSessionResponseStreamIterate(const void *ref, void *user, text_fn *callback) {
    enter("FMLanguageModelSessionResponseStreamIterate");
    struct stream *stream = expect(ref, STREAM);
    if (stream->run) {
        broken(5, "a stream is begun twice");
    }
    struct run *run = new_run(stream->session, user);
    run->kind = RUN_STREAM;
    run->prompt = strdup(stream->prompt);
    run->max_tokens = stream->max_tokens;
    run->on_text = callback;
    stream->run = run;
    run_start(run);
}

EXPORT const void *FMLanguageModelSessionRespondWithSchemaFromJSON(const void *ref, const void *prompt,
                                                                   const char *schema, const char *options, void *user,
                                                                   content_fn *callback) {
    enter("FMLanguageModelSessionRespondWithSchemaFromJSON");
    struct run *run = new_run(expect(ref, SESSION), user);
    check_schema(schema);
    run->kind = RUN_SCHEMA;
    run->prompt = prompt_text(prompt);
    run->schema = strdup(schema);
    run->max_tokens = check_options(options);
    run->on_content = callback;
    return new_task(run);
}

EXPORT const void *FMSystemLanguageModelTokenCountForTranscript(const void *model, const void *ref, void *user,
                                                                count_fn *callback) {
    enter("FMSystemLanguageModelTokenCountForTranscript");
    expect(model, MODEL);
    struct run *run = new_run(expect(ref, SESSION), user);
    run->kind = RUN_COUNT;
    run->on_count = callback;
    return new_task(run);
}

EXPORT void FMTaskCancel(const void *ref) {
    enter("FMTaskCancel");
    struct task *task = expect(ref, TASK);
    cancel(task->run);
}

EXPORT char *FMGeneratedContentGetJSONString(const void *ref) {
    enter("FMGeneratedContentGetJSONString");
    const struct content *content = expect(ref, CONTENT);
    return give_string(content->json, strlen(content->json));
}

/* ---- tools ---- */

EXPORT const void *FMGenerationSchemaCreate(const char *name, const char *description) {
    enter("FMGenerationSchemaCreate");
    (void)description;
    struct schema *schema = make(SCHEMA, sizeof *schema);
    schema->name = strdup(name);
    schema->properties = json_object_new_object();
    schema->required = json_object_new_array();
    schema->definitions = json_object_new_object();
    return schema;
}

/* The JSON schema for one of the library's type names; NULL: unknown name. */
static struct json_object *schema_of(const char *type, size_t len) {
    static const char *const scalars[] = {"string", "number", "integer", "boolean"};
    struct json_object *made = json_object_new_object();
    char pointer[160];
    if (len > 7 && memcmp(type, "array<", 6) == 0 && type[len - 1] == '>') {
        if (len == 14 && memcmp(type, "array<boolean>", 14) == 0) {
            broken(3, "the library makes strings of array<boolean>");
        }
        json_object_object_add(made, "type", json_object_new_string("array"));
        json_object_object_add(made, "items", schema_of(type + 6, len - 7));
        return made;
    }
    for (size_t i = 0; i < 4; i++) {
        if (strlen(scalars[i]) == len && memcmp(scalars[i], type, len) == 0) {
            json_object_object_add(made, "type", json_object_new_string(scalars[i]));
            return made;
        }
    }
    snprintf(pointer, sizeof pointer, "#/$defs/%.*s", (int)len, type);
    json_object_object_add(made, "$ref", json_object_new_string(pointer));
    return made;
}

EXPORT const void *FMGenerationSchemaPropertyCreate(const char *name, const char *description, const char *type,
                                                    bool optional) {
    enter("FMGenerationSchemaPropertyCreate");
    (void)description;
    struct property *property = make(PROPERTY, sizeof *property);
    struct json_object *schema = schema_of(type, strlen(type));
    property->name = strdup(name);
    property->schema = strdup(json_object_to_json_string(schema));
    property->optional = optional;
    json_object_put(schema);
    return property;
}

/* Adds a keyword to the property's schema, or to the schema of its items. */
static void guide(const void *ref, const char *keyword, struct json_object *value, bool of_items) {
    struct property *property = expect(ref, PROPERTY);
    struct json_object *schema = json_tokener_parse(property->schema);
    struct json_object *items = json_object_object_get(schema, "items");
    if (of_items != (items != NULL) && strcmp(keyword, "minItems") != 0 && strcmp(keyword, "maxItems") != 0) {
        broken(3, "a guide of %s of items is for arrays, and no other", keyword);
    }
    json_object_object_add(of_items ? items : schema, keyword, value);
    free(property->schema);
    property->schema = strdup(json_object_to_json_string(schema));
    json_object_put(schema);
}

EXPORT void FMGenerationSchemaPropertyAddAnyOfGuide(const void *property, const char **choices, int count,
                                                    bool of_items) {
    enter("FMGenerationSchemaPropertyAddAnyOfGuide");
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < count; i++) {
        json_object_array_add(list, json_object_new_string(choices[i]));
    }
    guide(property, "enum", list, of_items);
}

EXPORT void FMGenerationSchemaPropertyAddMinimumGuide(const void *property, double minimum, bool of_items) {
    enter("FMGenerationSchemaPropertyAddMinimumGuide");
    guide(property, "minimum", json_object_new_double(minimum), of_items);
}

EXPORT void FMGenerationSchemaPropertyAddMaximumGuide(const void *property, double maximum, bool of_items) {
    enter("FMGenerationSchemaPropertyAddMaximumGuide");
    guide(property, "maximum", json_object_new_double(maximum), of_items);
}

EXPORT void FMGenerationSchemaPropertyAddMinItemsGuide(const void *property, int count) {
    enter("FMGenerationSchemaPropertyAddMinItemsGuide");
    guide(property, "minItems", json_object_new_int(count), false);
}

EXPORT void FMGenerationSchemaPropertyAddMaxItemsGuide(const void *property, int count) {
    enter("FMGenerationSchemaPropertyAddMaxItemsGuide");
    guide(property, "maxItems", json_object_new_int(count), false);
}

EXPORT void FMGenerationSchemaAddProperty(const void *ref, const void *other) {
    enter("FMGenerationSchemaAddProperty");
    struct schema *schema = expect(ref, SCHEMA);
    struct property *property = expect(other, PROPERTY);
    json_object_object_add(schema->properties, property->name, json_tokener_parse(property->schema));
    if (!property->optional) {
        json_object_array_add(schema->required, json_object_new_string(property->name));
    }
}

static struct json_object *as_json(const struct schema *schema) {
    struct json_object *made = json_object_new_object();
    json_object_object_add(made, "type", json_object_new_string("object"));
    json_object_object_add(made, "properties", json_object_get(schema->properties));
    json_object_object_add(made, "required", json_object_get(schema->required));
    json_object_object_add(made, "$defs", json_object_get(schema->definitions));
    return made;
}

EXPORT void FMGenerationSchemaAddReferenceSchema(const void *ref, const void *other) {
    enter("FMGenerationSchemaAddReferenceSchema");
    struct schema *schema = expect(ref, SCHEMA);
    const struct schema *named = expect(other, SCHEMA);
    json_object_object_add(schema->definitions, named->name, as_json(named));
}

EXPORT const void *FMBridgedToolCreate(const char *name, const char *description, const void *schema, tool_fn *callback,
                                       int *status, char **why) {
    enter("FMBridgedToolCreate");
    (void)description;
    struct json_object *json = as_json(expect(schema, SCHEMA));
    if (strcmp(name, "refused_by_library") == 0) {
        json_object_put(json);
        *status = 4;
        *why = give_string("unsupported", 11);
        return NULL;
    }
    struct tool *tool = make(TOOL, sizeof *tool);
    tool->name = strdup(name);
    tool->callback = callback;
    tool->schema = strdup(json_object_to_json_string(json));
    pthread_mutex_init(&tool->lock, NULL);
    json_object_put(json);
    return tool;
}

EXPORT void FMBridgedToolFinishCall(const void *ref, unsigned call, const char *output) {
    enter("FMBridgedToolFinishCall");
    struct tool *tool = expect(ref, TOOL);
    (void)output;
    pthread_mutex_lock(&tool->lock);
    if (call == 0 || call > tool->calls) {
        broken(7, "call %u of the tool %s was never made", call, tool->name);
    }
    for (size_t i = 0; i < tool->waiting_count; i++) {
        if (tool->waiting[i] == call) {
            tool->waiting[i] = tool->waiting[--tool->waiting_count];
            break;
        }
    }
    pthread_mutex_unlock(&tool->lock);
}
