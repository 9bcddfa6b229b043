/* The description of an engine (ENGINE.md, Description), in its reply to engine.initialize and as a file. */
#include "engine/kit/kit_internal.h"

#include <stdio.h>

static void write_features(const struct fm_engine_ops *ops, struct fm_json_writer *w) {
    unsigned features = ops->features | (ops->available ? FM_FEATURE_AVAILABILITY : 0u);
    fm_json_key(w, "features");
    fm_json_array_begin(w);
    for (int i = 0; i < FM_FEATURE_COUNT; i++) {
        if (features & 1u << i) {
            fm_json_str(w, fm_feature_names[i]);
        }
    }
    fm_json_array_end(w);
}

static void write_platforms(unsigned platforms, struct fm_json_writer *w) {
    static const char *const names[] = {"linux", "macos", "windows"};
    fm_json_key(w, "platforms");
    fm_json_array_begin(w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (platforms & 1u << i) {
            fm_json_str(w, names[i]);
        }
    }
    fm_json_array_end(w);
}

void fm_describe_write(const struct fm_engine_ops *ops, bool file, struct fm_json_writer *w) {
    fm_json_key_str(w, "models", ops->reads_files ? "files" : ops->lists_models ? "listed" : "own");
    write_features(ops, w);
    if (ops->remote) {
        fm_json_key_bool(w, "remote", true);
    }
    if (ops->any_order) {
        fm_json_key_str(w, "parts", "any");
    }
    if (file && ops->needs_config) {
        fm_json_key_bool(w, "config", true);
    }
    if (file && ops->platforms) {
        write_platforms(ops->platforms, w);
    }
}

int fm_describe_print(const struct fm_engine_ops *ops) {
    struct fm_buf text;
    fm_buf_init(&text, FM_DESCRIPTION_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_object_begin(&w);
    fm_describe_write(ops, true, &w);
    fm_json_object_end(&w);
    fm_buf_append_char(&text, '\n');
    bool ok = !text.failed && fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    fm_buf_free(&text);
    return ok ? 0 : FM_EXIT_NO_MEMORY;
}
