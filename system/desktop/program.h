/*
 * What a process runs, and what an installed application starts, in one form. If a window's class says nothing, this
 * shows to which application its process belongs.
 */
#ifndef SY_PROGRAM_H
#define SY_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The program's path without symbolic links, then its arguments, each ended by a NUL. For a script, the program is the
 * script, not its interpreter. `len` 0: not known.
 */
struct sy_program {
    char *items;
    size_t len;
};

/* `args`: each ended by a NUL, without the program's name. False when out of memory, also below. */
bool sy_program_make(const char *program, const char *args, size_t args_len, struct sy_program *runs);

/* Finds what a process runs. If the process has ended, or is another user's, `runs` is "not known". */
bool sy_program_of_process(int64_t pid, struct sy_program *runs);

/* Makes a copy with memory of its own. */
bool sy_program_copy(const struct sy_program *from, struct sy_program *to);

/* Frees the memory of `runs`, which is "not known" afterwards. */
void sy_program_free(struct sy_program *program);

/* Whether `program` is the same program as `with`, and its arguments begin with those of `with`. */
bool sy_program_begins(const struct sy_program *program, const struct sy_program *with);

#endif
