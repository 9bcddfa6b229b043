/* fm-proxy: reads its arguments, connects the parts, and runs one of the modes. */
#include "base/platform.h"
#include "bench/bench.h"
#include "front/front.h"
#include "sessions/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

static const char explanation[] =
    "fm-proxy " FM_VERSION " gives desktop applications a local language model.\n"
    "It speaks JSON-RPC on stdin and stdout with the program that starts it, so there is\n"
    "nothing to type here. fm-proxy --help lists the options.\n";

static struct fm_front front;

/* Sets the log prefix, for the engine's log lines too. Call before the first thread. */
static bool use_log_prefix(const char *prefix) {
    fm_log_use_prefix(prefix);
    return setenv("FM_ENGINE_LOG_PREFIX", prefix, 1) == 0;
}

/* Runs the benchmark, which prints to the user's stdout. */
static int bench(const struct fm_options *options) {
    int end_fd = fm_watch_for_end();
    if (end_fd < 0) {
        fm_log(FM_LOG_ERROR, "can't start: too few file descriptors, or out of memory");
        return EX_OSERR;
    }
    int status = fm_bench_run(&front, options, end_fd);
    if (front.stuck) {
        _exit(status);
    }
    return status;
}

int main(int argc, char *argv[]) {
    struct fm_options options;
    fm_fill_std_fds();
    if (!fm_options_read(&options, argc, argv)) {
        return EX_USAGE;
    }
    switch (options.mode) {
    case FM_RUN_HELP: fm_options_write_help(stdout); return EX_OK;
    case FM_RUN_LIST: fm_options_write_list(stdout); return EX_OK;
    case FM_RUN_VERSION: puts("fm-proxy " FM_VERSION); return EX_OK;
    case FM_RUN_EXPLAIN: fputs(explanation, stdout); return EX_OK;
    case FM_RUN_SERVE:
    case FM_RUN_SESSIONS:
    case FM_RUN_BENCH: break;
    }
    bool sessions = options.mode == FM_RUN_SESSIONS;
    fm_log_init("fm-proxy", options.log_level);
    bool read = fm_front_read_engines(&front, &options);
    if (!read || (sessions && !use_log_prefix(options.sessions.log_prefix))) {
        fm_log(FM_LOG_ERROR, "can't start: out of memory");
        return EX_OSERR;
    }
    if (options.mode == FM_RUN_BENCH) {
        return bench(&options);
    }
    const struct fm_wire wire = {.in = fm_claim_stdin(), .end_fd = fm_watch_for_end(), .out = fm_claim_stdout()};
    if (wire.in < 0 || wire.end_fd < 0 || wire.out < 0) {
        fm_log(FM_LOG_ERROR, "can't start: too few file descriptors, or out of memory");
        return EX_OSERR;
    }
    int status = sessions ? fm_sessions_run(&front, &options, &wire) : fm_front_run(&front, &options, &wire);
    if (front.stuck) {
        _exit(status);
    }
    return status;
}
