/*
 * What no program of ours does in a way that a test could see: wine.py makes this program of it and libfm_base.a, and
 * with -DLIBRARY the DLL.
 *
 *   probe end      loads probe.dll and ends by _exit with status 7
 *   probe patience prints what fm_run_on_stack_within says of a call that waits twice its time, and of one that
 * computes
 */
#include <windows.h>

#ifdef LIBRARY

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved);

/* As the end of a C++ object may: it waits for a thread that is gone by now, or uses what that left half done. */
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

int main(int argc, char *argv[]) {
    if (argc == 2 && strcmp(argv[1], "end") == 0) {
        _exit(LoadLibraryA("probe.dll") ? 7 : 1);
    }
    int rested = fm_run_on_stack_within(65536, LIMIT_MS, rest, drop, NULL);
    int computed = fm_run_on_stack_within(65536, LIMIT_MS, compute, drop, NULL);
    printf("%s %s\n", rested == 0 ? "ran" : "late", computed == ETIMEDOUT ? "late" : "ran");
    fflush(stdout);
    _exit(0);
}

#endif
