/* The parts of the load program; each reports its rows. */
#ifndef TESTS_LOAD_PARTS_H
#define TESTS_LOAD_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* How much each part does: the full amounts, or amounts that take a few seconds. */
struct scale {
    bool quick;
    int64_t pings;
    int64_t probes_pause_us;
    unsigned streams;
    unsigned deltas; /* per stream */
    int64_t races;
    unsigned spawns;
    unsigned engine_spawns;
    unsigned slow_kib;  /* for each of the 8 streams that a slow host does not read */
    int64_t crawl_ms;   /* how long the slow host reads 1 KiB/s */
    int64_t stall_ms;   /* the front's limit for a host that reads nothing; 0: do not wait for it */
    unsigned responses; /* stored, one after the other */
    const char *store_bytes;
    int64_t beside_ms;
    int64_t soak_ms;
    unsigned seed;
};

void part_pings(const struct scale *scale);
void part_streams(const struct scale *scale);
void part_cancels(const struct scale *scale);
void part_spawns(const struct scale *scale);
void part_slow(const struct scale *scale);
void part_store(const struct scale *scale);
void part_beside(const struct scale *scale);
void part_soak(const struct scale *scale);

#endif
