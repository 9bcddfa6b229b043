/*
 * A job on its way through the endpoints. Each endpoint is asked once, one after the other, until one has answered. If
 * a server died while it worked on the job, and no other endpoint has answered either, the endpoint of that server is
 * asked once more, because it may be a router with other servers. A router that answers 502 has asked a server that is
 * gone, and may stop using that server only after a few failures, so such a router is asked a few more times. After the
 * first output of an answer that the host is streaming, no endpoint is asked again.
 */
#include "base/log.h"
#include "base/utf8.h"
#include "engine/remote/failure.h"
#include "engine/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX (64u << 20) /* bytes of an answer that is not a stream */
#define REPEATS_MAX 3        /* vllm-router drops a worker after two failures, so the third request succeeds */
#define LAST_MAX 290         /* bytes of the last error's text if other servers are named after it */

struct fm_ask {
    struct fm_remote *remote;
    struct fm_kit_job *job;
    struct fm_ask *next;
    struct fm_ask **link; /* the pointer that points to this ask */
    size_t tried;         /* endpoints that were tried */
    size_t at;            /* index of the endpoint that was asked last */
    size_t dead;          /* index of the last endpoint that died over the job; `death` is its error */
    struct fm_error death; /* code FM_OK: no endpoint died */
    unsigned repeats;     /* how often the endpoint `dead` was asked once more */
    bool untaken;         /* the last failure means that no work on the job has begun */
    char before[200];     /* the servers that failed before this one, and how, in short; "": none */
    struct fm_transfer *transfer;
    struct fm_remote_reader reader; /* reads a stream */
    struct fm_buf body;             /* the body, so far, of an answer that is not a stream */
    struct fm_remote_answer answer;
    enum fm_code code; /* the code of the last failure; `error` has the rest */
    struct fm_error error;
};

static const struct fm_endpoint *current(const struct fm_ask *ask) {
    return &ask->remote->config.endpoints[ask->at];
}

static void finish_ask(struct fm_ask *ask, enum fm_reason reason) {
    *ask->link = ask->next;
    if (ask->next) {
        ask->next->link = ask->link;
    }
    if (!ask->answer.counted) { /* counts that the server did not report stay unknown */
        fm_kit_job_usage(ask->job, &ask->reader.usage);
    }
    fm_kit_job_finish(ask->job, reason, &ask->error);
    fm_reader_free(&ask->reader);
    fm_buf_free(&ask->body);
    fm_remote_answer_free(&ask->answer);
    free(ask);
}

/* ---- callbacks of a transfer ---- */

static bool on_body(void *state, const char *bytes, size_t len) {
    struct fm_ask *ask = state;
    fm_buf_append(&ask->body, bytes, len);
    if (ask->body.failed) {
        ask->code = fm_fail(&ask->error, FM_INTERNAL, "%s sent an answer of more than 64 MiB", current(ask)->host);
    }
    return ask->code == FM_OK;
}

/* The reader's result is handled in `on_done`, where another transfer can be started. */
static bool on_stream(void *state, const char *bytes, size_t len) {
    struct fm_ask *ask = state;
    if (!fm_transfer_streams(ask->transfer)) {
        return on_body(state, bytes, len);
    }
    ask->code = fm_reader_push(&ask->reader, bytes, len, &ask->error);
    if (ask->code == FM_OK && ask->reader.complete) {
        fm_transfer_detach(ask->transfer);
        finish_ask(ask, fm_remote_answer_end(&ask->answer, &ask->reader, &ask->error));
        return true;
    }
    return ask->code == FM_OK && !ask->reader.stopped;
}

static bool start_next(struct fm_ask *ask);

/*
 * Adds "HOST WHAT" (the error's text without the server's words) to the list of failed servers, for the text of a later
 * error. The same failure is not added twice in a row.
 */
static void note_failure(struct fm_ask *ask, const struct fm_error *failed) {
    const char *words = strstr(failed->detail, ": ");
    size_t len = words ? (size_t)(words - failed->detail) : strlen(failed->detail);
    size_t used = strlen(ask->before);
    size_t room = sizeof ask->before - used;
    const char *told = used >= len ? ask->before + used - len : NULL; /* this failure, if it was noted last */
    bool again = told && memcmp(told, failed->detail, len) == 0 && (told == ask->before || told[-1] == ' ');
    if (!again && room > sizeof ", ") {
        len = fm_utf8_whole_prefix(failed->detail, len < room - sizeof ", " ? len : room - sizeof ", ");
        snprintf(ask->before + used, room, "%s%.*s", used ? ", " : "", (int)len, failed->detail);
    }
}

/*
 * Called when no server is left: the last server's answer becomes the error, and its text names the others. If a server
 * died and can't be reached when it is asked once more, its death becomes the error, because clients try again after
 * such an error.
 */
static void tell_before(struct fm_ask *ask) {
    const struct fm_error last = ask->error;
    if (ask->repeats > 0 && strcmp(last.reason_code, "OFFLINE") == 0) {
        ask->error = ask->death;
    }
    if (*ask->before) {
        snprintf(ask->error.detail, sizeof ask->error.detail, "%.*s; before that: %s",
                 fm_utf8_shown(last.detail, LAST_MAX), last.detail, ask->before);
    }
}

/* This endpoint has failed: gives the job to the next one, if that is allowed. */
static void move_on(struct fm_ask *ask) {
    struct fm_error failed = ask->error;
    bool moves = (!ask->answer.accepted || ask->job->restartable) && fm_failure_moves_on(&failed);
    fm_log(FM_LOG_WARN, "job %lld: %s failed: %s %s", (long long)ask->job->id, current(ask)->host,
           fm_code_name(ask->code), ask->error.reason_code);
    ask->untaken = failed.again && failed.untaken;
    if (failed.again && ask->repeats == 0) {
        ask->dead = ask->at;
        ask->death = failed;
    }
    if (!moves || !start_next(ask)) {
        tell_before(ask);
        ask->error.elsewhere |= moves && fm_failure_moves_on(&ask->error); /* another engine may take the job too */
        finish_ask(ask, FM_REASON_ERROR);
        return;
    }
    note_failure(ask, &failed);
    if (ask->answer.accepted && !fm_remote_answer_restart(&ask->answer, &failed)) {
        fm_transfer_cancel(ask->transfer);
        (void)fm_fail_no_memory(&ask->error);
        finish_ask(ask, FM_REASON_ERROR);
    }
}

/* Called when the body of an answer has ended. The body may be a stream or a single piece. */
static enum fm_reason end_of_answer(struct fm_ask *ask) {
    if (ask->body.len > 0) {
        ask->code = fm_reader_whole(&ask->reader, ask->body.data, ask->body.len, &ask->error);
    }
    if (ask->reader.stopped) {
        return ask->answer.reason;
    }
    ask->code = fm_reader_close(&ask->reader, &ask->error);
    return ask->code ? FM_REASON_NONE : fm_remote_answer_end(&ask->answer, &ask->reader, &ask->error);
}

static void on_done(void *state, enum fm_code code, const struct fm_error *error) {
    struct fm_ask *ask = state;
    enum fm_reason reason = FM_REASON_NONE;
    ask->transfer = NULL;
    if (code != FM_OK && code != FM_CANCELLED) {
        ask->code = code;
        ask->error = *error;
    } else if (ask->code == FM_OK && ask->reader.stopped) {
        reason = ask->answer.reason;
    } else if (ask->code == FM_OK && ask->job->inputs) {
        reason = fm_remote_answer_embed(&ask->answer, &ask->body, &ask->error);
    } else if (ask->code == FM_OK) {
        reason = end_of_answer(ask);
    }
    if (reason == FM_REASON_ERROR && ask->answer.fault.code != FM_OK) {
        ask->error = ask->answer.fault;
    } else if (reason == FM_REASON_ERROR && ask->reader.stopped) {
        (void)fm_fail(&ask->error, FM_INTERNAL, "%s sent an answer whose parts are in no order that is allowed",
                      current(ask)->host);
    }
    if (reason == FM_REASON_ERROR && !ask->answer.accepted) { /* the server's vectors could not be read */
        ask->code = ask->error.code;
        reason = FM_REASON_NONE;
    }
    if (reason) {
        finish_ask(ask, reason);
    } else {
        move_on(ask);
    }
}

/* ---- the endpoints ---- */

/* Sends the job to the current endpoint. False: this endpoint can't take it, and `ask->error` says why. */
static bool send_job(struct fm_ask *ask, const char *model) {
    struct fm_remote *remote = ask->remote;
    const struct fm_endpoint *endpoint = current(ask);
    struct fm_buf body;
    fm_buf_init(&body, FM_REQUEST_MAX);
    ask->code = fm_request_write(endpoint, model, ask->job, &body, &ask->error);
    if (ask->code != FM_OK) {
        fm_buf_free(&body);
        return false;
    }
    fm_reader_free(&ask->reader);
    fm_reader_init(&ask->reader, endpoint, model, &remote->config.secrets, fm_remote_answer_take, &ask->answer);
    fm_buf_reset(&ask->body);
    ask->answer.endpoint = endpoint;
    const struct fm_call call = {
        .endpoint = endpoint,
        .path = fm_request_path(endpoint, ask->job),
        .body = &body,
        .session = ask->job->session,
        .stream = !ask->job->inputs,
        .data = ask->job->inputs ? on_body : on_stream,
        .done = on_done,
        .state = ask,
    };
    ask->transfer = fm_transport_start(&remote->transport, &call);
    fm_buf_free(&body);
    if (!ask->transfer) {
        ask->code = fm_fail_no_memory(&ask->error);
    }
    return ask->transfer != NULL;
}

/* Sends the job to the endpoint `at`. `known`: that endpoint has the model, which is required. */
static bool try_at(struct fm_ask *ask, size_t at, bool *known) {
    struct fm_remote_model spare;
    const struct fm_remote_model *model =
        fm_endpoint_model(&ask->remote->config.endpoints[at], ask->job->model, &spare);
    *known = model != NULL;
    ask->at = model ? at : ask->at;
    return model && send_job(ask, model->name);
}

/*
 * Sends the job to the next endpoint that can do it. False: no endpoint is left, and `ask->error` is the error of the
 * last one.
 */
static bool start_next(struct fm_ask *ask) {
    struct fm_error failed = ask->error; /* from an asked endpoint; it says more than why another was not asked */
    bool known;
    while (ask->tried < ask->remote->config.endpoint_count) {
        if (try_at(ask, ask->tried++, &known)) {
            return true;
        }
        if (known && !ask->error.elsewhere) {
            return false;
        }
    }
    if (ask->death.code != FM_OK && (ask->repeats == 0 || ask->untaken) && ask->repeats < REPEATS_MAX) {
        ask->repeats++;
        return try_at(ask, ask->dead, &known);
    }
    if (failed.code != FM_OK) {
        ask->error = failed;
        ask->code = failed.code;
    }
    return false;
}

void fm_ask_start(struct fm_remote *remote, struct fm_kit_job *job) {
    struct fm_ask *ask = calloc(1, sizeof *ask);
    if (!ask) {
        fm_kit_job_finish(job, FM_REASON_ERROR, NULL);
        return;
    }
    *ask = (struct fm_ask){.remote = remote, .job = job, .next = remote->asks, .link = &remote->asks};
    if (ask->next) {
        ask->next->link = &ask->next;
    }
    remote->asks = ask;
    fm_remote_answer_init(&ask->answer, job);
    fm_buf_init(&ask->body, BODY_MAX);
    fm_reader_init(&ask->reader, &remote->config.endpoints[0], NULL, &remote->config.secrets, fm_remote_answer_take,
                   &ask->answer);
    if (start_next(ask)) {
        return;
    }
    if (ask->code == FM_OK) {
        (void)fm_fail(&ask->error, FM_NOT_FOUND, "no endpoint of the remote engine has the model %.200s", job->model);
        snprintf(ask->error.param, sizeof ask->error.param, "model");
        ask->error.elsewhere = true;
    }
    finish_ask(ask, FM_REASON_ERROR);
}

void fm_ask_drop_aborted(struct fm_remote *remote) {
    struct fm_ask *next;
    for (struct fm_ask *ask = remote->asks; ask; ask = next) {
        next = ask->next;
        if (fm_kit_job_aborted(ask->job)) {
            fm_transfer_cancel(ask->transfer);
            finish_ask(ask, FM_REASON_ABORTED);
        }
    }
}
