/*
 * Things that the sandbox forbids, tried from inside for the tests. An attempt is a word, some with a value:
 *
 *     socket  connect=PORT  bind=PORT (on 127.0.0.1)  connect-abstract=NAME
 *     fork  exec=PATH  ptrace  kill-parent
 *     write=PATH (O_CREAT and O_TRUNC)  append=PATH  truncate=PATH  unlink=PATH  rename=PATH (to the folder above)
 *     update=PATH (O_RDWR)  mkdir=PATH  rmdir=PATH  mkfifo=PATH  symlink=PATH  ioctl=PATH
 *     gpu-ioctl=PATH (of the kind that GPUs have)
 *     peek=PATH (reads from it: ENODATA if it is empty)  list=PATH
 *     escape=N (writes a terminal's sequence for its clipboard)  type=N (TIOCSTI)  no-append=N (by F_SETFL)
 *     overwrite=N  shorten=N (what was written before), each on a descriptor
 *     syscall=NUMBER,ARGUMENT... (Linux; arguments that are not given are -1)
 *     other-arch (a 32-bit call on x86_64)
 *
 * These are allowed in the sandbox: thread, read=PATH, descriptor=N (is it open?).
 */
#ifndef FM_ENGINE_FAKE_ATTEMPT_H
#define FM_ENGINE_FAKE_ATTEMPT_H

#include <stdbool.h>

/* True when `attempt` is one of the attempts in the list at the top of this file. Pure. */
bool fm_attempt_known(const char *attempt);

/*
 * Makes an attempt from the list. Returns "ok" or errno's name, such as "EPERM"; a static string. An attempt that
 * succeeds has its real effect: a file is written, or another program replaces this process. May block.
 */
const char *fm_attempt_run(const char *attempt);

#endif
