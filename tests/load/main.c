/*
 * Load on fm-proxy with the fake engine, in parts. Prints one table; the exit status is 1 if a row says FAIL.
 *
 *     load [--quick] [--bin DIR] [--slow FACTOR] [--seed N] [--minutes N] PART...
 */
#include "figures.h"
#include "host.h"
#include "parts.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct part {
    const char *name;
    void (*run)(const struct scale *scale);
} parts[] = {
    {"pings", part_pings}, {"streams", part_streams}, {"cancels", part_cancels}, {"spawns", part_spawns},
    {"slow", part_slow},   {"store", part_store},     {"soak", part_soak},
    {"beside", part_beside},
};

static const struct scale full = {
    .pings = 1000000,
    .probes_pause_us = 1000,
    .streams = 64,
    .deltas = 10000,
    .races = 10000,
    .spawns = 1000,
    .engine_spawns = 50,
    .slow_kib = 4096,
    .crawl_ms = 75000,
    .stall_ms = 60000,
    .responses = 100000,
    .store_bytes = "67108864",
    .beside_ms = 60000,
};

static const struct scale quick = {
    .quick = true,
    .pings = 20000,
    .probes_pause_us = 1000,
    .streams = 16,
    .deltas = 1000,
    .races = 200,
    .spawns = 12,
    .engine_spawns = 6,
    .slow_kib = 1024,
    .crawl_ms = 1500,
    .responses = 1000,
    .store_bytes = "1048576",
    .beside_ms = 2000,
};

static int usage(void) {
    fputs("usage: load [--quick] [--bin DIR] [--slow FACTOR] [--seed N] [--minutes N]"
          " [--model FILE] [pings|streams|cancels|spawns|slow|store|beside|soak]...\n",
          stderr);
    return 64;
}

static int run_part(const char *name, const struct scale *scale) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i].name, name) == 0) {
            parts[i].run(scale);
            return 0;
        }
    }
    fprintf(stderr, "load: there is no part %s\n", name);
    return usage();
}

int main(int argc, char *argv[]) {
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'},         {"bin", required_argument, NULL, 'b'},
        {"slow", required_argument, NULL, 's'},    {"seed", required_argument, NULL, 'r'},
        {"minutes", required_argument, NULL, 'm'}, {"model", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    struct scale scale = full;
    double minutes = 0;
    unsigned seed = 1;
    int key;
    while ((key = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (key) {
        case 'q': scale = quick; break;
        case 'b': host_programs = optarg; break;
        case 's': bounds.slow = strtod(optarg, NULL); break;
        case 'r': seed = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'm': minutes = strtod(optarg, NULL); break;
        case 'f': host_model = optarg; break;
        default: return usage();
        }
    }
#ifdef FM_SANITIZE
    bounds.memory = false;
#endif
    scale.seed = seed;
    scale.soak_ms = (int64_t)(minutes * 60000);
    signal(SIGPIPE, SIG_IGN);
    if (optind == argc) {
        return usage();
    }
    for (int i = optind; i < argc; i++) {
        int status = run_part(argv[i], &scale);
        if (status) {
            return status;
        }
    }
    return report_passed() ? 0 : 1;
}
