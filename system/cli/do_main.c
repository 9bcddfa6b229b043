/* `fm-system do`: options, the desktop, and fm-proxy where it is there. */
#include "base/platform.h"
#include "cli/do.h"
#include "cli/options.h"
#include "desktop/presets.h"
#include "desktop/recent.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static int usage(void) {
    fputs("usage: fm-system do [OPTION...] WORDS...\n\n"
          "  --json         prints JSON, a line each, and asks nothing\n"
          "  --dry-run      tells what would be done\n"
          "  --yes          closes without asking\n"
          "  --no-model     goes by the words alone\n"
          "  --embedding-models FOLDER   where no name fits, goes by meaning, with the embedding model in it\n"
          "  --proxy FILE   the fm-proxy whose model is asked (default: the one beside fm-system, if there is one)\n"
          "  --desktop FILE a fake desktop made of JSON, for tests\n\n"
          "Exit status: 0 done, 1 refused or failed, 2 not clear: nothing was done.\n",
          stderr);
    return EX_USAGE;
}

struct line {
    struct sy_options shared;
    struct sy_do how;
    bool no_model;
    const char *embedding_models;
    const char *proxy;
    char words[SY_TEXT_MAX + 2]; /* one byte more than may be: too much is refused, not cut */
};

/* Words that the shell has cut are one text again. */
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
        } else if (strcmp(arg, "--no-model") == 0) {
            line->no_model = true;
        } else if (strcmp(arg, "--proxy") == 0 && i + 1 < argc) {
            line->proxy = argv[++i];
        } else if (strcmp(arg, "--embedding-models") == 0 && i + 1 < argc) {
            line->embedding_models = argv[++i];
        } else if (sy_option_read(&line->shared, argc, argv, &i, &told)) {
            continue;
        } else {
            return false;
        }
        i++;
    }
    return line->words[0] != '\0' && !line->shared.read_only && !line->shared.allow; /* those are the server's */
}

/* NULL: there is no fm-proxy to ask, which is no fault. */
static struct sy_proxy *start_proxy(const struct line *line) {
    char beside[1024];
    size_t room = sizeof beside - sizeof "/fm-proxy";
    if (line->no_model || (!line->proxy && !fm_program_dir(beside, room))) {
        return NULL;
    }
    if (!line->proxy) {
        memcpy(beside + strlen(beside), "/fm-proxy", sizeof "/fm-proxy");
    }
    const struct sy_proxy_options options = {.path = line->proxy ? line->proxy : beside,
                                             .embedding_models = line->embedding_models};
    return line->proxy || access(beside, X_OK) == 0 ? sy_proxy_new(&options) : NULL;
}

int sy_main_do(int argc, char **argv) {
    struct line line = {.how = {.in = stdin, .out = stdout, .err = stderr}};
    char presets[4096];
    struct sy_world world = {.recent_files = sy_recent_files, .home = getenv("HOME")};
    struct fm_error error;
    if (!read_line_of_command(&line, argc, argv)) {
        sy_options_free(&line.shared);
        return usage();
    }
    if (sy_desktop_open(&line.shared, -1, &world.desktop, &error) != FM_OK) {
        fprintf(stderr, "fm-system: %s\n", error.detail);
        sy_options_free(&line.shared);
        return EX_UNAVAILABLE;
    }
    struct sy_proxy *proxy = start_proxy(&line);
    struct sy_picker picker = proxy ? sy_proxy_picker(proxy) : (struct sy_picker){.self = NULL};
    struct sy_model model = proxy ? sy_proxy_model(proxy) : (struct sy_model){.self = NULL};
    line.how.picker = proxy ? &picker : NULL;
    world.model = proxy ? &model : NULL;
    world.presets = sy_presets_path(presets, sizeof presets, &error) == FM_OK ? presets : NULL;
    line.how.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    int status = (int)sy_do(&world, line.words, &line.how);
    sy_proxy_free(proxy);
    sy_world_free(&world);
    world.desktop.backend->free(world.desktop.self);
    sy_options_free(&line.shared);
    return status;
}
