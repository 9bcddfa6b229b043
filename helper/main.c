/* fm-proxy: arguments and wiring only. */
#include "base/platform.h"
#include "front/front.h"

#include <stdio.h>
#include <sysexits.h>

static const char explanation[] =
    "fm-proxy " FM_VERSION " gives desktop applications a local language model.\n"
    "It speaks JSON-RPC on stdin and stdout with the program that starts it, so there is\n"
    "nothing to type here. fm-proxy --help lists the options.\n";

static struct fm_front front;

int main(int argc, char *argv[]) {
    struct fm_options options;
    fm_fill_std_fds();
    if (!fm_options_read(&options, argc, argv)) {
        return EX_USAGE;
    }
    switch (options.mode) {
    case FM_RUN_HELP: fputs(fm_options_usage, stdout); return EX_OK;
    case FM_RUN_VERSION: puts("fm-proxy " FM_VERSION); return EX_OK;
    case FM_RUN_EXPLAIN: fputs(explanation, stdout); return EX_OK;
    case FM_RUN_SERVE: break;
    }
    fm_log_init("fm-proxy", options.log_level);
    return fm_front_run(&front, &options);
}
