/*
 * This process on Windows: its start, its end, its processors and its memory. platform_windows_pipes.c has the
 * descriptors, platform_windows_files.c the files, platform_windows_child.c the child processes,
 * platform_windows_threads.c the threads.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_os.h"
#include "base/platform_windows.h"

#include <bcrypt.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <psapi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <winternl.h>

#define CLOSE_MS 5000 /* how long the system lets a process run when its console is closed */

/* ---- the start ---- */

int main(int argc, char *argv[]);
int wmain(int argc, wchar_t *argv[]);

/*
 * The C library converts the environment to the system's code page, so variables that are not ASCII are set again, as
 * UTF-8. Names such as "=C:", in which a command line keeps the folder of each drive, are not for programs, and _putenv
 * refuses them.
 */
static bool set_environment(void) {
    wchar_t *whole = GetEnvironmentStringsW();
    bool ok = whole;
    for (const wchar_t *entry = whole; ok && *entry; entry += wcslen(entry) + 1) {
        bool ascii = true;
        for (const wchar_t *at = entry; *at && *entry != L'='; at++) {
            ascii = ascii && *at < 0x80;
        }
        char *utf8 = ascii ? NULL : fm_windows_utf8(entry);
        ok = ascii || (utf8 && _putenv(utf8) == 0);
        free(utf8);
    }
    if (whole) {
        FreeEnvironmentStringsW(whole);
    }
    return ok;
}

/* The C library calls this at the start. Arguments and environment are UTF-8 from here on; they are never freed. */
int wmain(int argc, wchar_t *argv[]) {
    char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
    bool ok = arguments && set_environment();
    for (int i = 0; ok && i < argc; i++) {
        arguments[i] = fm_windows_utf8(argv[i]);
        ok = arguments[i];
    }
    return ok ? main(argc, arguments) : EXIT_FAILURE;
}

void fm_fill_std_fds(void) {
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    /* A crash shows no dialog and writes no report, because memory holds prompts. A child inherits this. */
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
    for (int fd = 0; fd <= 2; fd++) {
        if (_get_osfhandle(fd) < 0) { /* -2: the process was started without this descriptor */
            int null_fd = _wopen(L"NUL", fd == 0 ? _O_RDONLY : _O_WRONLY);
            if (null_fd >= 0 && null_fd != fd) {
                _dup2(null_fd, fd);
                _close(null_fd);
            }
            SetStdHandle(names[fd], (HANDLE)_get_osfhandle(fd));
        }
        _setmode(fd, _O_BINARY);
    }
}

/* ---- the end ---- */

static int end_read = -1;
static int end_write = -1;

void fm_ask_for_end(void) {
    fm_write(end_write, "r", 1); /* a full pipe is readable already */
}

/* Called on a thread of the system. */
static BOOL WINAPI on_console(DWORD event) {
    static atomic_bool seen;
    if (atomic_exchange(&seen, true)) {
        _exit(128 + SIGINT);
    }
    fm_ask_for_end();
    if (event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT) {
        Sleep(CLOSE_MS); /* the process ends with this call */
    }
    return TRUE;
}

static void *wait_for_parent(void *parent) {
    WaitForSingleObject(parent, INFINITE);
    fm_ask_for_end();
    return NULL;
}

static bool is_older(HANDLE process, HANDLE other) {
    FILETIME start;
    FILETIME other_start;
    FILETIME ignored;
    return GetProcessTimes(process, &start, &ignored, &ignored, &ignored) &&
           GetProcessTimes(other, &other_start, &ignored, &ignored, &ignored) &&
           CompareFileTime(&start, &other_start) <= 0;
}

/*
 * Opens a handle of the parent. NULL: the parent can't be watched, so only the end of input shows that it has ended.
 * `*gone`: the parent has ended already, and another process may have its number.
 */
static HANDLE open_parent(bool *gone) {
    PROCESS_BASIC_INFORMATION self;
    *gone = false;
    if (NtQueryInformationProcess(GetCurrentProcess(), ProcessBasicInformation, &self, sizeof self, NULL) < 0 ||
        !self.InheritedFromUniqueProcessId) {
        return NULL;
    }
    HANDLE parent =
        OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)self.InheritedFromUniqueProcessId);
    *gone = parent ? !is_older(parent, GetCurrentProcess()) : GetLastError() == ERROR_INVALID_PARAMETER;
    if (parent && *gone) {
        CloseHandle(parent);
        parent = NULL;
    }
    return parent;
}

int fm_watch_for_end(void) {
    bool gone;
    HANDLE parent = open_parent(&gone);
    int error = fm_pipe(&end_read, &end_write);
    if (error) {
        errno = error;
        return -1;
    }
    fm_set_nonblocking(end_write);
    SetConsoleCtrlHandler(on_console, TRUE);
    if (gone) {
        fm_ask_for_end();
    }
    error = parent ? fm_thread_start(wait_for_parent, parent) : 0;
    if (error) {
        errno = error;
        return -1;
    }
    return end_read;
}

/* ---- this process ---- */

void fm_processors(struct fm_processors *processors) {
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION list[256];
    DWORD_PTR allowed = 1;
    DWORD_PTR all;
    DWORD size = sizeof list;
    GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all); /* the processors of its group: 64 at most */
    int count = __builtin_popcountll(allowed);
    int cores = 0;
    if (GetLogicalProcessorInformation(list, &size)) {
        for (size_t i = 0; i < size / sizeof list[0]; i++) {
            cores += list[i].Relationship == RelationProcessorCore && (list[i].ProcessorMask & allowed);
        }
    }
    processors->count = count > 0 ? count : 1;
    processors->cores = cores > 0 ? cores : processors->count;
}

int64_t fm_memory_limit(void) {
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    return GlobalMemoryStatusEx(&status) ? (int64_t)status.ullTotalPhys : 0;
}

int fm_macos_version(void) {
    return 0;
}

void fm_memory_trim(void) {
    _heapmin();
}

void fm_random(void *data, size_t len) {
    BCryptGenRandom(NULL, data, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
}

int64_t fm_process_memory(pid_t pid) {
    PROCESS_MEMORY_COUNTERS counters;
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)pid);
    bool known = process && K32GetProcessMemoryInfo(process, &counters, sizeof counters);
    if (process) {
        CloseHandle(process);
    }
    return known ? (int64_t)counters.WorkingSetSize : -1;
}

int64_t fm_private_memory(void) {
    return -1;
}

const char *fm_platform_name(void) {
    return "windows";
}

bool fm_is_root(void) {
    return false;
}

char **fm_process_environment(void) {
    (void)getenv("PATH"); /* the C library makes the list when it is first asked */
    return _environ;
}

void fm_process_hide(void) {}

void fm_sandbox_enter(const struct fm_sandbox_needs *needs, struct fm_sandbox *in_force) {
    (void)needs;
    *in_force = (struct fm_sandbox){.landlock = 0};
}
