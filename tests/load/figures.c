/* Reads /proc for memory, descriptors, threads and children; keeps samples of times; prints the table of results. */
#include "figures.h"
#include "base/clock.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_SHOWN 5
#define SETTLE_MS    3000 /* for threads to end after the last reply */

struct bounds bounds = {.memory = true, .slow = 1};

/* ---- /proc ---- */

/* The number of entries of a folder of /proc, without "." and "..". */
static long count_entries(const char *path) {
    long count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) {
        count++;
    }
    if (folder) {
        closedir(folder);
    }
    return count ? count - 2 : 0;
}

/* Calls `each` with every child's pid: a child belongs to the thread that forked it. Returns their number. */
static long each_child(pid_t pid, void (*each)(void *context, pid_t child), void *context) {
    char path[300];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    struct dirent *task;
    while (tasks && (task = readdir(tasks))) {
        char text[4096] = "";
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)pid, task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        char *at = file && fgets(text, sizeof text, file) ? text : NULL;
        for (char *next; at; at = next) {
            long child = strtol(at, &next, 10);
            if (next == at) {
                break;
            }
            each(context, (pid_t)child);
            count++;
        }
        if (file) {
            fclose(file);
        }
    }
    if (tasks) {
        closedir(tasks);
    }
    return count;
}

static void note_child(void *context, pid_t child) {
    *(pid_t *)context = child;
}

pid_t child_of(pid_t pid) {
    pid_t child = 0;
    each_child(pid, note_child, &child);
    return child;
}

static bool is_alive(pid_t pid) {
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[len] = '\0';
    if (file) {
        fclose(file);
    }
    const char *name_end = strrchr(text, ')'); /* proc_pid_stat(5): pid (name) state */
    return name_end && name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X';
}

bool is_gone(pid_t pid) {
    int64_t deadline = fm_now_ms() + (int64_t)(SETTLE_MS * bounds.slow);
    while (is_alive(pid) && fm_now_ms() < deadline) {
        fm_sleep_ms(10);
    }
    return !is_alive(pid);
}

/* The number in the line that begins with `key`; 0 if there is none. */
static long number_in(const char *path, const char *key) {
    char line[256];
    long number = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = strtol(line + strlen(key), NULL, 10);
        }
    }
    if (file) {
        fclose(file);
    }
    return number;
}

struct footprint footprint_of(pid_t pid) {
    char path[64];
    pid_t child;
    struct footprint footprint = {.children = each_child(pid, note_child, &child)};
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    footprint.descriptors = count_entries(path);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    footprint.threads = number_in(path, "Threads:");
    footprint.peak_kib = number_in(path, "VmHWM:");
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid); /* exact, while VmRSS may be out of date */
    footprint.rss_kib = number_in(path, "Rss:");
    return footprint;
}

/* ---- times ---- */

void samples_add(struct samples *samples, int64_t us) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 1024;
        samples->us = realloc(samples->us, samples->room * sizeof *samples->us);
        if (!samples->us) {
            abort();
        }
    }
    samples->us[samples->count++] = us;
}

static int by_time(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

double samples_ms(struct samples *samples, double share) {
    if (!samples->count) {
        return -1;
    }
    qsort(samples->us, samples->count, sizeof *samples->us, by_time);
    size_t at = (size_t)(share * (double)samples->count);
    return (double)samples->us[at < samples->count ? at : samples->count - 1] / 1000;
}

void samples_free(struct samples *samples) {
    free(samples->us);
    *samples = (struct samples){0};
}

/* ---- the table ---- */

static const char *part;
static unsigned failed_rows;
static char first_failed[160]; /* the first row that failed; kept because long output is often cut before it */
static unsigned faults;

static void row(const char *figure, const char *value, const char *bound, const char *verdict) {
    printf("%-8s  %-46s  %14s  %12s  %s\n", part, figure, value, bound, verdict);
    fflush(stdout);
}

static void verdict(const char *figure, const char *value, const char *bound, bool ok) {
    row(figure, value, bound, ok ? "ok" : "FAIL");
    if (!ok && !failed_rows++) {
        snprintf(first_failed, sizeof first_failed, "%s: %s: %s, not %s", part, figure, value, bound);
    }
}

void report_part(const char *name) {
    if (!part) {
        part = "part";
        row("figure", "value", "bound", "");
    }
    part = name;
    faults = 0;
}

static void number(char *text, size_t size, double value, const char *unit) {
    bool whole = value == (double)(int64_t)value;
    snprintf(text, size, whole ? "%.0f%s%s" : "%.2f%s%s", value, unit[0] ? " " : "", unit);
}

void report_at_most(const char *figure, double value, double bound, const char *unit) {
    char text[40];
    char most[48] = "<= ";
    bool ok = value >= 0 && value <= bound;
    number(text, sizeof text, value, unit);
    number(most + 3, sizeof most - 3, bound, unit);
    verdict(figure, text, most, ok);
}

void report_exactly(const char *figure, long value, long expected) {
    char text[24];
    char wanted[24];
    snprintf(text, sizeof text, "%ld", value);
    snprintf(wanted, sizeof wanted, "%ld", expected);
    verdict(figure, text, wanted, value == expected);
}

void report_note(const char *figure, double value, const char *unit) {
    char text[40];
    number(text, sizeof text, value, unit);
    row(figure, text, "", "");
}

void report_times(const char *what, struct samples *samples, double p99_ms) {
    char figure[64];
    snprintf(figure, sizeof figure, "%s, p50 of %zu", what, samples->count);
    report_note(figure, samples_ms(samples, 0.5), "ms");
    snprintf(figure, sizeof figure, "%s, p99", what);
    report_at_most(figure, samples_ms(samples, 0.99), p99_ms * bounds.slow, "ms");
    snprintf(figure, sizeof figure, "%s, maximum", what);
    report_note(figure, samples_ms(samples, 1), "ms");
}

static bool same_counts(const struct footprint *a, const struct footprint *b) {
    return a->descriptors == b->descriptors && a->threads == b->threads && a->children == b->children;
}

void report_footprint(pid_t pid, const struct footprint *start) {
    int64_t deadline = fm_now_ms() + (int64_t)(SETTLE_MS * bounds.slow);
    struct footprint now = footprint_of(pid);
    while (!same_counts(&now, start) && fm_now_ms() < deadline) {
        fm_sleep_ms(10);
        now = footprint_of(pid);
    }
    report_exactly("descriptors of the front", now.descriptors, start->descriptors);
    report_exactly("threads of the front", now.threads, start->threads);
    report_exactly("children of the front", now.children, start->children);
}

void report_fault(const char *fmt, ...) {
    va_list args;
    if (++faults > FAULTS_SHOWN) {
        return;
    }
    fflush(stdout);
    fprintf(stderr, "%s: ", part);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void report_part_end(void) {
    report_exactly("faults (the first are above)", faults, 0);
}

bool report_passed(void) {
    if (failed_rows) {
        printf("%u rows failed; the first: %s\n", failed_rows, first_failed);
    }
    return failed_rows == 0;
}
