/*
 * fm-engine-fake: the scripted engine for tests (script.h). Environment variables ask for faults at initialize and
 * load. Each job has a thread, so that scripts run side by side; `active` counts these threads.
 *
 *     FM_ENGINE_FAKE_INIT  hang | garbage | crash | network | version:N   (N: the protocol version that it answers;
 *                          network: an engine that needs it)
 *     FM_ENGINE_FAKE_LOAD  hang | error | crash | gpu_crash | exit | slow:MS   (hang:NAME, error:NAME and crash:NAME:
 *                          if NAME is part of the model's path; gpu_crash: as long as the front offers a GPU)
 *     FM_ENGINE_FAKE_MEMORY  BYTES   (the memory that it reports for the model)
 *     FM_ENGINE_FAKE_GPU   none   (the GPU that the front offers can't be used; without it, the GPU can be used)
 *     FM_ENGINE_FAKE_DRAFTS  N,M   (jobs report that N tokens were guessed ahead, and that M of them were accepted)
 *     FM_ENGINE_FAKE_DIMENSION  numbers of a vector (default 8)
 *     FM_ENGINE_FAKE_CALLS  auto   (if there are tools, the answer to a user's message is a call)
 *     FM_ENGINE_FAKE_ANSWER  messages   (to a job with a JSON format, {"result":TEXT} with its messages in it)
 *                            loop | endless   (an answer without a format repeats its text again and again, up to the
 *                            token limit; loop: unless the job has a frequency penalty)
 *     FM_ENGINE_FAKE_SAVE  what it saves when it ends, see saved.h
 *     FM_ENGINE_FAKE_IS    any of: listed, remote, any_order, config, session, restarts, silent, one_slot, uncounted,
 * grammarless (separated by commas; uncounted: it counts no tokens); led_by_tools: a tool's output is a script too, so
 * that a test can lead the engine from call to call FM_ENGINE_FAKE_AVAILABLE  yes | hang | crash | error | slow | CODE
 * | CODE:TTL_MS   (it has engine.available, with this answer) FM_ENGINE_FAKE_MODELS  ID,ID   (the models that
 * engine.available lists) FM_ENGINE_FAKE_JOBS  CODE | CODE:RETRY_MS | CODE:RETRY_MS:elsewhere |
 * CODE:RETRY_MS:REASON_CODE   (each job fails with it, before it is accepted; late:CODE...: after its output;
 * second:CODE...: only each second job, after its output)
 *
 * FM_ENGINE_FAKE_LOAD may also be refuse:CODE, a reason_code. A copy of this program with the name fm-engine-NAME reads
 * FM_ENGINE_NAME_... before FM_ENGINE_FAKE_..., so that tests can have several.
 *
 * The fake engine sees images if engine.load has an `mmproj`, which it never opens. An answer without a script says for
 * each image the format by its first bytes, and how many bytes the image has. An image that begins like no known format
 * is broken.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "engine/fake/embed.h"
#include "engine/fake/instance.h"
#include "engine/fake/saved.h"
#include "engine/fake/script.h"
#include "engine/guide/schema.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS          8
#define CONTEXT_LENGTH 4096  /* words of input */
#define VOCABULARY     32768 /* tokens that a bias may name */
#define LOAD_STEPS     10
#define GPU_LAYERS     12
#define TEXT_MAX       (16u << 20) /* bytes of an answer without a script */
#define IMAGE_TOKENS   16          /* tokens of any image */

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int active; /* threads with a job, under lock */
};

static struct fake the_fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static char own_prefix[64]; /* prefix of the variables of this copy of the program: "FM_ENGINE_NAME" */

static void set_own_prefix(const char *program) {
    const char *name = strstr(program, "fm-engine-");
    for (const char *next = name; next && (next = strstr(next + 1, "fm-engine-"));) {
        name = next; /* folders may have such names, too: the last one in the path counts */
    }
    int len = snprintf(own_prefix, sizeof own_prefix, "FM_ENGINE_%s", name ? name + sizeof "fm-engine-" - 1 : "FAKE");
    for (int i = 0; i < len && i < (int)sizeof own_prefix - 1; i++) {
        bool lower = own_prefix[i] >= 'a' && own_prefix[i] <= 'z';
        own_prefix[i] = own_prefix[i] == '-' ? '_' : lower ? (char)(own_prefix[i] - 'a' + 'A') : own_prefix[i];
    }
}

/* An environment variable; "" when it is not set. */
static const char *fault(const char *name) {
    char own[128];
    snprintf(own, sizeof own, "%s%s", own_prefix, name + sizeof "FM_ENGINE_FAKE" - 1);
    const char *value = getenv(own);
    value = value ? value : getenv(name);
    return value ? value : "";
}

/* Whether `word` is in the list FM_ENGINE_FAKE_IS. */
static bool fake_is(const char *word) {
    size_t len = strlen(word);
    for (const char *at = fault("FM_ENGINE_FAKE_IS"); *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == len && memcmp(at, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool fault_is(const char *name, const char *word) {
    return strcmp(fault(name), word) == 0;
}

/* The text after "word:"; NULL when the variable says something else. */
static const char *fault_detail(const char *name, const char *word) {
    const char *value = fault(name);
    size_t len = strcspn(value, ":");
    return value[len] && len == strlen(word) && memcmp(value, word, len) == 0 ? value + len + 1 : NULL;
}

/* The N of "word:N"; 0 when the variable says something else. */
static int64_t fault_number(const char *name, const char *word) {
    const char *detail = fault_detail(name, word);
    return detail ? strtoll(detail, NULL, 10) : 0;
}

/* Whether FM_ENGINE_FAKE_LOAD is "word", or is "word:NAME" and NAME is in the path of `model`. */
static bool load_is_to(const char *word, const char *model) {
    const char *name = fault_detail("FM_ENGINE_FAKE_LOAD", word);
    return fault_is("FM_ENGINE_FAKE_LOAD", word) || (name && model && strstr(model, name));
}

static void hang(void) {
    for (;;) {
        fm_sleep_ms(60 * 1000);
    }
}

static void initializing(void *state, struct fm_kit *kit) {
    static const char garbage[] = "Loading model, please wait...\n";
    (void)state;
    if (fault_is("FM_ENGINE_FAKE_INIT", "hang")) {
        hang();
    } else if (fault_is("FM_ENGINE_FAKE_INIT", "garbage")) {
        fm_kit_write_raw(kit, garbage, sizeof garbage - 1);
    } else if (fault_is("FM_ENGINE_FAKE_INIT", "crash")) {
        abort();
    }
}

/* The models that it lists, from FM_ENGINE_FAKE_MODELS. */
static size_t list_models(struct fm_listed_model *models) {
    static char text[4096];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", fault("FM_ENGINE_FAKE_MODELS"));
    for (char *id = text; *id && count < FM_LISTED_MAX;) {
        char *end = id + strcspn(id, ",");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        models[count++] = (struct fm_listed_model){.id = id, .context_length = CONTEXT_LENGTH};
        id = next;
    }
    return count;
}

static void tell_available(void *state, struct fm_kit *kit, struct fm_availability *out) {
    static struct fm_listed_model models[FM_LISTED_MAX];
    static char code[64];
    (void)state;
    (void)kit;
    snprintf(code, sizeof code, "%s", fault("FM_ENGINE_FAKE_AVAILABLE"));
    char *ttl = strchr(code, ':');
    if (ttl) {
        *ttl++ = '\0';
        out->ttl_ms = strtoll(ttl, NULL, 10);
    }
    if (strcmp(code, "hang") == 0) {
        hang();
    } else if (strcmp(code, "crash") == 0) {
        abort();
    } else if (strcmp(code, "slow") == 0) {
        fm_sleep_ms(500);
    }
    out->available = strcmp(code, "yes") == 0 || strcmp(code, "slow") == 0;
    out->reason_code = code;
    if (!out->available) {
        snprintf(out->detail, sizeof out->detail, "this engine is not available, as FM_ENGINE_FAKE_AVAILABLE asks");
    }
    if (fault("FM_ENGINE_FAKE_MODELS")[0]) {
        out->models = models;
        out->model_count = list_models(models);
    }
}

static void load_slowly(struct fm_kit *kit, int64_t ms) {
    int64_t start = fm_now_ms();
    for (int step = 0; step < LOAD_STEPS && !fm_kit_ending(kit); step++) {
        fm_kit_load_progress(kit, (double)step / LOAD_STEPS);
        int64_t until = start + ms * (step + 1) / LOAD_STEPS;
        while (fm_now_ms() < until && !fm_kit_ending(kit)) {
            fm_sleep_ms(1);
        }
    }
}

/* What the fake engine reports of a GPU, which does not exist. */
static const struct fm_gpu *use_gpu(const struct fm_gpu_wish *wish) {
    static struct fm_gpu gpu;
    if (fault_is("FM_ENGINE_FAKE_GPU", "none")) {
        gpu = (struct fm_gpu){.detail = "there is none, as FM_ENGINE_FAKE_GPU asks", .total_layers = GPU_LAYERS};
    } else {
        int64_t layers = wish->layers < 0 || wish->layers > GPU_LAYERS ? GPU_LAYERS : wish->layers;
        gpu = (struct fm_gpu){.device = "fake GPU", .layers = layers, .total_layers = GPU_LAYERS};
    }
    return &gpu;
}

static enum fm_code load_fake(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                              struct fm_model_info *info, struct fm_error *error) {
    const char *model = files->model;
    struct fm_gpu_wish wish;
    (void)state;
    fm_kit_gpu_wish(&wish);
    int64_t slow_ms = fault_number("FM_ENGINE_FAKE_LOAD", "slow");
    if (load_is_to("hang", model)) {
        hang();
    } else if (load_is_to("crash", model) || (wish.folder && fault_is("FM_ENGINE_FAKE_LOAD", "gpu_crash"))) {
        abort();
    } else if (fault_is("FM_ENGINE_FAKE_LOAD", "exit")) {
        _exit(3);
    } else if (fault_detail("FM_ENGINE_FAKE_LOAD", "refuse")) {
        enum fm_code code = fm_fail(error, FM_UNAVAILABLE, "this load is refused, as FM_ENGINE_FAKE_LOAD asks");
        snprintf(error->reason_code, sizeof error->reason_code, "%s", fault_detail("FM_ENGINE_FAKE_LOAD", "refuse"));
        return code;
    } else if (load_is_to("error", model)) {
        return fm_fail(error, FM_UNAVAILABLE, "%s: this load fails, as FM_ENGINE_FAKE_LOAD asks",
                       model ? model : "null");
    } else if (slow_ms > 0) {
        load_slowly(kit, slow_ms);
    }
    fm_fake_saved_load(kit, files);
    fm_kit_load_progress(kit, 1);
    *info = (struct fm_model_info){.context_length = fake_is("uncounted") ? 0 : CONTEXT_LENGTH,
                                   .slots = fake_is("one_slot") ? 1 : SLOTS,
                                   .silent = fake_is("silent"),
                                   .images = files->mmproj != NULL,
                                   .memory_bytes = strtoll(fault("FM_ENGINE_FAKE_MEMORY"), NULL, 10),
                                   .gpu = wish.folder ? use_gpu(&wish) : NULL};
    return FM_OK;
}

struct span {
    const char *text;
    size_t len;
};

/*
 * The text that is answered: a prompt, the output of a tool if that came last, or else the last message of the user; ""
 * when there is none.
 */
static struct fm_message message_to_answer(const struct fm_kit_job *job) {
    if (job->prompt) {
        return (struct fm_message){.role = "user", .content = job->prompt, .content_len = job->prompt_len};
    }
    const struct fm_message last = job->messages[job->message_count - 1];
    if (last.tool_call_id) {
        return last;
    }
    for (size_t i = job->message_count; i > 0; i--) {
        if (strcmp(job->messages[i - 1].role, "user") == 0) {
            return job->messages[i - 1];
        }
    }
    return (struct fm_message){.role = "user", .content = ""};
}

/* The tool to call, because the job or FM_ENGINE_FAKE_CALLS demands a call; NULL: none. */
static const struct fm_tool *tool_to_call(const struct fm_kit_job *job, const struct fm_message *message) {
    bool likes = job->tool_mode == FM_TOOLS_AUTO && !message->tool_call_id && fault_is("FM_ENGINE_FAKE_CALLS", "auto");
    size_t i = 0;
    while (i < job->tool_count && !job->tools[i].allowed) {
        i++;
    }
    return i < job->tool_count && (likes || job->tool_mode == FM_TOOLS_REQUIRED) ? &job->tools[i] : NULL;
}

/* {"result":TEXT} with the messages, as they came, in the text: an array of [role, content]. */
static void write_messages(const struct fm_kit_job *job, struct fm_buf *text) {
    struct fm_buf messages;
    fm_buf_init(&messages, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&messages);
    fm_json_array_begin(&w);
    for (size_t i = 0; i < job->message_count; i++) {
        fm_json_array_begin(&w);
        fm_json_str(&w, job->messages[i].role);
        fm_json_string(&w, job->messages[i].content, job->messages[i].content_len);
        fm_json_array_end(&w);
    }
    fm_json_array_end(&w);
    w = fm_json_writer_on(text);
    fm_json_object_begin(&w);
    fm_json_key(&w, "result");
    fm_json_string(&w, messages.data, messages.len);
    fm_json_object_end(&w);
    text->failed = text->failed || messages.failed;
    fm_buf_free(&messages);
}

/*
 * Writes the answer to a job with a JSON format: a small instance whose strings are words of the message. A real engine
 * may check the finished text; this one does not.
 */
static enum fm_code write_instance(struct fm_kit_job *job, const struct fm_message *message, struct fm_buf *text,
                                   struct fm_error *error) {
    struct fm_schema prepared;
    if (fault_is("FM_ENGINE_FAKE_ANSWER", "messages")) {
        write_messages(job, text);
        return FM_OK;
    }
    if (job->format.kind == FM_FORMAT_JSON_OBJECT) {
        fm_buf_append_str(text, "{}");
        return FM_OK;
    }
    if (job->format.kind == FM_FORMAT_GRAMMAR) {
        return fm_fail(error, FM_INVALID_REQUEST, "the fake engine knows no grammars");
    }
    enum fm_code code = fm_schema_prepare(job->format.schema, job->format.strict, &prepared, error);
    if (code == FM_OK) {
        fm_buf_append(&job->schema_report, prepared.report.data, prepared.report.len);
        fm_schema_free(&prepared);
        code = fm_instance_write(job->format.schema, message->content, message->content_len, text, error);
    }
    return code;
}

/* An instance is written only for a valid schema: the check of the format reports what is wrong with the schema. */
static enum fm_code write_arguments(const struct fm_tool *tool, const struct fm_message *message,
                                    struct fm_buf *arguments, struct fm_error *error) {
    struct fm_schema prepared;
    if (!tool->parameters) {
        fm_buf_append_str(arguments, "{}");
        return FM_OK;
    }
    enum fm_code code = fm_schema_prepare(tool->parameters, tool->strict, &prepared, error);
    if (code == FM_OK) {
        fm_schema_free(&prepared);
        code = fm_instance_write(tool->parameters, message->content, message->content_len, arguments, error);
    }
    return code;
}

/* The prompt of a job without output is read at once. */
static enum fm_reason accept(struct fm_kit_job *job, int64_t words) {
    enum fm_reason reason = fm_kit_job_accept(job, words);
    return !reason && job->prefill_only ? FM_REASON_LENGTH : reason;
}

/* Makes a call of the tool that must be called, with a small instance of its parameters. */
static enum fm_reason call_tool(struct fm_kit_job *job, const struct fm_tool *tool, const struct fm_message *message,
                                int64_t words, struct fm_error *error) {
    struct fm_buf arguments;
    fm_buf_init(&arguments, TEXT_MAX);
    enum fm_reason reason = FM_REASON_ERROR;
    enum fm_code code = write_arguments(tool, message, &arguments, error);
    if (code == FM_OK) {
        reason = accept(job, words);
        reason = reason ? reason : fm_script_call(tool->name, arguments.data, arguments.len, job, error);
    } else if (code == FM_INVALID_REQUEST) {
        snprintf(error->param, sizeof error->param, "tools");
    }
    fm_buf_free(&arguments);
    return reason;
}

/* The format that an image begins like; NULL: none. */
static const char *image_kind(const struct fm_image *image) {
    static const struct {
        const char *kind;
        const char *magic;
    } kinds[] = {{"png", "\x89PNG"}, {"jpeg", "\xff\xd8\xff"}, {"gif", "GIF8"}, {"bmp", "BM"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t len = strlen(kinds[i].magic);
        if (image->len >= len && memcmp(image->bytes, kinds[i].magic, len) == 0) {
            return kinds[i].kind;
        }
    }
    return NULL;
}

static bool check_images(const struct fm_kit_job *job, struct fm_error *error) {
    for (size_t i = 0; i < job->message_count; i++) {
        for (size_t k = 0; k < job->messages[i].image_count; k++) {
            const struct fm_image *image = &job->messages[i].images[k];
            if (!image_kind(image)) {
                (void)fm_fail(error, FM_INVALID_REQUEST, "the image can't be read");
                snprintf(error->param, sizeof error->param, "images[%zu]", image->index);
                return false;
            }
        }
    }
    return true;
}

/* Answers with the message again, and with what is seen in its images. */
static void write_echo(const struct fm_message *message, struct fm_buf *text) {
    fm_buf_append(text, message->content, message->content_len);
    for (size_t i = 0; i < message->image_count; i++) {
        char seen[64];
        snprintf(seen, sizeof seen, "%s[%s of %zu bytes]", text->len ? " " : "", image_kind(&message->images[i]),
                 message->images[i].len);
        fm_buf_append_str(text, seen);
    }
}

/* Acts like a model that does not find the end of its text, as small models do at temperature 0. */
static bool says_it_again(const struct fm_kit_job *job, enum fm_reason reason) {
    bool loops = fault_is("FM_ENGINE_FAKE_ANSWER", "loop") && job->sampling[FM_PARAM_FREQUENCY_PENALTY] == 0;
    return reason == FM_REASON_STOP && !fm_kit_job_cut(job) && (loops || fault_is("FM_ENGINE_FAKE_ANSWER", "endless"));
}

static enum fm_reason say(struct fm_kit_job *job, struct fm_buf *text, int64_t room, struct fm_error *error) {
    enum fm_reason reason;
    if (fault("FM_ENGINE_FAKE_ANSWER")[0] && job->format.kind == FM_FORMAT_TEXT) {
        fm_buf_append_char(text, ' ');
    }
    do {
        reason = fm_script_echo(text->len ? text->data : "", text->len, room, job, error);
    } while (job->format.kind == FM_FORMAT_TEXT && says_it_again(job, reason));
    return reason;
}

/*
 * Answers without a script: with the call that must be made, or the JSON that the format asks for, or else the message
 * again.
 */
static enum fm_reason answer_freely(struct fm_kit_job *job, const struct fm_message *message, int64_t words,
                                    struct fm_error *error) {
    struct fm_buf text;
    const struct fm_tool *tool = tool_to_call(job, message);
    enum fm_code code = FM_OK;
    if (tool) {
        return call_tool(job, tool, message, words, error);
    }
    fm_buf_init(&text, TEXT_MAX);
    if (job->format.kind == FM_FORMAT_TEXT) {
        write_echo(message, &text);
    } else {
        code = write_instance(job, message, &text, error);
    }
    enum fm_reason reason = FM_REASON_ERROR;
    if (code == FM_OK) {
        reason = accept(job, words);
        reason = reason ? reason : say(job, &text, CONTEXT_LENGTH - words, error);
    } else if (code == FM_INVALID_REQUEST && !error->param[0]) {
        snprintf(error->param, sizeof error->param, "format");
    }
    fm_buf_free(&text);
    return reason;
}

struct prompt {
    const struct fm_kit_job *job;
    int64_t words;
};

/* fm_kit_job_fit_fn: a prompt is the number of its words. */
static enum fm_code fit(void *state, size_t reserve, struct fm_error *error) {
    struct prompt *prompt = state;
    const struct fm_kit_job *job = prompt->job;
    int64_t words = fm_script_words(job->prompt, job->prompt_len) + fm_script_words(job->suffix, job->suffix_len);
    for (size_t i = 0; i < job->message_count; i++) {
        words += fm_script_words(job->messages[i].content, job->messages[i].content_len);
        words += (int64_t)job->messages[i].image_count * IMAGE_TOKENS;
    }
    if (words + (int64_t)reserve > CONTEXT_LENGTH) {
        return fm_fail(error, FM_CONTEXT_OVERFLOW, "the input has %lld tokens, the context holds %d", (long long)words,
                       CONTEXT_LENGTH);
    }
    prompt->words = words;
    return FM_OK;
}

/*
 * Checks the biases, as a real engine does before it accepts a job. Nothing is drawn here, so biases and penalties
 * change nothing.
 */
static bool check_biases(const struct fm_kit_job *job, struct fm_error *error) {
    for (size_t i = 0; i < job->logit_bias_count; i++) {
        if (job->logit_biases[i].token >= VOCABULARY) {
            (void)fm_fail(error, FM_INVALID_REQUEST, "logit_bias: there is no token %d",
                          (int)job->logit_biases[i].token);
            snprintf(error->param, sizeof error->param, "logit_bias");
            return false;
        }
    }
    return true;
}

/* In session mode a message has its script in the content. */
static struct span find_script(const struct fm_message *message) {
    static const char before[] = "\n\nContent:\n[";
    const char *found = memmem(message->content, message->content_len, before, sizeof before - 1);
    size_t skipped = found ? (size_t)(found - message->content) + sizeof before - 2 : 0;
    return (struct span){message->content + skipped, message->content_len - skipped};
}

/* Decides each question: choices that are in the first message are likely, all others are not. */
static enum fm_reason decide(struct fm_kit_job *job, struct fm_error *error) {
    const struct fm_message *read = &job->messages[0];
    double logprobs[FM_QUESTION_CHOICES_MAX];
    enum fm_reason reason = fm_kit_job_accept(job, FM_UNCOUNTED);
    for (size_t i = 0; i < job->question_count && !reason; i++) {
        const struct fm_question *question = &job->questions[i];
        for (size_t k = 0; k < question->choice_count; k++) {
            const struct fm_input *choice = &question->choices[k];
            logprobs[k] = memmem(read->content, read->content_len, choice->text, choice->len) ? -0.5 : -4;
        }
        reason = fm_kit_job_decision(job, logprobs, error);
    }
    fm_kit_job_usage(job, &(struct fm_kit_usage){.input = (int64_t)job->question_count});
    return reason;
}

static enum fm_reason answer_job(struct fm_kit_job *job, struct fm_error *error) {
    const struct fm_message message = message_to_answer(job);
    const struct span text = find_script(&message);
    struct json_object *script = NULL;
    struct prompt prompt = {.job = job};
    if (!check_biases(job, error) || !check_images(job, error)) {
        return FM_REASON_ERROR;
    }
    /* A tool's output is a text, even if it looks like a script, unless the test sets led_by_tools. Hosts add lines to
     * it. */
    bool scripted = !message.tool_call_id || fake_is("led_by_tools");
    const char *line_end = message.tool_call_id ? memchr(text.text, '\n', text.len) : NULL;
    size_t script_len = line_end ? (size_t)(line_end - text.text) : text.len;
    if (scripted && fm_script_parse(text.text, script_len, &script, error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    if (fm_kit_job_fit(job, CONTEXT_LENGTH, fit, &prompt, error) != FM_OK) {
        fm_script_free(script);
        return FM_REASON_ERROR;
    }
    if (!script) {
        return answer_freely(job, &message, prompt.words, error);
    }
    enum fm_reason reason = accept(job, fake_is("uncounted") ? FM_UNCOUNTED : prompt.words);
    reason = reason ? reason : fm_script_run(script, job, error);
    fm_script_free(script);
    return reason;
}

/*
 * Whether jobs must fail, as FM_ENGINE_FAKE_JOBS says: before their output, or, with `late`, after it. FM_REASON_ERROR:
 * this job fails.
 */
static enum fm_reason fail_as_asked(bool late, struct fm_error *error) {
    static atomic_uint jobs;
    char text[128];
    const char *each = fault_detail("FM_ENGINE_FAKE_JOBS", "late");
    const char *second = fault_detail("FM_ENGINE_FAKE_JOBS", "second");
    snprintf(text, sizeof text, "%s", each ? each : second ? second : fault("FM_ENGINE_FAKE_JOBS"));
    if (!text[0] || late != (each || second) || (second && ++jobs % 2 == 1)) {
        return FM_REASON_NONE;
    }
    char *retry = strchr(text, ':');
    char *more = retry ? strchr(retry + 1, ':') : NULL;
    if (retry) {
        *retry++ = '\0';
    }
    (void)fm_fail(error, fm_code_parse(text), "this job fails, as FM_ENGINE_FAKE_JOBS asks");
    error->retry_ms = retry ? strtoll(retry, NULL, 10) : 0;
    error->elsewhere = more && strcmp(more, ":elsewhere") == 0;
    if (more && !error->elsewhere) {
        snprintf(error->reason_code, sizeof error->reason_code, "%s", more + 1);
    }
    return FM_REASON_ERROR;
}

static void *run_job(void *argument) {
    struct fm_kit_job *job = argument;
    struct fm_error error;
    enum fm_reason reason = fail_as_asked(false, &error);
    if (!reason) {
        reason = job->inputs      ? fm_fake_embed(job, CONTEXT_LENGTH, &error)
                 : job->questions ? decide(job, &error)
                                  : answer_job(job, &error);
        reason = fail_as_asked(true, &error) ? FM_REASON_ERROR : reason;
    }
    fm_kit_job_finish(job, reason, &error);
    pthread_mutex_lock(&the_fake.lock);
    if (--the_fake.active == 0) {
        pthread_cond_signal(&the_fake.idle);
    }
    pthread_mutex_unlock(&the_fake.lock);
    return NULL;
}

static void tell_drafts(struct fm_kit_job *job) {
    const char *drafts = getenv("FM_ENGINE_FAKE_DRAFTS");
    char *accepted = NULL;
    if (drafts) {
        job->speculates = true;
        job->drafted_tokens = strtoll(drafts, &accepted, 10);
        job->accepted_tokens = *accepted == ',' ? strtoll(accepted + 1, NULL, 10) : 0;
    }
}

static void start_job(struct fake *fake, struct fm_kit_job *job) {
    tell_drafts(job);
    pthread_mutex_lock(&fake->lock);
    fake->active++;
    pthread_mutex_unlock(&fake->lock);
    if (fm_thread_start(run_job, job) == 0) {
        return;
    }
    struct fm_error error;
    (void)fm_fail(&error, FM_OVERLOADED, "the engine can't start a thread");
    fm_kit_job_finish(job, FM_REASON_ERROR, &error);
    pthread_mutex_lock(&fake->lock);
    fake->active--;
    pthread_mutex_unlock(&fake->lock);
}

static void serve_fake(void *state, struct fm_kit *kit) {
    struct fake *fake = state;
    struct fm_kit_job *job;
    while ((job = fm_kit_take(kit, true))) {
        start_job(fake, job);
    }
    pthread_mutex_lock(&fake->lock);
    while (fake->active) {
        pthread_cond_wait(&fake->idle, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
    fm_fake_saved_end(kit);
}

/* All features, except the ones that a test takes away, or that only exist if a test asks for them. */
static unsigned features(void) {
    unsigned has = (1u << FM_FEATURE_COUNT) - 1 - FM_FEATURE_AVAILABILITY;
    has -= fake_is("session") ? 0 : FM_FEATURE_SESSION;
    has -= fake_is("restarts") ? 0 : FM_FEATURE_RESTARTS;
    has -= fake_is("uncounted") ? FM_FEATURE_INPUT_TOKENS | FM_FEATURE_TRUNCATION : 0;
    has -= fake_is("grammarless") ? FM_FEATURE_GRAMMARS | FM_FEATURE_SEEDS : 0;
    return has;
}

int main(int argc, char *argv[]) {
    struct fm_gpu_wish wish;
    set_own_prefix(argv[0]);
    fm_kit_gpu_wish(&wish);
    fm_fake_take_config();
    const struct fm_engine_ops ops = {
        .name = "fake",
        .lists_models = fake_is("listed"),
        .remote = fake_is("remote"),
        .any_order = fake_is("any_order"),
        .needs_config = fake_is("config"),
        .features = features(),
        .extras = true,
        .available = fault("FM_ENGINE_FAKE_AVAILABLE")[0] ? tell_available : NULL,
        .version = FM_VERSION,
        .slots = SLOTS,
        .needs_network = fault_is("FM_ENGINE_FAKE_INIT", "network"),
        .needs_gpus = wish.folder != NULL,
        .protocol_version = fault_number("FM_ENGINE_FAKE_INIT", "version"),
        .state = &the_fake,
        .initializing = initializing,
        .load = load_fake,
        .serve = serve_fake,
    };
    return fm_kit_main(&ops, argc, argv);
}
