/* fm-system preset. Names of windows, pages and files are cleaned before they are printed. */
#include "cli/preset.h"
#include "commands/preset.h"
#include "desktop/clean.h"
#include "desktop/presets.h"
#include "desktop/refuse.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define TEXT_MAX  (1u << 20)
#define PATH_SIZE 4096

struct call {
    const char *path; /* the path of presets.json */
    const char *name;
    bool json, tabs, replace;
    sy_open_desktop *open;
    void *context;
};

static int report_error(const struct fm_error *error) {
    fprintf(stderr, "fm-system: %s (%s)\n", error->detail, sy_reason(error));
    return error->code == FM_INVALID_REQUEST ? EX_DATAERR
           : error->code == FM_OVERLOADED    ? EX_TEMPFAIL
           : error->code == FM_UNAVAILABLE   ? EX_UNAVAILABLE
                                             : EX_SOFTWARE;
}

/* ---- list ---- */

static size_t length_of(struct json_object *preset, const char *list) {
    struct json_object *array = json_object_object_get(preset, list);
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static void append_counts(struct fm_buf *out, const char *name, size_t windows, size_t urls) {
    char text[96];
    sy_clean(out, name, SY_PRESET_NAME_MAX, false);
    snprintf(text, sizeof text, ": %zu window%s, %zu URL%s\n", windows, windows == 1 ? "" : "s", urls,
             urls == 1 ? "" : "s");
    fm_buf_append_str(out, text);
}

static void write_counts(struct fm_json_writer *w, const char *name, size_t windows, size_t urls) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", name);
    fm_json_key_int(w, "windows", (int64_t)windows);
    fm_json_key_int(w, "urls", (int64_t)urls);
    fm_json_object_end(w);
}

static int list(const struct call *call, struct fm_buf *out) {
    struct sy_presets presets;
    struct fm_error error;
    struct fm_json_writer w = fm_json_writer_on(out);
    if (sy_presets_read(call->path, &presets, &error) != FM_OK) {
        return report_error(&error);
    }
    if (call->json) {
        fm_json_object_begin(&w);
        fm_json_key(&w, "presets");
        fm_json_array_begin(&w);
    }
    for (size_t i = 0; i < sy_presets_count(&presets); i++) {
        struct json_object *preset = json_object_array_get_idx(presets.list, i);
        const char *name = sy_presets_name(&presets, i);
        if (call->json) {
            write_counts(&w, name, length_of(preset, "apps"), length_of(preset, "urls"));
        } else {
            append_counts(out, name, length_of(preset, "apps"), length_of(preset, "urls"));
        }
    }
    if (call->json) {
        fm_json_array_end(&w);
        fm_json_object_end(&w);
        fm_buf_append_char(out, '\n');
    }
    sy_presets_free(&presets);
    return EX_OK;
}

/* ---- save, delete ---- */

static void tell_saved(const struct call *call, struct json_object *preset, bool replaced,
                       const struct fm_buf *left_out, struct fm_buf *out) {
    fm_buf_append_str(out, replaced ? "replaced " : "saved ");
    append_counts(out, call->name, length_of(preset, "apps"), length_of(preset, "urls"));
    if (left_out->len > 0) {
        fm_buf_append_str(out, "left out:\n");
        fm_buf_append(out, left_out->data, left_out->len);
    }
}

static int save(const struct call *call, struct fm_buf *out) {
    struct sy_world world = {.presets = NULL};
    struct json_object *preset = NULL;
    struct fm_error error;
    struct fm_buf left_out;
    bool replaced = false;
    enum fm_code code = sy_presets_check_name(call->name, &error);
    code = code ? code : call->open(call->context, -1, &world.desktop, &error);
    if (code != FM_OK) {
        return report_error(&error);
    }
    fm_buf_init(&left_out, TEXT_MAX);
    code = sy_preset_of_layout(&world, call->name, call->tabs, &preset, &left_out, &error);
    code = code ? code : sy_presets_save(call->path, preset, call->replace, &replaced, &error);
    if (code == FM_OK) {
        tell_saved(call, preset, replaced, &left_out, out);
    }
    json_object_put(preset);
    fm_buf_free(&left_out);
    world.desktop.backend->free(world.desktop.self);
    sy_world_free(&world);
    return code == FM_OK ? EX_OK : report_error(&error);
}

static int delete(const struct call *call, struct fm_buf *out) {
    struct fm_error error;
    if (sy_presets_delete(call->path, call->name, &error) != FM_OK) {
        return report_error(&error);
    }
    fm_buf_append_str(out, "deleted ");
    sy_clean(out, call->name, SY_PRESET_NAME_MAX, false);
    fm_buf_append_char(out, '\n');
    return EX_OK;
}

/* ---- options ---- */

static const struct action {
    const char *name;
    const char *options; /* the options that the action takes */
    bool named;          /* the action takes a preset's name */
    int (*run)(const struct call *call, struct fm_buf *out);
} actions[] = {
    {"list", " --json", false, list},
    {"save", " --tabs --replace", true, save},
    {"delete", "", true, delete},
};

static int usage(FILE *out) {
    fputs("usage: fm-system preset list [--json]\n"
          "       fm-system preset save NAME [--tabs] [--replace]\n"
          "       fm-system preset delete NAME\n",
          out);
    return out == stderr ? EX_USAGE : EX_OK;
}

/* False: the action does not take this option. */
static bool read_option(const struct action *action, const char *option, struct call *call) {
    bool *const given = strcmp(option, "--json") == 0      ? &call->json
                        : strcmp(option, "--tabs") == 0    ? &call->tabs
                        : strcmp(option, "--replace") == 0 ? &call->replace
                                                           : NULL;
    if (!given || !strstr(action->options, option)) { /* none of the three is a part of another one */
        return false;
    }
    *given = true;
    return true;
}

int sy_preset_main(int argc, char **argv, sy_open_desktop *open, void *context) {
    char path[PATH_SIZE];
    struct call call = {.path = path, .open = open, .context = context};
    struct fm_error error;
    struct fm_buf out;
    size_t at = 0;
    while (at < sizeof actions / sizeof actions[0] && (argc < 2 || strcmp(actions[at].name, argv[1]) != 0)) {
        at++;
    }
    if (at == sizeof actions / sizeof actions[0]) {
        return usage(argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
    }
    for (int i = 2; i < argc; i++) {
        bool option = argv[i][0] == '-';
        if (option ? !read_option(&actions[at], argv[i], &call) : !actions[at].named || call.name) {
            return usage(stderr);
        }
        call.name = option ? call.name : argv[i];
    }
    if (actions[at].named && !call.name) {
        return usage(stderr);
    }
    if (sy_presets_path(path, sizeof path, &error) != FM_OK) {
        return report_error(&error);
    }
    fm_buf_init(&out, TEXT_MAX);
    int status = actions[at].run(&call, &out);
    bool written = fwrite(out.data ? out.data : "", 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    fm_buf_free(&out);
    return written ? status : EX_IOERR;
}
