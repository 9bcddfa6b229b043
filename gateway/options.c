/* Reads the options. */
#include "options.h"

#include <string.h>

void gw_options_write_help(FILE *file) {
    fputs("fm-gateway " FM_VERSION ": an assistant on this machine, in the browser.\n"
          "\n"
          "usage: fm-gateway [OPTION...]              runs it until SIGTERM or Ctrl-C\n"
          "       fm-gateway --link                  prints a link that logs a browser in, once, within 60 s\n"
          "       fm-gateway --new-token             replaces the token; all users must log in again\n"
          "       fm-gateway --version | --help\n"
          "\n"
          "  --ui FOLDER   the files of the page, instead of those beside the program\n"
          "  --dev         a page of http://localhost:5173 (Vite's server) may connect too\n"
          "  --helper PATH             fm-proxy, instead of the one beside the program\n"
          "  --helper-arg ARGUMENT     for fm-proxy, such as --helper-arg --models-dir --helper-arg FOLDER\n"
          "  --embedding-models FOLDER the memory searches by meaning too, with the embedding model in it\n"
          "  --browser PATH            Chromium, for the tool browser; otherwise `chromium`\n"
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

/* The place for the option's value; NULL: the option has no value. */
static const char **field_of(struct gw_options *options, const char *word) {
    if (strcmp(word, "--helper-arg") == 0 && options->helper_argument_count < GW_HELPER_ARGUMENTS) {
        return &options->helper_arguments[options->helper_argument_count++];
    }
    return strcmp(word, "--ui") == 0                 ? &options->ui
           : strcmp(word, "--helper") == 0           ? &options->helper
           : strcmp(word, "--embedding-models") == 0 ? &options->embedding_models
           : strcmp(word, "--browser") == 0          ? &options->browser
                                                     : NULL;
}

static bool take_option(struct gw_options *options, const char *word, const char *value, int *at) {
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
    const char **field = field_of(options, word);
    if (field && value) {
        *field = value;
        ++*at;
        return true;
    }
    fprintf(stderr, field ? "fm-gateway: %s needs a value\n" : "fm-gateway: unknown option %s; --help lists them\n",
            word);
    return false;
}

bool gw_options_read(struct gw_options *options, int argc, char *argv[]) {
    *options = (struct gw_options){.mode = GW_SERVE};
    for (int i = 1; i < argc; i++) {
        if (!take_option(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &i)) {
            return false;
        }
    }
    return true;
}
