/*
 * What a process runs, and what an installed application starts, in one form: so a window is known as an application's
 * by its process, where its class says nothing.
 */
#ifndef SY_PROGRAM_H
#define SY_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The program's path without symbolic links, then its arguments, each ended by a NUL. The program of a script is the
 * script, not what interprets it. `len` 0: not known.
 */
struct sy_program {
    char *items;
    size_t len;
};

/* `args`: each ended by a NUL, without the program's name. False when out of memory, also below. */
bool sy_program_make(const char *program, const char *args, size_t args_len, struct sy_program *runs);

/* Not known: the process has ended, or is another user's. */
bool sy_program_of_process(int64_t pid, struct sy_program *runs);

/* `to` is another one's own. */
bool sy_program_copy(const struct sy_program *from, struct sy_program *to);

/* What it was is not known any more. */
void sy_program_free(struct sy_program *program);

/* Whether it is the same program, with the same arguments and perhaps more of them. */
bool sy_program_begins(const struct sy_program *program, const struct sy_program *with);

#endif
