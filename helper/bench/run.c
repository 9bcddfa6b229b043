/* Gets answers through the front and measures their times (run.h). */
#include "bench/run.h"
#include "base/clock.h"
#include "base/platform.h"

#include <json-c/json.h>
#include <string.h>

/* ---- messages of the front ---- */

static struct json_object *get(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

static const char *get_text(struct json_object *object, const char *name) {
    struct json_object *value = get(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static double get_rate(struct json_object *timings, const char *name) {
    struct json_object *value = get(timings, name);
    return value ? json_object_get_double(value) : -1;
}

static struct fm_bench_answer *find_answer(struct fm_bench_host *host, int64_t id) {
    for (size_t i = 0; i < host->count; i++) {
        if (host->answers[i].id == id) {
            return &host->answers[i];
        }
    }
    return NULL;
}

/* Whether the message is a piece of output: of a text, of reasoning, or of a call. */
static bool is_delta(const char *type) {
    static const char end[] = ".delta";
    size_t len = strlen(type);
    return len >= sizeof end - 1 && strcmp(type + len - (sizeof end - 1), end) == 0;
}

static void take_event(struct fm_bench_host *host, struct json_object *params) {
    struct fm_bench_answer *answer = find_answer(host, json_object_get_int64(get(params, "id")));
    if (answer && !answer->first_us && is_delta(get_text(get(params, "event"), "type"))) {
        answer->first_us = fm_now_us();
    }
}

static void note_failure(struct fm_bench_host *host, const struct fm_rpc_message *message) {
    const char *detail = get_text(get(message->result, "error"), "detail");
    detail = detail[0] ? detail : get_text(message->error, "message");
    if (host->error.code == FM_OK) {
        enum fm_code code = fm_code_parse(get_text(get(message->result, "error"), "code"));
        (void)fm_fail(&host->error, code, "%s", detail[0] ? detail : "the front gave no reason");
    }
}

static void take_answer(struct fm_bench_answer *answer, struct json_object *response) {
    struct json_object *usage = get(response, "usage");
    struct json_object *timings = get(get(response, "fm"), "timings");
    answer->input_tokens = json_object_get_int64(get(usage, "input_tokens"));
    answer->output_tokens = json_object_get_int64(get(usage, "output_tokens"));
    answer->prefill_per_second = get_rate(timings, "prompt_tokens_per_second");
    answer->output_per_second = get_rate(timings, "output_tokens_per_second");
}

static void take_reply(struct fm_bench_host *host, const struct fm_rpc_message *message) {
    struct fm_rpc_id call = fm_rpc_id_int(host->call);
    bool ok = json_object_get_boolean(get(message->result, "ok"));
    if (!ok) {
        note_failure(host, message);
    }
    if (fm_rpc_id_equal(&message->id, &call)) {
        host->result = json_object_get(message->result);
        host->call = 0;
    }
    for (size_t i = 0; i < host->count; i++) {
        struct fm_rpc_id id = fm_rpc_id_int(host->answers[i].id);
        if (fm_rpc_id_equal(&message->id, &id)) {
            host->answers[i].end_us = fm_now_us();
            take_answer(&host->answers[i], get(message->result, "response"));
        }
    }
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_bench_host *host = context;
    (void)root;
    if (message->kind == FM_RPC_RESPONSE) {
        take_reply(host, message);
    } else if (message->kind == FM_RPC_NOTIFICATION) {
        take_event(host, message->params);
    }
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct fm_bench_host *host = context;
    (void)id;
    (void)code;
    (void)fm_fail(&host->error, FM_INTERNAL, "the front sent what is not a message: %s", detail);
}

/* Reads once from the front. False: there is nothing more to wait for; host->error says why. */
static bool receive(struct fm_bench_host *host) {
    const struct fm_inbound_handler handler = {.context = host, .message = on_message, .fault = on_fault};
    struct fm_waited waited[] = {{.fd = host->link.from_front, .input = true}, {.fd = host->end_fd, .input = true}};
    fm_wait(waited, 2, -1);
    if (waited[1].ready) {
        (void)fm_fail(&host->error, FM_CANCELLED, "it was ended early");
    } else if (waited[0].ready && !fm_link_receive(&host->link, &handler)) {
        (void)fm_fail(&host->error, FM_INTERNAL, "the front has ended");
    }
    return host->error.code == FM_OK;
}

/* ---- the requests ---- */

static enum fm_code send_call(struct fm_bench_host *host, int64_t *id) {
    return fm_link_call_send(&host->link, id) ? FM_OK
                                              : fm_fail(&host->error, FM_INTERNAL, "the front takes no request");
}

enum fm_code fm_bench_call(struct fm_bench_host *host, const char *method) {
    host->error = (struct fm_error){.code = FM_OK};
    host->count = 0;
    json_object_put(host->result);
    host->result = NULL;
    struct fm_json_writer w = fm_link_call_begin(&host->link, method);
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    if (send_call(host, &host->call) != FM_OK) {
        return host->error.code;
    }
    while (host->call && receive(host)) {
    }
    return host->error.code;
}

/* Asks for all tokens, even if the model would end earlier. The sampling has no randomness, so each run is the same. */
static enum fm_code request_answer(struct fm_bench_host *host, struct fm_bench_answer *answer) {
    struct fm_json_writer w = fm_link_call_begin(&host->link, "responses.create");
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "input", answer->prompt);
    fm_json_key_int(&w, "max_output_tokens", answer->max_tokens);
    fm_json_key_int(&w, "temperature", 0);
    fm_json_key_bool(&w, "ignore_eos", true);
    fm_json_key_bool(&w, "stream", true);
    fm_json_key_bool(&w, "store", false);
    fm_json_key(&w, "fm");
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "timings", true);
    fm_json_key_bool(&w, "full_result", true);
    fm_json_object_end(&w);
    fm_json_object_end(&w);
    answer->sent_us = fm_now_us();
    answer->first_us = 0;
    answer->end_us = 0;
    return send_call(host, &answer->id);
}

static bool all_ended(const struct fm_bench_host *host) {
    bool ended = true;
    for (size_t i = 0; i < host->count; i++) {
        ended &= host->answers[i].end_us != 0;
    }
    return ended;
}

enum fm_code fm_bench_answers(struct fm_bench_host *host, struct fm_bench_answer *answers, size_t count) {
    host->error = (struct fm_error){.code = FM_OK};
    host->answers = answers;
    host->count = count;
    for (size_t i = 0; i < count; i++) {
        if (request_answer(host, &answers[i]) != FM_OK) {
            return host->error.code;
        }
    }
    while (!all_ended(host) && receive(host)) {
    }
    return host->error.code;
}
