/*
 * The journal. A file's `whole` is the length of the acknowledged records. It grows only after a successful fdatasync;
 * bytes after it are cut off before anything is written. While the thread runs, only the thread uses a file's `whole`,
 * `behind`, `first` and `end`.
 */
#include "sessions/journal.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_HERE 64

struct append {
    struct gw_job job;
    struct append *next;          /* the next record of the same file in this batch */
    struct gw_journal_file *file; /* NULL: `work` is to be run */
    enum fm_code (*work)(void *context, struct fm_error *error);
    gw_journal_done *done;
    void *context;
    struct fm_error error;
    size_t len;
    char line[];
};

struct gw_journal {
    struct gw_worker *worker;
    size_t waiting; /* bytes; loop thread */
};

struct gw_journal_file {
    struct gw_journal *journal;
    int folder;
    int64_t whole; /* length of the whole records; -1: there is no file */
    bool behind;   /* there may be bytes after the whole records */
    struct append *first;
    struct append **end;
    struct gw_journal_file *next; /* the next file of this batch */
    struct append *last;          /* reserved for closing the file, which then needs no new memory */
    void (*gone)(void *context);
    void *gone_context;
    char name[NAME_MAX_HERE];
};

/* ---- the thread ---- */

static enum fm_code fail_file(const struct gw_journal_file *file, const char *what, int failure,
                              struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "can't %s %s (%s): free some space, or look at the disk", what, file->name,
                   strerror(failure));
}

/* Opens the file, and cuts off what is after its whole records. */
static enum fm_code open_whole(struct gw_journal_file *file, int *fd, struct fm_error *error) {
    *fd = fm_private_file_append(file->folder, file->name, file->whole < 0);
    if (*fd < 0) {
        return fail_file(file, file->whole < 0 ? "make" : "open", errno, error);
    }
    file->whole = file->whole < 0 ? 0 : file->whole;
    int64_t size = fm_private_file_size(*fd);
    if (size < file->whole || (size > file->whole && !file->behind)) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "another program has changed %s: restart the gateway, which reads it anew", file->name);
    }
    if (size > file->whole && !fm_private_file_cut(*fd, file->whole)) {
        return fail_file(file, "cut", errno, error);
    }
    return FM_OK;
}

static enum fm_code write_lines(struct gw_journal_file *file, int fd, int64_t *written, struct fm_error *error) {
    for (struct append *at = file->first; at; at = at->next) {
        if (file->whole + *written + (int64_t)at->len > GW_JOURNAL_FILE_MAX) {
            return fm_fail(error, FM_UNAVAILABLE, "%s is full (%u bytes): go on in a new session", file->name,
                           GW_JOURNAL_FILE_MAX);
        }
        if (!fm_write_all(fd, at->line, at->len)) {
            return fail_file(file, "write", errno, error);
        }
        *written += (int64_t)at->len;
    }
    if (!fm_private_file_sync(fd) || (file->whole == 0 && !fm_private_folder_sync(file->folder))) {
        return fail_file(file, "write", errno, error);
    }
    return FM_OK;
}

/* Writes the batch's records for a file, all or none. */
static void write_file(struct gw_journal_file *file) {
    struct fm_error error = {.code = FM_OK};
    int64_t written = 0;
    int fd = -1;
    bool tried = false;
    enum fm_code code = open_whole(file, &fd, &error);
    if (code == FM_OK) {
        tried = file->behind = true; /* `behind` stays true until the whole batch is on the disk */
        code = write_lines(file, fd, &written, &error);
    }
    if (code == FM_OK) {
        file->whole += written;
        file->behind = false;
    } else {
        for (struct append *at = file->first; at; at = at->next) {
            at->error = error;
        }
        if (tried) { /* so that a restart finds nothing of the batch */
            file->behind = !(fm_private_file_cut(fd, file->whole) && fm_private_file_sync(fd));
        }
    }
    if (fd >= 0) {
        fm_close(fd);
    }
}

static void write_files(struct gw_journal_file *files) {
    while (files) {
        struct gw_journal_file *next = files->next;
        write_file(files);
        files->first = NULL;
        files = next;
    }
}

static void run_batch(void *context, struct gw_job *jobs) {
    struct gw_journal_file *files = NULL;
    struct gw_journal_file **end = &files;
    (void)context;
    for (struct gw_job *job = jobs; job; job = job->next) {
        struct append *append = (struct append *)job;
        struct gw_journal_file *file = append->file;
        if (!file) {
            write_files(files);
            files = NULL;
            end = &files;
            append->error.code = append->work(append->context, &append->error);
            continue;
        }
        if (!file->first) {
            file->end = &file->first;
            file->next = NULL;
            *end = file;
            end = &file->next;
        }
        append->next = NULL;
        *file->end = append;
        file->end = &append->next;
    }
    write_files(files);
}

/* ---- the loop ---- */

static void on_done(struct gw_job *job) {
    struct append *append = (struct append *)job;
    if (append->file) {
        append->file->journal->waiting -= append->len;
    }
    if (append->done) {
        append->done(append->context, append->error.code == FM_OK ? NULL : &append->error);
    }
    free(append);
}

enum fm_code gw_journal_open(uv_loop_t *loop, struct gw_journal **out, struct fm_error *error) {
    struct gw_journal *journal = calloc(1, sizeof *journal);
    if (!journal) {
        return fm_fail_no_memory(error);
    }
    const struct gw_worker_options options = {.loop = loop, .run = run_batch, .in_batches = true};
    enum fm_code code = gw_worker_open(&options, &journal->worker, error);
    if (code != FM_OK) {
        free(journal);
        return code;
    }
    *out = journal;
    return FM_OK;
}

void gw_journal_close(struct gw_journal *journal) {
    gw_worker_close(journal->worker, free, journal);
}

static struct append *append_new(struct gw_journal_file *file, const char *line, size_t len, gw_journal_done *done,
                                 void *context) {
    struct append *append = calloc(1, sizeof *append + len);
    if (append) {
        append->job.done = on_done;
        append->file = file;
        append->done = done;
        append->context = context;
        append->len = len;
        memcpy(append->line, line, len);
    }
    return append;
}

static enum fm_code nothing(void *context, struct fm_error *error) {
    (void)context;
    (void)error;
    return FM_OK;
}

static void on_last(void *context, const struct fm_error *error) {
    struct gw_journal_file *file = context;
    (void)error;
    if (file->gone) {
        file->gone(file->gone_context);
    }
    free(file);
}

struct gw_journal_file *gw_journal_file_new(struct gw_journal *journal, int folder, const char *name, int64_t whole) {
    struct gw_journal_file *file = calloc(1, sizeof *file);
    struct append *last = append_new(NULL, "", 0, on_last, file);
    if (!file || !last) {
        free(file);
        free(last);
        return NULL;
    }
    last->work = nothing;
    file->last = last;
    file->journal = journal;
    file->folder = folder;
    file->whole = whole;
    file->behind = true;
    snprintf(file->name, sizeof file->name, "%s", name);
    return file;
}

void gw_journal_file_free(struct gw_journal_file *file, void (*gone)(void *context), void *context) {
    if (file) {
        file->gone = gone;
        file->gone_context = context;
        gw_worker_add(file->journal->worker, &file->last->job);
    }
}

enum fm_code gw_journal_append(struct gw_journal_file *file, const char *line, size_t len, gw_journal_done *done,
                               void *context, struct fm_error *error) {
    struct gw_journal *journal = file->journal;
    if (len > GW_JOURNAL_WAITING_MAX - journal->waiting) {
        return fm_fail(error, FM_OVERLOADED, "the disk is too slow: %zu bytes wait for it", journal->waiting);
    }
    struct append *append = append_new(file, line, len, done, context);
    if (!append) {
        return fm_fail_no_memory(error);
    }
    journal->waiting += len;
    gw_worker_add(journal->worker, &append->job);
    return FM_OK;
}

enum fm_code gw_journal_run(struct gw_journal *journal, enum fm_code (*work)(void *context, struct fm_error *error),
                            gw_journal_done *done, void *context, struct fm_error *error) {
    struct append *append = append_new(NULL, "", 0, done, context);
    if (!append) {
        return fm_fail_no_memory(error);
    }
    append->work = work;
    gw_worker_add(journal->worker, &append->job);
    return FM_OK;
}

void gw_journal_file_is_gone(struct gw_journal_file *file) {
    file->whole = -1;
}
