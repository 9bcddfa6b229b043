/*
 * Builds that count coverage (FM_COVERAGE): the counts go to disk at exit(), and _exit knows nothing of them. The
 * linker sends every _exit of ours here (--wrap=_exit), so the code that ends in one needs no word about it. What
 * SIGKILL ends is not counted.
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
