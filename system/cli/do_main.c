/* `fm-system do`: its options, the desktop, and fm-proxy if it is there. */
#include "cli/do.h"
#include "cli/options.h"

#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static int usage(FILE *out) {
    fputs(
        "usage: fm-system do [OPTION...] WORDS...\n\n"
        "  --json         prints JSON, a line each, and asks nothing\n"
        "  --dry-run      tells what would be done\n"
        "  --yes          closes without asking\n"
        "  --no-model     goes by the words alone\n"
        "  --embedding-models FOLDER   where no name fits, goes by meaning, with the embedding model in it\n"
        "  --proxy FILE   the fm-proxy whose model is asked (default: the one beside fm-system, if there is one)\n"
        "  --chrome-socket PATH   the browser that `fm-system chrome --socket PATH` started\n"
        "  --desktop FILE a fake desktop made of JSON, for tests\n\n"
        "Exit status: 0 done, 1 refused or failed, 2 not clear: nothing was done, 74 what was done can't be printed.\n",
        out);
    return out == stderr ? EX_USAGE : EX_OK;
}

struct line {
    struct sy_options shared;
    struct sy_do how;
    char words[SY_TEXT_MAX + 2]; /* one byte more than allowed: longer text is refused, not cut */
};

/* Joins the arguments to one text again, because the shell has split the words. */
static void add_word(struct line *line, const char *word) {
    size_t used = strlen(line->words);
    snprintf(line->words + used, sizeof line->words - used, "%s%s", used ? " " : "", word);
}

static bool read_line_of_command(struct line *line, int argc, char **argv) {
    bool words = false;
    for (int i = 1; i < argc;) {
        const char *arg = argv[i];
        bool told = false;
        if (words || arg[0] != '-' || strcmp(arg, "--") == 0) {
            add_word(line, words || arg[0] != '-' ? arg : "");
            words = true;
        } else if (strcmp(arg, "--json") == 0) {
            line->how.json = true;
        } else if (strcmp(arg, "--dry-run") == 0) {
            line->how.dry_run = true;
        } else if (strcmp(arg, "--yes") == 0) {
            line->how.yes = true;
        } else if (strcmp(arg, "--embedding-models") == 0 && i + 1 < argc) {
            line->shared.embedding_models = argv[++i];
        } else if (sy_option_read(&line->shared, argc, argv, &i, &told)) {
            continue;
        } else {
            return false;
        }
        i++;
    }
    /* both options are only for the server */
    return line->words[0] != '\0' && !line->shared.read_only && !line->shared.allow;
}

int sy_main_do(int argc, char **argv) {
    struct line line = {.how = {.in = stdin, .out = stdout, .err = stderr}};
    struct sy_world world = {.presets = NULL};
    struct sy_picker picker;
    struct fm_error error;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        return usage(stdout);
    }
    if (!read_line_of_command(&line, argc, argv)) {
        sy_options_free(&line.shared);
        return usage(stderr);
    }
    if (line.shared.proxy && !sy_proxy_can_start(&line.shared)) {
        fprintf(stderr, "fm-system: --proxy %s is no program that can be started: going by the words alone\n",
                line.shared.proxy);
    }
    if (sy_desktop_open(&line.shared, -1, &world.desktop, &error) != FM_OK) {
        fprintf(stderr, "fm-system: %s\n", error.detail);
        sy_options_free(&line.shared);
        return EX_UNAVAILABLE;
    }
    sy_world_furnish(&line.shared, -1, &world);
    if (line.shared.helper) {
        picker = sy_proxy_picker(line.shared.helper);
        line.how.picker = &picker;
    }
    line.how.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    int status = (int)sy_do(&world, line.words, &line.how);
    status = fflush(stdout) == 0 && !ferror(stdout) ? status : EX_IOERR;
    sy_world_free(&world);
    sy_world_dismiss(&line.shared);
    world.desktop.backend->free(world.desktop.self);
    sy_options_free(&line.shared);
    return status;
}
