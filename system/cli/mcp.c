/* fm-system mcp: the server on stdin and stdout. */
#include "base/platform.h"
#include "cli/options.h"
#include "mcp/serve.h"

#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

int sy_main_mcp(int argc, char **argv) {
    static struct sy_options options; /* the desktop may outlive this call */
    bool clean = true;
    fm_fill_std_fds();
    if (!sy_options_read(&options, argc, argv)) {
        sy_options_free(&options);
        return EX_USAGE;
    }
    if (fm_is_terminal(STDIN_FILENO)) {
        fputs("fm-system speaks the Model Context Protocol on stdin and stdout with the program that starts it.\n"
              "fm-system --help tells what else it does.\n",
              stderr);
    }
    const struct sy_serve serve = {.in = fm_claim_stdin(),
                                   .end_fd = fm_watch_for_end(),
                                   .out = fm_claim_stdout(),
                                   .policy = {options.read_only, options.allow},
                                   .open_desktop = sy_desktop_open,
                                   .furnish = sy_world_furnish,
                                   .dismiss = sy_world_dismiss,
                                   .open_context = &options};
    if (serve.in < 0 || serve.end_fd < 0 || serve.out < 0) {
        fputs("fm-system: can't start: too few file descriptors, or out of memory\n", stderr);
        return EX_OSERR;
    }
    int status = sy_serve(&serve, &clean);
    if (!clean) {
        _exit(status);
    }
    sy_options_free(&options);
    return status;
}
