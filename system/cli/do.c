/*
 * `do`: matches words, asks questions if necessary, then runs a plan. All text from the desktop is printed without
 * control characters. Nothing is closed without --yes, or a yes on a terminal.
 */
#include "cli/do.h"
#include "commands/table.h"
#include "desktop/refuse.h"
#include "match/words.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX    (16u << 20)
#define ROUNDS     5    /* questions about one wish */
#define SHOWN_MAX  200  /* characters of one text */
#define ANSWER_MAX 4000 /* bytes of an answer, or of a question with its candidates */

/* ---- printing ---- */

static struct json_object *json_member(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

/* Prints `text`, which comes from the desktop or a page, in a form that is safe for a terminal. */
static void put_text(FILE *out, const char *text, size_t max) {
    char plain[4 * ANSWER_MAX + 4];
    sy_plain(text ? text : "", max, plain, sizeof plain);
    fputs(plain, out);
}

static void put_member(FILE *out, const char *before, struct json_object *object, const char *name) {
    struct json_object *value = json_member(object, name);
    if (value) {
        fputs(before, out);
        put_text(out, json_object_get_string(value), SHOWN_MAX);
    }
}

static void put_list(FILE *out, const char *before, struct json_object *list) {
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : before, out);
        put_text(out, json_object_get_string(json_object_array_get_idx(list, i)), SHOWN_MAX);
    }
}

static void put_tabs(FILE *out, struct json_object *tabs) {
    for (size_t i = 0; i < json_object_array_length(tabs); i++) {
        struct json_object *tab = json_object_array_get_idx(tabs, i);
        fprintf(out, "%4lld%s ", (long long)json_object_get_int64(json_member(tab, "index")),
                json_object_get_boolean(json_member(tab, "is_active")) ? "*" : " ");
        put_member(out, "", tab, "title");
        put_member(out, "  ", tab, "domain");
        fputc('\n', out);
    }
}

static void put_apps(FILE *out, struct json_object *apps) {
    for (size_t i = 0; i < json_object_array_length(apps); i++) {
        struct json_object *app = json_object_array_get_idx(apps, i);
        put_member(out, json_object_get_boolean(json_member(app, "is_active")) ? "* " : "  ", app, "name");
        fputc('\n', out);
    }
}

/*
 * Prints one line for an action that was done, or would be done. A failed step has a line only if it has a list of
 * closed tabs.
 */
static void put_result(FILE *out, struct json_object *result) {
    const char *type = json_object_get_string(json_member(result, "type"));
    struct json_object *ok = json_member(result, "ok");
    bool failed = ok && !json_object_get_boolean(ok);
    struct json_object *list = json_member(result, strcmp(type, "list_apps") == 0 ? "apps" : "tabs");
    struct json_object *answer = strcmp(type, "query") == 0 ? json_member(result, "answer") : NULL;
    if (failed && !json_member(result, "closed")) {
        return;
    }
    if (strcmp(type, "list_tabs") == 0 && list) {
        put_tabs(out, list);
    } else if (strcmp(type, "list_apps") == 0 && list) {
        put_apps(out, list);
    } else if (answer) {
        put_text(out, json_object_get_string(answer), ANSWER_MAX);
        fputc('\n', out);
    } else {
        put_text(out, type, SHOWN_MAX);
        put_member(out, ": ", result, "app_name");
        put_member(out, ": ", result, "preset_name");
        put_member(out, ": ", result, "title");
        put_member(out, ": ", json_member(result, "title") ? NULL : result, "url");
        put_list(out, " at ", json_member(result, "bounds"));
        put_list(out, ": closed tab ", json_member(result, "closed"));
        put_list(out, "; the page refused: tab ", json_member(result, "blocked"));
        put_list(out, "; left open, it shows another page now: tab ", json_member(result, "changed"));
        fputc('\n', out);
    }
}

static void put_error(const struct sy_do *how, const struct fm_error *error) {
    if (how->json) {
        struct fm_buf text;
        fm_buf_init(&text, OUT_MAX);
        struct fm_json_writer w = fm_json_writer_on(&text);
        fm_json_object_begin(&w);
        fm_json_key_bool(&w, "ok", false);
        fm_json_key(&w, "error");
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "code", sy_reason(error));
        fm_json_key_str(&w, "param", error->param);
        fm_json_key_str(&w, "detail", error->detail);
        fm_json_object_end(&w);
        fm_json_object_end(&w);
        fprintf(how->out, "%.*s\n", (int)text.len, text.data ? text.data : "");
        fm_buf_free(&text);
    } else {
        fputs("fm-system: ", how->err);
        put_text(how->err, error->detail, SHOWN_MAX);
        fprintf(how->err, " (%s)\n", sy_reason(error));
    }
}

/* ---- asking ---- */

/* Reads a line that the user types. False: it is empty, or the input has ended. */
static bool read_line(const struct sy_do *how, const char *prompt, char *line, size_t size) {
    fputs(prompt, how->out);
    fflush(how->out);
    if (!fgets(line, (int)size, how->in)) {
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line[0] != '\0';
}

static struct json_object *tree_of(const struct fm_buf *text) {
    struct fm_buf scratch;
    struct json_object *root = NULL;
    size_t at;
    fm_buf_init(&scratch, OUT_MAX);
    if (fm_json_check(text->data, text->len, FM_JSON_VALUES_MAX, &at) ||
        !fm_json_tree(text->data, text->len, &scratch, &root)) {
        root = NULL;
    }
    fm_buf_free(&scratch);
    return root;
}

/*
 * Matches the words. If they are not clear and there is a terminal, asks the user, more than once if necessary. The
 * caller frees `*envelope`.
 */
static enum fm_code match(struct sy_world *world, const char *words, const struct sy_do *how,
                          struct json_object **envelope, struct fm_error *error) {
    char lines[2][SY_TEXT_MAX + 2];
    struct sy_match_options options = {.picker = how->picker};
    const char *said = words;
    *envelope = NULL;
    for (int round = 0;; round++) {
        struct sy_matched matched;
        struct fm_buf text;
        fm_buf_init(&text, OUT_MAX);
        struct fm_json_writer w = fm_json_writer_on(&text);
        enum fm_code code = sy_match_now(world, said, &options, &w, &matched, error);
        struct json_object *next = code == FM_OK && !text.failed ? tree_of(&text) : NULL;
        fm_buf_free(&text);
        json_object_put(*envelope);
        *envelope = next;
        if (!next) {
            return code ? code : fm_fail_no_memory(error);
        }
        if (how->json || !json_object_get_boolean(json_member(next, "needs_clarification"))) {
            return FM_OK;
        }
        put_text(how->out, json_object_get_string(json_member(next, "clarification_reason")), ANSWER_MAX);
        fputc('\n', how->out);
        char *line = lines[round % 2];
        if (!how->terminal || round == ROUNDS || !read_line(how, "> ", line, sizeof lines[0])) {
            return FM_OK;
        }
        options.earlier_words = said;
        options.earlier_envelope = next;
        said = line;
    }
}

static bool plan_destroys(const struct sy_plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].command->destroys) {
            return true;
        }
    }
    return false;
}

static const struct sy_tab *tab_of(const struct sy_plan *plan, const char *id) {
    for (size_t i = 0; i < plan->snapshot.raw_tabs.count; i++) {
        if (strcmp(plan->snapshot.raw_tabs.at[i].id, id) == 0) {
            return &plan->snapshot.raw_tabs.at[i];
        }
    }
    return NULL;
}

static void put_losses(FILE *out, const char *before, const struct sy_plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        const struct sy_step *step = &plan->steps[i];
        if (step->command->destroys && step->name) {
            fprintf(out, "%sclose the application ", before);
            put_text(out, step->name, SHOWN_MAX);
            fprintf(out, " (%zu window%s)\n", step->id_count, step->id_count == 1 ? "" : "s");
        }
        for (size_t j = 0; j < step->id_count && step->command->destroys && !step->name; j++) {
            const struct sy_tab *tab = tab_of(plan, step->ids[j]);
            fprintf(out, "%sclose the tab ", before);
            put_text(out, tab ? tab->title : "", SHOWN_MAX);
            fputc('\n', out);
        }
    }
}

/* Whether the plan may run: the plan closes nothing, or the user allows that. */
static bool may_destroy(const struct sy_plan *plan, const struct sy_do *how, struct fm_error *error) {
    char line[16];
    if (how->yes || !plan_destroys(plan)) {
        return true;
    }
    if (!how->terminal || how->json) {
        sy_refuse(error, "denied", "",
                  "this closes something, and nobody can be asked here: say --yes, or see with --dry-run");
        return false;
    }
    put_losses(how->out, "", plan);
    bool yes =
        read_line(how, "Do that? [y/N] ", line, sizeof line) && (strcmp(line, "y") == 0 || strcmp(line, "yes") == 0);
    if (!yes) {
        sy_refuse(error, "denied", "", "nothing was closed");
    }
    return yes;
}

/* ---- doing ---- */

static void put_results(const struct sy_do *how, const struct fm_buf *text) {
    struct json_object *root = how->json ? NULL : tree_of(text);
    struct json_object *list = json_member(root, how->dry_run ? "would" : "results");
    if (how->json) {
        fprintf(how->out, "%.*s\n", (int)text->len, text->data ? text->data : "");
    }
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        fputs(how->dry_run ? "would " : "", how->out);
        put_result(how->out, json_object_array_get_idx(list, i));
    }
    json_object_put(root);
}

static enum fm_code run_envelope(struct sy_world *world, struct json_object *envelope, const struct sy_do *how,
                                 struct fm_error *error) {
    struct sy_plan plan;
    struct fm_buf text;
    fm_buf_init(&text, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    enum fm_code code = sy_plan_envelope(world, envelope, &plan, error);
    bool may = code == FM_OK && (how->dry_run || may_destroy(&plan, how, error));
    if (may) {
        code = how->dry_run ? sy_plan_tell(&plan, &w, error) : sy_plan_run(world, &plan, NULL, NULL, &w, error);
        put_results(how, &text);
        if (how->dry_run && !how->json) {
            put_losses(how->out, "  ", &plan);
        }
    } else if (code == FM_OK) {
        code = error->code;
    }
    fm_buf_free(&text);
    sy_plan_free(&plan);
    return code;
}

enum sy_done sy_do(struct sy_world *world, const char *words, const struct sy_do *how) {
    struct json_object *envelope = NULL;
    struct fm_error error = {.code = FM_OK};
    enum fm_code code = match(world, words, how, &envelope, &error);
    bool unclear = code == FM_OK && json_object_get_boolean(json_member(envelope, "needs_clarification"));
    if (code == FM_OK && how->json) {
        fprintf(how->out, "%s\n",
                json_object_to_json_string_ext(envelope, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    }
    if (code == FM_OK && !unclear) {
        code = run_envelope(world, envelope, how, &error);
    }
    if (code != FM_OK) {
        put_error(how, &error);
    }
    json_object_put(envelope);
    return code != FM_OK ? SY_NOT_DONE : unclear ? SY_UNCLEAR : SY_DONE;
}
