/*
 * The hash that all requests of a conversation share. It covers the messages up to the user's first one, in the form in
 * which the engine gets them. It only has to tell conversations apart (base/hash.h).
 */
#include "base/hash.h"
#include "surface/surface.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The end of the string that begins at `at`, in well-formed JSON. */
static const char *after_string(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : end;
}

/* The end of the value that begins at `at`. A value that is no object, list or string ends at the next comma. */
static const char *after_value(const char *at, const char *end) {
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = after_string(at, end);
        } else {
            depth += *at == '{' || *at == '[';
            depth -= *at == '}' || *at == ']';
            at++;
        }
        if (depth == 0 && (at == end || *at == ',' || *at == ']' || *at == '}')) {
            break;
        }
    }
    return at;
}

/* The list of messages among the members; NULL: there is none. Our writer leaves no white space. */
static const char *find_messages(const char *at, const char *end) {
    static const char key[] = "\"messages\":[";
    while (at < end) {
        if ((size_t)(end - at) > sizeof key && memcmp(at, key, sizeof key - 1) == 0) {
            return at + sizeof key - 1;
        }
        at = after_string(at, end);                     /* the name */
        at = at < end ? after_value(at + 1, end) : end; /* after its colon */
        at += at < end && *at == ',';
    }
    return NULL;
}

bool fm_request_session(const struct fm_request *request, char session[FM_SESSION_SIZE]) {
    static const char user[] = "{\"role\":\"user\"";
    const char *at = request->job_members.data;
    const char *end = at ? at + request->job_members.len : at;
    uint64_t hash = FM_HASH_START;
    bool asked = false;
    at = at ? find_messages(at, end) : NULL;
    while (at && at < end && *at == '{' && !asked) {
        const char *next = after_value(at, end);
        asked = (size_t)(next - at) >= sizeof user && memcmp(at, user, sizeof user - 1) == 0;
        hash = fm_hash(hash, at, (size_t)(next - at));
        at = next;
        at += at < end && *at == ',';
    }
    if (asked) {
        snprintf(session, FM_SESSION_SIZE, "%016" PRIx64, hash);
    }
    return asked;
}
