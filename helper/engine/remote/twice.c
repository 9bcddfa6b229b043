/* Looks for members that occur twice. The text is known to be valid JSON, so nothing else is checked. */
#include "engine/remote/twice.h"
#include "base/buf.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

struct scan {
    const char *at;
    char *path;
    size_t size;
};

static bool find_in_value(struct scan *scan, size_t path_len);

static void skip_blanks(struct scan *scan) {
    scan->at += strspn(scan->at, " \t\r\n");
}

/* Moves past the string at `at`, which begins with its quote. */
static void skip_string(struct scan *scan) {
    for (scan->at++; *scan->at != '"'; scan->at++) {
        scan->at += *scan->at == '\\';
    }
    scan->at++;
}

/* Appends `fmt`, formatted with `name` or `index`, to the path. Returns the new length. */
static size_t go_into(struct scan *scan, size_t path_len, const char *name, size_t index) {
    size_t room = scan->size - path_len;
    int len = name ? snprintf(scan->path + path_len, room, "%s%s", path_len > 0 ? "." : "", name)
                   : snprintf(scan->path + path_len, room, "[%zu]", index);
    return (size_t)len < room ? path_len + (size_t)len : scan->size - 1;
}

/* Reads a member's name and adds it to the object `names`. True: it is there already. */
static bool take_name(struct scan *scan, struct json_object *names, const char **name) {
    const char *start = scan->at;
    struct json_object *text = NULL;
    struct fm_buf scratch;
    skip_string(scan);
    fm_buf_init(&scratch, (size_t)(scan->at - start));
    bool built = fm_json_tree(start, (size_t)(scan->at - start), &scratch, &text);
    fm_buf_free(&scratch);
    const char *key = built ? json_object_get_string(text) : "";
    bool twice = json_object_object_get_ex(names, key, NULL);
    json_object_object_add(names, key, text); /* `names` now owns the text, so `key` lives as long as `names` */
    *name = key;
    return twice;
}

static bool find_in_object(struct scan *scan, size_t path_len) {
    struct json_object *names = json_object_new_object();
    bool found = names == NULL;
    scan->at++;
    skip_blanks(scan);
    while (!found && *scan->at != '}') {
        const char *name;
        found = take_name(scan, names, &name);
        size_t inner = go_into(scan, path_len, name, 0);
        skip_blanks(scan);
        scan->at++; /* the colon */
        found = found || find_in_value(scan, inner);
        skip_blanks(scan);
        scan->at += *scan->at == ',';
        skip_blanks(scan);
    }
    json_object_put(names);
    scan->at++;
    return found && names;
}

static bool find_in_list(struct scan *scan, size_t path_len) {
    bool found = false;
    scan->at++;
    skip_blanks(scan);
    for (size_t i = 0; !found && *scan->at != ']'; i++) {
        found = find_in_value(scan, go_into(scan, path_len, NULL, i));
        skip_blanks(scan);
        scan->at += *scan->at == ',';
        skip_blanks(scan);
    }
    scan->at++;
    return found;
}

static bool find_in_value(struct scan *scan, size_t path_len) {
    skip_blanks(scan);
    if (*scan->at == '{') {
        return find_in_object(scan, path_len);
    }
    if (*scan->at == '[') {
        return find_in_list(scan, path_len);
    }
    if (*scan->at == '"') {
        skip_string(scan);
    } else {
        scan->at += strcspn(scan->at, ",]} \t\r\n");
    }
    return false;
}

bool fm_json_find_twice(const char *text, size_t len, char *path, size_t size) {
    struct fm_buf copy; /* a copy that ends with a NUL */
    fm_buf_init(&copy, len + 1);
    fm_buf_append(&copy, text, len);
    fm_buf_append_char(&copy, '\0');
    struct scan scan = {.at = copy.data, .path = path, .size = size};
    path[0] = '\0';
    bool found = !copy.failed && find_in_value(&scan, 0);
    fm_buf_free(&copy);
    return found;
}
