/* Measurements of processes and times, and the table that reports them. */
#ifndef TESTS_LOAD_FIGURES_H
#define TESTS_LOAD_FIGURES_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- a process, from /proc ---- */

struct footprint {
    long descriptors;
    long threads;
    long children; /* including zombies */
    long rss_kib;
    long peak_kib; /* the highest RSS so far */
};

/* All members are zero if there is no such process. */
struct footprint footprint_of(pid_t pid);

/* The process's first child, or 0. */
pid_t child_of(pid_t pid);

/* Waits a while for the end of a process. A zombie counts as ended. */
bool is_gone(pid_t pid);

/* ---- times ---- */

struct samples {
    int64_t *us;
    size_t count;
    size_t room;
};

void samples_add(struct samples *samples, int64_t us);

/* Returns a quantile in ms: `share` is 0.99 for p99, 1 for the maximum. Returns -1 without samples. */
double samples_ms(struct samples *samples, double share);
void samples_free(struct samples *samples);

/* ---- the table: part, figure, value, bound, ok or FAIL ---- */

/* Memory is only asserted without sanitizers. Times are multiplied by `slow` when they are asserted. */
struct bounds {
    bool memory;
    double slow;
};
extern struct bounds bounds;

/* Begins the rows of a part. */
void report_part(const char *name);

/* Adds a row. The value must be at most (or exactly) the bound; a note has no bound. */
void report_at_most(const char *figure, double value, double bound, const char *unit);
void report_exactly(const char *figure, long value, long expected);
void report_note(const char *figure, double value, const char *unit);

/* Adds rows for the p50, p99 and maximum of a time. p99 is bounded, and must have been measured. */
void report_times(const char *what, struct samples *samples, double p99_ms);

/* Waits a while until descriptors, threads and children are the same as in `start`. Then reports them. */
void report_footprint(pid_t pid, const struct footprint *start);

/* Reports a fault that no figure shows. The first few of a part are printed. */
void report_fault(const char *fmt, ...) FM_PRINTF(1, 2);

/* Reports the row of faults; ends the part. */
void report_part_end(void);

/* Returns true if no row failed. Otherwise prints how many rows failed, and the first of them. */
bool report_passed(void);

#endif
