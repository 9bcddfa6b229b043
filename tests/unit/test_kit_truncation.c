/* Truncation: which turns of a conversation may be left out, and how many are. */
#include "engine/kit/job_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 80 /* tokens; the reserve is 10; a message has one token for each byte of its content */

/*
 * A conversation with one letter per message: s(ystem), u(ser), a(ssistant), c(alls), o(utput). Calls have the ids "1",
 * "2", ... in their order; the digit after an output is the id of its call.
 */
static struct json_object *conversation(const char *letters, size_t content_len) {
    static char content[256];
    struct json_object *params = json_object_new_object();
    struct json_object *messages = json_object_new_array();
    int calls = 0;
    assert_true(content_len < sizeof content);
    memset(content, 'x', content_len);
    content[content_len] = '\0';
    for (; *letters; letters++) {
        char text[512];
        switch (*letters) {
        case 'c':
            snprintf(text, sizeof text,
                     "{\"role\":\"assistant\",\"content\":\"%s\",\"tool_calls\":[{\"id\":\"%d\",\"name\":\"f\","
                     "\"arguments\":\"{}\"}]}",
                     content, ++calls);
            break;
        case 'o':
            snprintf(text, sizeof text, "{\"role\":\"tool\",\"content\":\"%s\",\"tool_call_id\":\"%c\"}", content,
                     *++letters);
            break;
        default:
            snprintf(text, sizeof text, "{\"role\":\"%s\",\"content\":\"%s\"}",
                     *letters == 's'   ? "system"
                     : *letters == 'u' ? "user"
                                       : "assistant",
                     content);
        }
        json_object_array_add(messages, json_tokener_parse(text));
    }
    json_object_object_add(params, "messages", messages);
    json_object_object_add(params, "truncation", json_object_new_string("auto"));
    return params;
}

static void read_job(struct fm_kit_job *job, struct json_object *params) {
    struct fm_error error;
    *job = (struct fm_kit_job){0};
    assert_int_equal(fm_kit_job_read(job, params, &error), FM_OK);
}

/* ---- where to cut ---- */

static void cuts(void **state) {
    (void)state;
    static const struct {
        const char *letters;
        const char *cuts;
    } rows[] = {
        {"u", ""},
        {"a", ""},
        {"s", ""},
        {"su", ""},
        {"suau", "3,"},
        {"uau", "2,"},
        {"uu", "1,"},
        {"au", "1,"}, /* the conversation did not begin with a user */
        {"uauaua", "2,4,"},
        {"susau", "4,"}, /* system messages stay, wherever they are */
        {"uco1au", "4,"},
        {"uco1auco2a", "4,"},
        {"uco1u", "3,"},
        {"ucuo1u", "4,"},     /* the output came after the next turn had begun: both turns stay, or both are dropped */
        {"ucuo1", ""},        /* the last turn needs the call of the first turn */
        {"uaucuo1", "2,"},    /* the turn before the call may be dropped */
        {"uccuo2uo1u", "7,"}, /* two calls, over several turns */
        {"ucuo1uo1u", "6,"},  /* answered twice */
        {"ucuau", "2,4,"},    /* a call without an output keeps nothing */
        {"uo7u", "2,"},       /* an output without its call keeps nothing either */
        {"uco1uco2uco3u", "3,6,9,"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = conversation(rows[i].letters, 1);
        struct fm_kit_job job;
        char text[64] = "";
        read_job(&job, params);
        for (size_t k = 0; k < job.truncation.cut_count; k++) {
            snprintf(text + strlen(text), sizeof text - strlen(text), "%zu,", job.truncation.cuts[k]);
        }
        if (strcmp(text, rows[i].cuts) != 0) {
            fail_msg("%s: expected %s, got %s", rows[i].letters, rows[i].cuts, text);
        }
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

/* ---- how many turns ---- */

struct prompt {
    const struct fm_kit_job *job;
    size_t tokens; /* the tokens of the last prompt that fitted */
    size_t calls;
    size_t work;          /* tokens in all calls */
    enum fm_code trouble; /* the result for a shortened prompt; FM_OK: no error */
};

static enum fm_code fit(void *state, size_t reserve, struct fm_error *error) {
    struct prompt *prompt = state;
    size_t tokens = 0;
    for (size_t i = 0; i < prompt->job->message_count; i++) {
        tokens += prompt->job->messages[i].content_len;
    }
    prompt->calls++;
    prompt->work += tokens;
    if (prompt->trouble != FM_OK && prompt->calls > 1) {
        return fm_fail(error, prompt->trouble, "trouble");
    }
    if (tokens + reserve > CONTEXT) {
        return fm_fail(error, FM_CONTEXT_OVERFLOW, "%zu tokens", tokens);
    }
    prompt->tokens = tokens;
    return FM_OK;
}

static void as_few_as_it_takes(void **state) {
    (void)state;
    static const struct {
        const char *letters;
        size_t content_len;
        int64_t max_tokens; /* 0: no limit */
        int64_t dropped;    /* -1: it does not fit */
        size_t tokens;
    } rows[] = {
        {"uauau", 14, 0, 0, 70},                             /* it fits, and so does the reserve */
        {"uauau", 15, 0, 2, 45},                             /* the prompt has 75: no room for the reserve */
        {"uauau", 15, 5, 0, 75},                             /* the request asks for 5 tokens, which fit */
        {"uauau", 15, 6, 2, 45},   {"suauau", 14, 0, 2, 56}, /* a system message is never dropped */
        {"suauau", 20, 0, 4, 40},  {"suauau", 23, 0, 4, 46}, {"uauau", 79, 0, 4, 79}, /* all that may go is gone: one
                                                                                         token is better than none */
        {"uauau", 80, 0, -1, 0},   {"su", 38, 0, 0, 76},                              /* nothing may be dropped */
        {"su", 40, 0, -1, 0},      {"sua", 27, 0, -1, 0},    {"uco1au", 20, 0, 4, 20}, {"ucuo1", 30, 0, -1, 0},
        {"usuausu", 20, 0, 4, 60}, /* system messages of old turns stay too */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = conversation(rows[i].letters, rows[i].content_len);
        struct fm_kit_job job;
        struct fm_error error = {.code = FM_OK};
        read_job(&job, params);
        job.max_tokens = rows[i].max_tokens;
        struct prompt prompt = {.job = &job};
        enum fm_code code = fm_kit_job_fit(&job, CONTEXT, fit, &prompt, &error);
        bool fits = rows[i].dropped >= 0;
        if (code != (fits ? FM_OK : FM_CONTEXT_OVERFLOW) || (fits && job.dropped != rows[i].dropped) ||
            (fits && prompt.tokens != rows[i].tokens)) {
            fail_msg("%s, %zu each: %s, %lld left out, %zu tokens", rows[i].letters, rows[i].content_len,
                     fm_code_name(code), (long long)job.dropped, prompt.tokens);
        }
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void without_it_nothing_is_left_out(void **state) {
    (void)state;
    static const char *const words[] = {"disabled", NULL};
    for (size_t i = 0; i < 2; i++) {
        struct json_object *params = conversation("uauau", 17);
        struct fm_kit_job job;
        struct fm_error error;
        json_object_object_add(params, "truncation", words[i] ? json_object_new_string(words[i]) : NULL);
        read_job(&job, params);
        struct prompt prompt = {.job = &job};
        assert_int_equal(fm_kit_job_fit(&job, CONTEXT, fit, &prompt, &error), FM_CONTEXT_OVERFLOW);
        assert_int_equal(prompt.calls, 1);
        assert_int_equal(job.message_count, 5);
        assert_int_equal(job.dropped, 0);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

/* Another error of a shortened prompt ends the search. */
static void another_error_ends_it(void **state) {
    (void)state;
    struct json_object *params = conversation("uauauau", 17);
    struct fm_kit_job job;
    struct fm_error error;
    read_job(&job, params);
    struct prompt prompt = {.job = &job, .trouble = FM_INVALID_REQUEST};
    assert_int_equal(fm_kit_job_fit(&job, CONTEXT, fit, &prompt, &error), FM_INVALID_REQUEST);
    assert_int_equal(prompt.calls, 2);
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static char *turns(size_t count) {
    char *letters = malloc(2 * count + 2);
    for (size_t i = 0; i < count; i++) {
        memcpy(letters + 2 * i, "ua", 2);
    }
    memcpy(letters + 2 * count, "u", 2);
    return letters;
}

/* However long the conversation is, the work is only that of the first prompt and of a few prompts that fit. */
static void long_conversations(void **state) {
    (void)state;
    for (size_t count = 100; count <= 10000; count *= 10) {
        char *letters = turns(count);
        struct json_object *params = conversation(letters, 1);
        struct fm_kit_job job;
        struct fm_error error;
        read_job(&job, params);
        struct prompt prompt = {.job = &job};
        assert_int_equal(fm_kit_job_fit(&job, CONTEXT, fit, &prompt, &error), FM_OK);
        assert_in_range(prompt.tokens, 55, 70);
        assert_int_equal(job.message_count, prompt.tokens);
        assert_in_range(prompt.calls, 5, 16);
        assert_in_range(prompt.work, 1, 2 * count + 1 + 16 * 2 * CONTEXT);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
        free(letters);
    }
}

/* For most new turns the prompt begins with the same message as before, so that the cache can be used. */
static void the_beginning_stays(void **state) {
    (void)state;
    int64_t last = 0;
    size_t moves = 0;
    for (size_t count = 100; count < 200; count++) {
        char *letters = turns(count);
        struct json_object *params = conversation(letters, 1);
        struct fm_kit_job job;
        struct fm_error error;
        read_job(&job, params);
        struct prompt prompt = {.job = &job};
        assert_int_equal(fm_kit_job_fit(&job, CONTEXT, fit, &prompt, &error), FM_OK);
        assert_true(job.dropped >= last);
        moves += job.dropped != last;
        last = job.dropped;
        fm_kit_job_free_lists(&job);
        json_object_put(params);
        free(letters);
    }
    assert_in_range(moves, 5, 14); /* of 100 turns */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(as_few_as_it_takes),
        cmocka_unit_test(without_it_nothing_is_left_out),
        cmocka_unit_test(another_error_ends_it),
        cmocka_unit_test(long_conversations),
        cmocka_unit_test(the_beginning_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
