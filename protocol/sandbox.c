/* The object `sandbox` as JSON: written by engines, read by the front. */
#include "protocol/sandbox.h"

#include <json-c/json.h>
#include <string.h>

void fm_sandbox_write(const struct fm_sandbox *sandbox, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_bool(w, "no_new_privs", sandbox->no_new_privs);
    fm_json_key_int(w, "landlock", sandbox->landlock);
    fm_json_key_bool(w, "seccomp", sandbox->seccomp);
    fm_json_key_str(w, "network", sandbox->network_denied ? "denied" : "allowed");
    fm_json_key_str(w, "devices", !sandbox->devices_denied ? "allowed" : sandbox->gpus_allowed ? "gpus" : "denied");
    fm_json_key_str(w, "capabilities", sandbox->no_capabilities ? "none" : "some");
    fm_json_object_end(w);
}

/* The member if it has the given type; else NULL. */
static struct json_object *typed_member(struct json_object *object, const char *key, enum json_type type) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_is_type(value, type) ? value : NULL;
}

/* The index of the word that the member has, from 0 on; -1: none of them. */
static int read_word(struct json_object *object, const char *key, const char *const words[], int count) {
    struct json_object *value = typed_member(object, key, json_type_string);
    const char *word = value ? json_object_get_string(value) : "";
    while (count > 0 && strcmp(words[count - 1], word) != 0) {
        count--;
    }
    return count - 1;
}

bool fm_sandbox_read(struct json_object *object, struct fm_sandbox *sandbox) {
    static const char *const fates[] = {"denied", "allowed", "gpus"};
    static const char *const amounts[] = {"none", "some"};
    struct json_object *no_new_privs = typed_member(object, "no_new_privs", json_type_boolean);
    struct json_object *landlock = typed_member(object, "landlock", json_type_int);
    struct json_object *seccomp = typed_member(object, "seccomp", json_type_boolean);
    int network = read_word(object, "network", fates, 2);
    int devices = read_word(object, "devices", fates, 3);
    int capabilities = read_word(object, "capabilities", amounts, 2);
    *sandbox = (struct fm_sandbox){
        .no_new_privs = json_object_get_boolean(no_new_privs),
        .landlock = json_object_get_int(landlock),
        .seccomp = json_object_get_boolean(seccomp),
        .network_denied = network == 0,
        .devices_denied = devices == 0 || devices == 2,
        .gpus_allowed = devices == 2,
        .no_capabilities = capabilities == 0,
    };
    bool known = network >= 0 && devices >= 0 && capabilities >= 0;
    return no_new_privs && landlock && seccomp && sandbox->landlock >= 0 && known;
}
