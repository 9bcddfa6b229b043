/* `fm-proxy bench`: how fast the model is on this machine, measured through the front as a host would. */
#ifndef FM_BENCH_BENCH_H
#define FM_BENCH_BENCH_H

#include "front/front.h"

/*
 * Measures, reports progress on stderr, and prints the figures to stdout, as a table or (options->json) as one JSON
 * object. `end_fd` polls readable when the measurement should end early. Returns the process's exit status: 0, or
 * EX_UNAVAILABLE if there is no model or an answer failed, with one line about it on stderr. Blocks for a minute or
 * two; call from the main thread, once.
 */
int fm_bench_run(struct fm_front *front, const struct fm_options *options, int end_fd);

#endif
