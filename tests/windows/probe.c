/*
 * Actions that our programs do not do in a way that a test could see. wine.py builds this program from this file and
 * libfm_base.a. With -DLIBRARY, the file becomes the DLL.
 *
 *   probe end       loads probe.dll and ends by _exit with status 7
 *   probe patience  calls fm_run_on_stack_within with a function that waits for twice the limit, and one that computes
 *   probe errors    prints the errors that Windows gives for programs that it does not allow to start
 */
#include <windows.h>

#ifdef LIBRARY

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved);

/* Behaves like a C++ destructor, which may wait for a thread that is gone, or use what that thread left unfinished. */
BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved) {
    (void)library;
    (void)reserved;
    if (reason == DLL_PROCESS_DETACH) {
        TerminateProcess(GetCurrentProcess(), 3);
    }
    return TRUE;
}

#else

#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_windows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 200

static void rest(void *unused) {
    (void)unused;
    fm_sleep_ms(2 * LIMIT_MS);
}

static void compute(void *unused) {
    (void)unused;
    for (int64_t end = fm_now_ms() + 10000; fm_now_ms() < end;) {
    }
}

static void drop(void *unused) {
    (void)unused;
}

static void print_errors(void) {
    static const DWORD errors[] = {5, 225, 226, 740, 1260, 4551, 193, 14001, 8, 89, 164, 1454, 1816};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        printf("%lu %d\n", errors[i], fm_windows_errno(errors[i]));
    }
}

int main(int argc, char *argv[]) {
    if (argc == 2 && strcmp(argv[1], "end") == 0) {
        _exit(LoadLibraryA("probe.dll") ? 7 : 1);
    }
    if (argc == 2 && strcmp(argv[1], "errors") == 0) {
        print_errors();
        return 0;
    }
    int rested = fm_run_on_stack_within(65536, LIMIT_MS, 4 * LIMIT_MS, rest, drop, NULL);
    int computed = fm_run_on_stack_within(65536, LIMIT_MS, 4 * LIMIT_MS, compute, drop, NULL);
    printf("%s %s\n", rested == 0 ? "ran" : "late", computed == ETIMEDOUT ? "late" : "ran");
    fflush(stdout);
    _exit(0);
}

#endif
