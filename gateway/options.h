/* The command line of fm-gateway. Pure, except for what it prints. */
#ifndef GW_OPTIONS_H
#define GW_OPTIONS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>

#define GW_HELPER_ARGUMENTS 32

enum gw_mode { GW_SERVE, GW_HELP, GW_VERSION, GW_LINK, GW_NEW_TOKEN };

struct gw_options {
    enum gw_mode mode;
    bool dev;           /* pages of Vite's server may connect */
    const char *ui;     /* the page's folder; NULL: "gateway-ui" beside the program */
    const char *helper; /* fm-proxy; NULL: beside the program */
    const char *helper_arguments[GW_HELPER_ARGUMENTS + 1]; /* NULL-terminated */
    size_t helper_argument_count;
    const char *embedding_models; /* a folder; NULL: none */
    const char *browser;          /* Chromium; NULL: by PATH */
};

/* False: an option is wrong, and stderr says which. */
FM_MUST_USE bool gw_options_read(struct gw_options *options, int argc, char *argv[]);

/* What --help prints. */
void gw_options_write_help(FILE *file);

#endif
