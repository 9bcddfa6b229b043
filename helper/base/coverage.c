/*
 * For builds that count coverage (FM_COVERAGE): the counts go to disk at exit(), but not at _exit(). The linker sends
 * every call of _exit here (--wrap=_exit), so callers of _exit need no change. The counts of a process that SIGKILL
 * ends are lost.
 */
#ifdef FM_COVERAGE

#include <gcov.h>
#include <unistd.h>

_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

void __wrap__exit(int status) {
    __gcov_dump();
    __real__exit(status);
}

#else
typedef int fm_coverage_is_empty;
#endif
