/*
 * A conversation with the local model through session mode (protocol/SESSIONS.md).
 *
 *     cc client.c $(pkg-config --cflags --libs json-c) -o client && ./client [FM_PROXY [OPTION...]]
 */
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char content[] = "Apples and pears grew in the garden. The plums came later, from a neighbour.";

/* Starts the gateway; the other end of the returned socket is its stdin and its stdout. */
static FILE *start(char *argv[]) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        perror("socketpair");
        exit(1);
    }
    if (fork() == 0) {
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(argv[0], argv);
        perror(argv[0]);
        exit(1);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

#define ASK(gateway, ...) ask(gateway, (const char *[]){__VA_ARGS__, NULL})

/* Sends a request made from these names and strings, and waits for its answer, which the caller frees. */
static struct json_object *ask(FILE *gateway, const char *members[]) {
    struct json_object *request = json_object_new_object();
    for (; *members; members += 2) {
        json_object_object_add(request, members[0], json_object_new_string(members[1]));
    }
    dprintf(fileno(gateway), "%s\n", json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN));
    json_object_put(request);
    char *line = NULL;
    size_t size = 0;
    struct json_object *answer = getline(&line, &size, gateway) > 0 ? json_tokener_parse(line) : NULL;
    free(line);
    if (!json_object_get_boolean(json_object_object_get(answer, "ok"))) {
        const char *error = json_object_get_string(json_object_object_get(answer, "error"));
        fprintf(stderr, "error: %s\n", error ? error : "no answer");
        exit(1); /* the gateway ends by itself when its input ends */
    }
    return answer;
}

/* Prints the result, which is a list or a text, as `format` says. */
static void message(FILE *gateway, const char *session, const char *prompt, const char *text, const char *format) {
    struct json_object *answer = ASK(gateway, "command", "message", "session_id", session, "prompt", prompt, "content",
                                     text, "output_format", format);
    struct json_object *result = json_object_object_get(answer, "result");
    if (json_object_is_type(result, json_type_string)) {
        puts(json_object_get_string(result));
    }
    for (size_t i = 0; json_object_is_type(result, json_type_array) && i < json_object_array_length(result); i++) {
        printf("- %s\n", json_object_get_string(json_object_array_get_idx(result, i)));
    }
    json_object_put(answer);
}

int main(int argc, char *argv[]) {
    char *standard[] = {"fm-proxy", "sessions", NULL};
    if (argc > 1) {
        argv[0] = argv[1];
        argv[1] = "sessions";
    }
    signal(SIGPIPE, SIG_IGN);
    FILE *gateway = start(argc > 1 ? argv : standard);
    struct json_object *answer = ASK(gateway, "command", "check-availability");
    if (!json_object_get_boolean(json_object_object_get(answer, "available"))) {
        printf("not available: %s\n", json_object_get_string(json_object_object_get(answer, "reason")));
    } else {
        struct json_object *opened =
            ASK(gateway, "command", "open-session", "instructions", "You answer in few words.");
        const char *session = json_object_get_string(json_object_object_get(opened, "session_id"));
        message(gateway, session, "List the fruits that the text names.", content, "string_list");
        /* The session remembers the first answer. */
        message(gateway, session, "Write a sentence about the first of them.", content, "text");
        json_object_put(ASK(gateway, "command", "close-session", "session_id", session));
        json_object_put(ASK(gateway, "command", "shutdown"));
        json_object_put(opened);
    }
    json_object_put(answer);
    fclose(gateway);
    int status = 1;
    wait(&status);
    return status == 0 ? 0 : 1;
}
