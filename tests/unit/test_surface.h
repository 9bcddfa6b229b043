/*
 * Shared by the surface's tests: JSON by a path, a captured stream, and an answer that runs through a script of calls.
 */
#ifndef TEST_SURFACE_H
#define TEST_SURFACE_H

#include "surface/check.h"
#include "surface/ignored.h"
#include "surface/surface.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline struct json_object *json_of(const char *text, size_t len) {
    struct json_tokener *tokener = json_tokener_new_ex(64);
    struct json_object *value = json_tokener_parse_ex(tokener, text, (int)len);
    if (json_tokener_get_error(tokener) != json_tokener_success || json_tokener_get_parse_end(tokener) != len) {
        fail_msg("no JSON: %.*s", (int)len, text);
    }
    json_tokener_free(tokener);
    return value;
}

/* The value at a path such as "response.output.0.content.0.text"; NULL if it is absent or null. */
static inline struct json_object *at(struct json_object *value, const char *path) {
    char copy[128];
    snprintf(copy, sizeof copy, "%s", path);
    char *rest = copy;
    for (char *step = strsep(&rest, "."); step && value; step = strsep(&rest, ".")) {
        if (json_object_is_type(value, json_type_array)) {
            value = json_object_array_get_idx(value, strtoul(step, NULL, 10));
        } else {
            value = json_object_object_get(value, step);
        }
    }
    return value;
}

static inline const char *str_at(struct json_object *value, const char *path) {
    value = at(value, path);
    if (!json_object_is_type(value, json_type_string)) {
        fail_msg("no string at %s", path);
    }
    return json_object_get_string(value);
}

static inline int64_t int_at(struct json_object *value, const char *path) {
    value = at(value, path);
    if (!json_object_is_type(value, json_type_int)) {
        fail_msg("no integer at %s", path);
    }
    return json_object_get_int64(value);
}

static inline void assert_json(struct json_object *value, const char *path, const char *expected) {
    const char *text =
        json_object_to_json_string_ext(at(value, path), JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    if (strcmp(text, expected) != 0) {
        fail_msg("%s: expected %s, got %s", path, expected, text);
    }
}

struct stream {
    struct json_object *events[128];
    size_t count;
    struct fm_cursor cursor;
};

/* Takes the events that can be sent now; returns their size in bytes. */
static inline size_t pull(struct fm_answer *answer, struct stream *stream) {
    struct fm_buf buf;
    size_t bytes = 0;
    fm_buf_init(&buf, 1u << 24);
    while (answer->request.stream && fm_answer_has_event(answer, &stream->cursor)) {
        fm_buf_reset(&buf);
        struct fm_json_writer w = fm_json_writer_on(&buf);
        fm_answer_write_event(answer, &stream->cursor, &w);
        assert_false(buf.failed);
        assert_true(stream->count < sizeof stream->events / sizeof stream->events[0]);
        stream->events[stream->count++] = json_of(buf.data, buf.len);
        bytes += buf.len;
    }
    fm_buf_free(&buf);
    return bytes;
}

static inline void stream_free(struct stream *stream) {
    for (size_t i = 0; i < stream->count; i++) {
        json_object_put(stream->events[i]);
    }
    stream->count = 0;
}

/* A parsed request; the body must be valid. */
static inline struct fm_request request_of(const struct fm_surface *surface, const char *body) {
    struct json_object *params = json_of(body, strlen(body));
    struct fm_request request;
    struct fm_error error;
    if (surface->parse(params, &request, &error) != FM_OK) {
        fail_msg("%s: %s", body, error.detail);
    }
    json_object_put(params);
    return request;
}

/* Checks that the body is accepted, and that its only ignored member is `param`. --strict-parameters would refuse it
 * there. */
#define IGNORED "ignored"

static inline void check_ignored(const struct fm_request *request, const char *body, const char *param) {
    const char *path = fm_ignored_next(&request->ignored, NULL);
    struct fm_error error;
    if (!path || strcmp(path, param) != 0 || fm_ignored_next(&request->ignored, path)) {
        fail_msg("%.200s: expected %s ignored, got %s", body, param, path ? path : "nothing");
    }
    assert_int_equal(fm_ignored_refuse(&request->ignored, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.reason, "unknown_parameter");
    assert_string_equal(error.param, param);
}

/*
 * Checks that a body is accepted (`code` NULL), accepted with an ignored member (IGNORED), or refused with OpenAI's
 * `code` ("" for none) at `param`.
 */
static inline void check_body(const struct fm_surface *surface, const char *body, const char *code, const char *param) {
    struct json_object *params = json_of(body, strlen(body));
    struct fm_request request;
    struct fm_error error;
    enum fm_code got = surface->parse(params, &request, &error);
    json_object_put(params);
    if (got == FM_OK) {
        if (code && strcmp(code, IGNORED) == 0) {
            check_ignored(&request, body, param);
        } else if (code || request.ignored.len > 0) {
            fail_msg("accepted%s: %.200s", code ? "" : ", but not whole", body);
        }
        fm_request_free(&request);
        return;
    }
    if (!code) {
        fail_msg("%.200s refused: %s", body, error.detail);
        return;
    }
    assert_int_equal(got, FM_INVALID_REQUEST);
    assert_int_equal(error.code, got);
    if (strcmp(error.reason, code) != 0 || strcmp(error.param, param) != 0) {
        fail_msg("%.200s: expected %s at %s, got %s at %s", body, code, param, error.reason, error.param);
    }
    if (!strstr(error.detail, param) || error.detail[strlen(error.detail) - 1] != '.') {
        fail_msg("%.200s: no sentence about %s: %s", body, param, error.detail);
    }
}

/* A body that is accepted (`code` NULL), ignored in part, or refused. */
struct body_row {
    const char *body;
    const char *code; /* as for check_body */
    const char *param;
};

static inline void check_bodies(const struct fm_surface *surface, const struct body_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_body(surface, rows[i].body, rows[i].code, rows[i].param);
    }
}

/* Checks that the stored input has the second part of its first message unchanged. */
static inline void check_kept_part(const char *body, const char *part) {
    struct fm_request request = request_of(&fm_surface_responses, body);
    struct json_object *kept = json_of(request.conversation.input.data, request.conversation.input.len);
    assert_json(kept, "0.content.1", part);
    json_object_put(kept);
    fm_request_free(&request);
}

/* Checks the members that the engine gets for a valid body. */
static inline void check_job(const struct fm_surface *surface, const char *body, const char *job) {
    struct fm_request request = request_of(surface, body);
    size_t len = strlen(job);
    if (request.job_members.len != len || memcmp(request.job_members.data, job, len) != 0) {
        fail_msg("expected %s, got %.*s", job, (int)request.job_members.len, request.job_members.data);
    }
    fm_request_free(&request);
}

/* An answer from its body to its end: `deltas` NULL means that the prompt was never accepted. */
struct script {
    const struct fm_surface *surface;
    const char *body;
    const char *const *deltas; /* NULL-terminated; "@NAME" begins a call of the tool, "~TEXT" is reasoning */
    enum fm_finish finish;
    const struct fm_error *error;
    const char *report;   /* the engine's report on the schema, as JSON members; NULL: none */
    const char *mismatch; /* why the text does not match the schema; NULL: it matches */
    int64_t dropped;      /* messages that the engine has left out */
};

/* Whether the events of a script are all taken at the end, as by a slow host, or each as soon as it can be sent. */
static bool slow_host;

static inline int with_slow_host(void **state) {
    (void)state;
    slow_host = true;
    return 0;
}

/* Passes on the engine's report as the front does. */
static inline void tell_report(struct fm_answer *answer, const char *members) {
    struct fm_buf report;
    fm_buf_init(&report, 1u << 20);
    fm_buf_append_str(&report, members);
    fm_answer_report(answer, &report);
    assert_null(report.data); /* the buffer was taken over */
}

static const struct fm_usage test_usage = {.input = 11, .cached = 3, .output = 7, .reasoning = 2};

/* Adds one delta of a script to the answer, as if the engine had sent it. */
static inline void produce(struct fm_answer *answer, const char *delta) {
    struct fm_error error;
    if (*delta == '@') {
        assert_int_equal(fm_answer_call(answer, delta + 1, &error), FM_OK);
    } else if (*delta == '~') {
        assert_int_equal(fm_answer_reason(answer, delta + 1, strlen(delta + 1), &error), FM_OK);
    } else {
        assert_true(fm_answer_append(answer, delta, strlen(delta)));
    }
}

/* The object of an answer as it stands now. */
static inline struct json_object *object_now(const struct fm_answer *answer) {
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 24);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    answer->surface->write(answer, &w);
    assert_false(buf.failed);
    struct json_object *object = json_of(buf.data, buf.len);
    fm_buf_free(&buf);
    return object;
}

/* Runs `script` and captures its stream. Returns the final object. */
static inline struct json_object *run(const struct script *script, struct stream *stream) {
    *stream = (struct stream){.count = 0};
    struct fm_request request = request_of(script->surface, script->body);
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, script->surface, &request, "tiny", &error), FM_OK);
    if (script->report) {
        tell_report(&answer, script->report);
    }
    if (script->deltas) {
        fm_answer_drop(&answer, script->dropped);
        fm_answer_open(&answer, test_usage.input);
        for (const char *const *delta = script->deltas; *delta; delta++) {
            produce(&answer, *delta);
            if (!slow_host) {
                pull(&answer, stream);
            }
        }
    }
    answer.usage = test_usage;
    if (script->mismatch) {
        fm_answer_mismatch(&answer, script->mismatch);
    }
    fm_answer_finish(&answer, script->finish, script->error);
    pull(&answer, stream);
    assert_int_equal(pull(&answer, stream), 0);
    struct json_object *object = object_now(&answer);
    fm_answer_free(&answer);
    return object;
}

static const char *const no_deltas[] = {NULL};

#endif
