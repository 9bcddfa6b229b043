/*
 * A host in C: asks the helper for an answer and prints it as it comes. Usage:
 *
 *     host fm-proxy PROMPT [OPTION of fm-proxy ...]
 *
 * Ctrl-C cancels the answer; what has come so far stays. protocol/client/README.md explains it line by line.
 */
#include "protocol/client/client.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_MAX (1u << 20)

static volatile sig_atomic_t interrupted;

struct answer {
    bool settled;
    enum fm_code code;
};

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static const char *text_of(struct json_object *object, const char *name) {
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? json_object_get_string(value) : "";
}

static void on_event(void *context, const char *method, struct json_object *event) {
    (void)context;
    (void)method;
    if (strcmp(text_of(event, "type"), "response.output_text.delta") == 0) {
        fputs(text_of(event, "delta"), stdout);
        fflush(stdout);
    }
}

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct answer *answer = context;
    answer->settled = true;
    answer->code = reply->code;
    puts("");
    if (reply->error) {
        fprintf(stderr, "%s: %s\n", fm_code_name(reply->code), reply->error->detail);
    }
}

static enum fm_code send_prompt(struct fm_client *client, const char *prompt, struct answer *answer, int64_t *id,
                                struct fm_error *error) {
    const struct fm_client_handler handler = {answer, on_event, on_settled};
    struct fm_buf params;
    fm_buf_init(&params, REQUEST_MAX);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "input", prompt);
    fm_json_key_bool(&w, "stream", true);
    fm_json_key_bool(&w, "store", false);
    fm_json_object_end(&w);
    enum fm_code code = params.failed
                            ? fm_fail_no_memory(error)
                            : fm_client_call(client, "responses.create", params.data, params.len, &handler, id, error);
    fm_buf_free(&params);
    return code;
}

/* One round of the host's own loop: poll() with the descriptors of the client; a real host has more descriptors. */
static void loop_once(struct fm_client *client) {
    struct fm_waited wanted[FM_WAITED_MAX];
    struct pollfd fds[FM_WAITED_MAX];
    size_t count = fm_client_fds(client, wanted);
    for (size_t i = 0; i < count; i++) {
        fds[i].fd = wanted[i].fd;
        fds[i].events = (short)((wanted[i].input ? POLLIN : 0) | (wanted[i].room ? POLLOUT : 0));
    }
    poll(fds, (nfds_t)count, (int)fm_client_timeout(client));
    fm_client_process(client);
}

int main(int argc, char **argv) {
    struct answer answer = {.settled = false};
    struct fm_error error = {.code = FM_OK};
    int64_t id = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: %s fm-proxy PROMPT [OPTION ...]\n", argv[0]);
        return 64;
    }
    const struct fm_client_options options = {.path = argv[1], .arguments = (const char *const *)argv + 3};
    struct fm_client *client = fm_client_new(&options);
    signal(SIGINT, on_interrupt);
    if (!client || send_prompt(client, argv[2], &answer, &id, &error) != FM_OK) {
        fprintf(stderr, "%s\n", client ? error.detail : "out of memory");
        fm_client_free(client);
        return 1;
    }
    while (!answer.settled) {
        if (interrupted) {
            fm_client_cancel(client, id); /* a second cancel does nothing */
        }
        loop_once(client);
    }
    fm_client_free(client);
    return answer.code == FM_OK ? 0 : 1;
}
