/*
 * Finds and ends the descendants of this process. A killed or stopped process does not fork, so each round leaves fewer
 * processes that can. The rounds end when one finds no new process.
 */
#include "tools/runner/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 200 /* rounds of stopping; a fork bomb that is faster than these is still killed */

struct process {
    pid_t pid;
    pid_t parent;
    long threads;
    char state;
    bool ours;
    uid_t user;
};

struct table {
    struct process *rows;
    size_t count;
    size_t room;
};

/* proc(5), stat: the name is in parentheses and may hold any byte, so the last one counts. */
static bool read_process(const char *name, struct process *row) {
    char path[64];
    char text[512];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    bool known = fd >= 0 && fstat(fd, &info) == 0;
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    char *after = got > 0 && known ? strrchr(text, ')') : NULL;
    if (!after || strlen(after) < 5) {
        return false;
    }
    *row = (struct process){.pid = (pid_t)strtol(name, NULL, 10), .state = after[2], .user = info.st_uid};
    row->parent = (pid_t)strtol(after + 4, &after, 10);
    for (int field = 5; field < 20 && after; field++) { /* field 20 is the number of threads */
        after = strchr(after + 1, ' ');
    }
    row->threads = after ? strtol(after, NULL, 10) : 1;
    return true;
}

/* In a container, /proc may belong to another PID namespace. Its numbers would mean other processes here. */
static bool proc_is_ours(void) {
    char self[32] = "";
    return readlink("/proc/self", self, sizeof self - 1) > 0 && strtol(self, NULL, 10) == getpid();
}

static void read_all(struct table *table) {
    DIR *folder = proc_is_ours() ? opendir("/proc") : NULL;
    const struct dirent *entry;
    table->count = 0;
    while (folder && (entry = readdir(folder))) {
        if (table->count == table->room) {
            size_t room = table->room ? 2 * table->room : 256;
            struct process *rows = realloc(table->rows, room * sizeof *rows);
            if (!rows) {
                break;
            }
            table->rows = rows;
            table->room = room;
        }
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &table->rows[table->count])) {
            table->count++;
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static bool is_ours(const struct table *table, pid_t pid) {
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].pid == pid) {
            return table->rows[i].ours;
        }
    }
    return false;
}

static void mark(struct table *table) {
    pid_t self = getpid();
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < table->count; i++) {
            struct process *row = &table->rows[i];
            if (!row->ours && row->pid != self && (row->parent == self || is_ours(table, row->parent))) {
                row->ours = true;
                more = true;
            }
        }
    }
}

/* Returns how many processes got the signal. `running_only`: processes that are stopped or dead get none. */
static size_t signal_marked(const struct table *table, int number, bool running_only) {
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct process *row = &table->rows[i];
        if (row->ours && !(running_only && strchr("TtZX", row->state))) {
            count += kill(row->pid, number) == 0;
        }
    }
    return count;
}

void gw_processes_signal(bool own_namespace, int number) {
    struct table table = {0};
    if (own_namespace) {
        kill(-1, number); /* all processes of the namespace but this one */
        return;
    }
    for (int round = 0; number == SIGKILL && round < ROUNDS_MAX; round++) {
        read_all(&table);
        mark(&table);
        if (signal_marked(&table, SIGSTOP, true) == 0) {
            break;
        }
    }
    read_all(&table);
    mark(&table);
    signal_marked(&table, number, false);
    free(table.rows);
}

void gw_processes_end(bool own_namespace) {
    const struct timespec moment = {.tv_nsec = 2000000};
    for (;;) {
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (reaped < 0 && errno == ECHILD) {
            return;
        }
        gw_processes_signal(own_namespace, SIGKILL);
        nanosleep(&moment, NULL);
    }
}

long gw_processes_of_user(void) {
    struct table table = {0};
    long threads = 0;
    uid_t self = getuid();
    read_all(&table);
    for (size_t i = 0; i < table.count; i++) {
        threads += table.rows[i].user == self ? table.rows[i].threads : 0;
    }
    free(table.rows);
    return threads;
}
