/*
 * Secrets, such as keys. Each one has separate memory, which is left out of core dumps and is overwritten before it is
 * freed. Nothing here blocks.
 */
#ifndef FM_BASE_SECRET_H
#define FM_BASE_SECRET_H

#include <stddef.h>

/* `len` + 1 zeros. The caller fills them, and frees them with fm_secret_free. NULL when out of memory. Any thread. */
char *fm_secret_new(size_t len);

/*
 * The first `len` bytes of `text` and a NUL. The caller frees them with fm_secret_free. NULL when out of memory. Any
 * thread.
 */
char *fm_secret_copy(const char *text, size_t len);

/*
 * Takes the value of the environment variable `name`, as fm_secret_copy would copy it. The variable is removed from the
 * environment and its value is overwritten there, so neither /proc nor a child process has it. NULL: the variable is
 * not set, or memory ran out and the variable stays. Call it only while the process has one thread.
 */
char *fm_secret_take(const char *name);

/* Overwrites and frees a secret. NULL does nothing. */
void fm_secret_free(char *secret);

#endif
