/* Finds what processes and desktop entries run, in one form. Files are only read here, never run. */
#include "desktop/program.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_MAX  4096 /* bytes of a process's arguments; the rest is left out */
#define LINE_SIZE 256  /* bytes; Linux reads no more of a script's first line */

/* Whether both are paths of one file. */
static bool is_same_file(const char *a, const char *b) {
    struct stat one;
    struct stat other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Whether `env NAME` would run `program`. Only the folder of `program` is searched for the name. */
static bool is_beside(const char *program, const char *name) {
    char path[PATH_MAX];
    char real[PATH_MAX];
    const char *slash = realpath(program, real) ? strrchr(real, '/') : NULL;
    int len = slash ? snprintf(path, sizeof path, "%.*s/%s", (int)(slash - real), real, name) : PATH_MAX;
    return len < PATH_MAX && is_same_file(path, program);
}

/* The first line of a script, without its "#!"; "" for any other file. */
static void read_first_line(const char *path, char line[LINE_SIZE]) {
    struct stat info;
    bool runs = path[0] == '/' && stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IXUSR);
    int fd = runs ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = fd >= 0 ? read(fd, line, LINE_SIZE - 1) : 0;
    line[len > 0 ? len : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) == 0) {
        memmove(line, line + 2, strlen(line + 2) + 1);
    } else {
        line[0] = '\0';
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Takes the next word off the line; "" at its end. */
static const char *take_word(char **line) {
    static const char blanks[] = " \t";
    char *word = *line + strspn(*line, blanks);
    char *end = word + strcspn(word, blanks);
    *line = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

/* Whether `path` is a script whose first line names `program` as its interpreter. Without this check, a script that is
 * open in an editor would count too. */
static bool is_script_of(const char *path, const char *program) {
    char line[LINE_SIZE];
    char *rest = line;
    read_first_line(path, line);
    const char *word = take_word(&rest);
    const char *slash = strrchr(word, '/');
    if (!slash || strcmp(slash, "/env") != 0) {
        return word[0] && is_same_file(word, program);
    }
    do {
        word = take_word(&rest);
    } while (word[0] == '-' || strchr(word, '='));
    return word[0] && is_beside(program, word);
}

bool sy_program_make(const char *program, const char *args, size_t args_len, struct sy_program *runs) {
    char path[PATH_MAX];
    *runs = (struct sy_program){.items = NULL};
    if (args_len > 0 && is_script_of(args, program)) {
        size_t script_size = strlen(args) + 1;
        program = args;
        args += script_size;
        args_len -= script_size;
    }
    if (!realpath(program, path)) {
        return true; /* it runs in a sandbox, where paths mean other files */
    }
    size_t path_size = strlen(path) + 1;
    char *items = malloc(path_size + args_len);
    if (!items) {
        return false;
    }
    memcpy(items, path, path_size);
    if (args_len > 0) {
        memcpy(items + path_size, args, args_len);
    }
    *runs = (struct sy_program){items, path_size + args_len};
    return true;
}

/* Reads the arguments of a process, with the program's name first. Returns how many bytes the complete ones have. */
static size_t read_args(int64_t pid, char args[ARGS_MAX]) {
    char name[64];
    size_t len = 0;
    ssize_t got = 1;
    snprintf(name, sizeof name, "/proc/%" PRId64 "/cmdline", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && got > 0 && len < ARGS_MAX) {
        got = read(fd, args + len, ARGS_MAX - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    while (len > 0 && args[len - 1] != '\0') {
        len--;
    }
    return len;
}

bool sy_program_of_process(int64_t pid, struct sy_program *runs) {
    static const char replaced[] = " (deleted)"; /* an update replaced the program while it ran */
    char name[64];
    char program[PATH_MAX];
    char args[ARGS_MAX];
    *runs = (struct sy_program){.items = NULL};
    snprintf(name, sizeof name, "/proc/%" PRId64 "/exe", pid);
    ssize_t len = pid > 0 ? readlink(name, program, sizeof program - 1) : -1;
    if (len <= 0) {
        return true;
    }
    program[len] = '\0';
    size_t suffix = sizeof replaced - 1;
    if ((size_t)len > suffix && strcmp(program + len - suffix, replaced) == 0) {
        program[(size_t)len - suffix] = '\0';
    }
    size_t args_len = read_args(pid, args);
    size_t own_name = args_len > 0 ? strlen(args) + 1 : 0;
    return sy_program_make(program, args + own_name, args_len - own_name, runs);
}

bool sy_program_copy(const struct sy_program *from, struct sy_program *to) {
    *to = (struct sy_program){.items = from->len > 0 ? malloc(from->len) : NULL};
    if (to->items) {
        memcpy(to->items, from->items, from->len);
        to->len = from->len;
    }
    return to->len == from->len;
}

void sy_program_free(struct sy_program *program) {
    free(program->items);
    *program = (struct sy_program){.items = NULL};
}

bool sy_program_begins(const struct sy_program *program, const struct sy_program *with) {
    return with->len > 0 && with->len <= program->len && memcmp(program->items, with->items, with->len) == 0;
}
