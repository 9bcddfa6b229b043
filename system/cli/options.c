/* Reads the options that sub-commands share. Errors are reported on stderr, in one line. */
#include "cli/options.h"
#include "base/buf.h"
#include "mcp/lists.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define DESKTOP_MAX (16u << 20) /* bytes of a fake desktop's file */

static bool read_fake(struct sy_options *options, const char *path) {
    struct fm_buf text;
    struct fm_buf scratch;
    size_t offset = 0;
    char piece[16384];
    size_t len;
    const char *fault = "it can't be opened";
    FILE *file = fopen(path, "re");
    fm_buf_init(&text, DESKTOP_MAX);
    fm_buf_init(&scratch, DESKTOP_MAX);
    while (file && (len = fread(piece, 1, sizeof piece, file)) > 0) {
        fm_buf_append(&text, piece, len);
    }
    if (file) {
        fclose(file);
        fault = text.failed ? "it is too large" : fm_json_check(text.data, text.len, FM_JSON_VALUES_MAX, &offset);
    }
    if (!fault && !fm_json_tree(text.data, text.len, &scratch, &options->fake)) {
        fault = "out of memory";
    }
    if (!fault && !json_object_is_type(options->fake, json_type_object)) {
        fault = "it must be an object of JSON";
    }
    fm_buf_free(&text);
    fm_buf_free(&scratch);
    if (fault) {
        fprintf(stderr, "fm-system: --desktop %s: %s\n", path, fault);
    }
    return !fault;
}

/* Refuses a name that no tool has: it would silently allow nothing. */
static bool check_names(const char *list) {
    for (const char *at = list; at; at = strchr(at, ',')) {
        char name[64];
        at += *at == ',';
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (!sy_is_tool(name)) {
            fprintf(stderr, "fm-system: --allow: there is no tool \"%s\"\n", name);
            return false;
        }
    }
    return true;
}

/* Where to store the value of an option that is kept as text; NULL: the option is not kept as text. */
static const char **plain_value(struct sy_options *options, const char *name) {
    return strcmp(name, "--allow") == 0           ? &options->allow
           : strcmp(name, "--proxy") == 0         ? &options->proxy
           : strcmp(name, "--chrome-socket") == 0 ? &options->chrome_socket
                                                  : NULL;
}

bool sy_option_read(struct sy_options *options, int argc, char **argv, int *at, bool *told) {
    const char *name = argv[*at];
    const char *value = *at + 1 < argc ? argv[*at + 1] : NULL;
    const char **kept = plain_value(options, name);
    bool takes = kept || strcmp(name, "--desktop") == 0;
    *told = takes;
    if (takes && !value) {
        fprintf(stderr, "fm-system: %s needs a value\n", name);
        return false;
    }
    *at += takes ? 2 : 1;
    if (kept) {
        *kept = value;
        return kept != &options->allow || check_names(value);
    }
    if (strcmp(name, "--read-only") == 0) {
        options->read_only = true;
        return true;
    }
    if (strcmp(name, "--no-model") == 0) {
        options->no_model = true;
        return true;
    }
    return takes && read_fake(options, value);
}

bool sy_options_read(struct sy_options *options, int argc, char **argv) {
    for (int at = 1; at < argc;) {
        const char *name = argv[at];
        bool told;
        if (!sy_option_read(options, argc, argv, &at, &told)) {
            if (!told) {
                fprintf(stderr, "fm-system: unknown option %s; --help lists them\n", name);
            }
            return false;
        }
    }
    return true;
}

void sy_options_free(struct sy_options *options) {
    json_object_put(options->fake);
    options->fake = NULL;
}
