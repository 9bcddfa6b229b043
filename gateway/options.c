/* Reads the options. */
#include "options.h"

#include <string.h>

void gw_options_write_help(FILE *file) {
    fputs("fm-gateway " FM_VERSION ": an assistant on this machine, in the browser.\n"
          "\n"
          "usage: fm-gateway [--ui FOLDER] [--dev]   runs it until SIGTERM or Ctrl-C\n"
          "       fm-gateway --link                  prints a link that logs a browser in, once, within 60 s\n"
          "       fm-gateway --new-token             replaces the token; whoever is logged in must log in again\n"
          "       fm-gateway --version | --help\n"
          "\n"
          "  --ui FOLDER   the files of the page, instead of those beside the program\n"
          "  --dev         a page of http://localhost:5173 (Vite's server) may connect too\n"
          "\n"
          "Its folder is ~/.proj-jarvis, or what PROJ_JARVIS_HOME says. config.json there has the settings, token the\n"
          "token. Environment: PROJ_JARVIS_TOKEN, PROJ_JARVIS_PORT, PROJ_JARVIS_HOST, ANTHROPIC_API_KEY, "
          "OPENAI_API_KEY.\n",
          file);
}

static bool set_mode(struct gw_options *options, enum gw_mode mode) {
    options->mode = mode;
    return true;
}

static bool take(struct gw_options *options, const char *word, const char *value, int *at) {
    if (strcmp(word, "--help") == 0) {
        return set_mode(options, GW_HELP);
    }
    if (strcmp(word, "--version") == 0) {
        return set_mode(options, GW_VERSION);
    }
    if (strcmp(word, "--link") == 0) {
        return set_mode(options, GW_LINK);
    }
    if (strcmp(word, "--new-token") == 0) {
        return set_mode(options, GW_NEW_TOKEN);
    }
    if (strcmp(word, "--dev") == 0) {
        options->dev = true;
        return true;
    }
    if (strcmp(word, "--ui") == 0 && value) {
        options->ui = value;
        ++*at;
        return true;
    }
    fprintf(stderr,
            strcmp(word, "--ui") == 0 ? "fm-gateway: %s needs a folder\n"
                                      : "fm-gateway: unknown option %s; --help lists them\n",
            word);
    return false;
}

bool gw_options_read(struct gw_options *options, int argc, char *argv[]) {
    *options = (struct gw_options){.mode = GW_SERVE};
    for (int i = 1; i < argc; i++) {
        if (!take(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &i)) {
            return false;
        }
    }
    return true;
}
