/*
 * Child processes on Windows. Each is in its own job, which ends everything that the child started: when the child is
 * killed, when it has ended, and when this process ends in any way.
 */
#include "base/platform.h"
#include "base/platform_windows.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN_MAX  32
#define LAST_WORDS_MS 500 /* how long to wait for what an ended process wrote to its stderr */

/*
 * The exit status of a process that TerminateJobObject ended: it stands for SIGKILL. It has the bit that winerror.h
 * reserves for customers' codes.
 */
#define KILLED 0xE0464D09u

struct process {
    pid_t pid; /* 0: free */
    HANDLE process;
    HANDLE job;
    struct fm_windows_tail *errors;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct process processes[CHILDREN_MAX];

static const struct {
    DWORD status;
    int signal;
} endings[] = {
    {KILLED, SIGKILL},
    {STATUS_ACCESS_VIOLATION, SIGSEGV},
    {STATUS_STACK_OVERFLOW, SIGSEGV},
    {0xC0000374 /* a broken heap */, SIGABRT},
    {0xC0000409 /* __fastfail, and abort() of the newer C library */, SIGABRT},
    {STATUS_ILLEGAL_INSTRUCTION, SIGILL},
    {STATUS_INTEGER_DIVIDE_BY_ZERO, SIGFPE},
    {STATUS_FLOAT_DIVIDE_BY_ZERO, SIGFPE},
    {STATUS_IN_PAGE_ERROR, SIGBUS},
    {STATUS_CONTROL_C_EXIT, SIGINT},
};

void fm_end_by_signal(int number) {
    DWORD status = 128 + (DWORD)number;
    for (size_t i = sizeof endings / sizeof endings[0]; i > 0; i--) {
        status = endings[i - 1].signal == number ? endings[i - 1].status : status;
    }
    if (number != SIGSTOP) {
        TerminateProcess(GetCurrentProcess(), status);
    }
}

/*
 * Statuses of a program that can't be loaded: it lacks a library, or a library lacks a function or fails at its start.
 */
static const DWORD not_loaded[] = {0xC0000135, 0xC0000138, 0xC0000139, 0xC0000142};

static int status_of(DWORD status) {
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].status == status) {
            return -endings[i].signal;
        }
    }
    for (size_t i = 0; i < sizeof not_loaded / sizeof not_loaded[0]; i++) {
        if (not_loaded[i] == status) {
            return FM_CHILD_NOT_LOADED;
        }
    }
    return status <= INT_MAX ? (int)status : -SIGABRT; /* greater values: an exception that was not caught */
}

static void close_handle(HANDLE handle) {
    if (handle) {
        CloseHandle(handle);
    }
}

/* ---- the environment ---- */

/* Variables without which programs of this system, and the libraries that they load, do not work. */
static const char *const needed[] = {"SystemRoot", "windir", "TEMP", "TMP", "USERPROFILE", "LOCALAPPDATA"};

static bool has_variable(char *const env[], const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; env[i]; i++) {
        if (_strnicmp(env[i], name, len) == 0 && env[i][len] == '=') {
            return true;
        }
    }
    return false;
}

/* Appends "NAME=VALUE" and a 0 in UTF-16 at `*at`. With `block` NULL it only counts. */
static void add_entry(wchar_t *block, size_t *at, const char *entry) {
    int room = block ? 32767 : 0;
    *at += (size_t)MultiByteToWideChar(CP_UTF8, 0, entry, -1, block ? block + *at : NULL, room);
}

/* Returns the length of the block in characters; writes the block unless `block` is NULL. */
static size_t write_environment(wchar_t *block, char *const env[]) {
    size_t len = 0;
    char **ours = fm_process_environment();
    for (size_t i = 0; env[i]; i++) {
        add_entry(block, &len, env[i]);
    }
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        for (char **entry = ours; *entry && !has_variable(env, needed[i]); entry++) {
            const char *const one[] = {*entry, NULL};
            if (has_variable((char *const *)one, needed[i])) {
                add_entry(block, &len, *entry);
            }
        }
    }
    if (block) {
        block[len] = L'\0';
        block[len + 1] = L'\0'; /* even an empty block ends with two NULs */
    }
    return len + 2;
}

/* Returns the environment block; the caller frees it. NULL: out of memory. */
static wchar_t *make_environment(char *const env[]) {
    wchar_t *block = malloc(write_environment(NULL, env) * sizeof *block);
    if (block) {
        write_environment(block, env);
    }
    return block;
}

/* ---- the start ---- */

/* What a start needs. end_start closes or frees all members, except those that were handed on and set to NULL. */
struct start {
    HANDLE theirs[3]; /* the child's ends of the pipes */
    HANDLE ours[3];
    HANDLE job;
    LPPROC_THREAD_ATTRIBUTE_LIST attributes;
    bool has_attributes;
    wchar_t *program;
    wchar_t *command;
    wchar_t *environment;
    PROCESS_INFORMATION process;
};

static void end_start(struct start *start) {
    for (int i = 0; i < 3; i++) {
        close_handle(start->theirs[i]);
        close_handle(start->ours[i]);
    }
    if (start->has_attributes) {
        DeleteProcThreadAttributeList(start->attributes);
    }
    close_handle(start->job);
    close_handle(start->process.hThread);
    close_handle(start->process.hProcess);
    free(start->attributes);
    free(start->program);
    free(start->command);
    free(start->environment);
}

static bool make_pipes(struct start *start) {
    for (int i = 0; i < 3; i++) {
        HANDLE *from = i == 0 ? &start->theirs[i] : &start->ours[i];
        HANDLE *to = i == 0 ? &start->ours[i] : &start->theirs[i];
        if (!CreatePipe(from, to, NULL, 0) ||
            !SetHandleInformation(start->theirs[i], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)) {
            return false;
        }
    }
    return true;
}

/* A job that ends all of its processes with its last handle, and shows no dialog for a crash. */
static bool make_job(struct start *start) {
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags =
        JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
    start->job = CreateJobObjectW(NULL, NULL);
    return start->job && SetInformationJobObject(start->job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
}

/* The child inherits only the three pipes. It starts inside its job, if the system can do that (Windows 10). */
static bool make_attributes(struct start *start) {
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(NULL, 2, 0, &size);
    start->attributes = malloc(size);
    start->has_attributes = start->attributes && InitializeProcThreadAttributeList(start->attributes, 2, 0, &size);
    if (!start->has_attributes || !UpdateProcThreadAttribute(start->attributes, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                                             start->theirs, sizeof start->theirs, NULL, NULL)) {
        return false;
    }
    (void)UpdateProcThreadAttribute(start->attributes, 0, PROC_THREAD_ATTRIBUTE_JOB_LIST, &start->job,
                                    sizeof start->job, NULL, NULL);
    return true;
}

/*
 * The child is not started suspended: if this process ended before it resumed the child, the child would wait forever.
 * A running child sees the end of its input.
 */
static bool put_into_job(const struct start *start) {
    BOOL is_in_it = FALSE;
    return (IsProcessInJob(start->process.hProcess, start->job, &is_in_it) && is_in_it) ||
           AssignProcessToJobObject(start->job, start->process.hProcess) ||
           WaitForSingleObject(start->process.hProcess, 0) == WAIT_OBJECT_0; /* its exit status says why it ended */
}

/*
 * Appends `argument` in quotes, as Microsoft's C library takes a command line apart ("Parsing C command-line
 * arguments"): a backslash counts as itself, but backslashes before a quote must be doubled. `command` NULL: counts
 * only. Returns where the next character goes.
 */
static size_t add_quoted(wchar_t *command, size_t at, const wchar_t *argument) {
    size_t backslashes = 0;
#define PUT(c) (command ? (void)(command[at] = (c)) : (void)0, at++)
    PUT(L'"');
    for (;; argument++) {
        for (size_t more = *argument == L'"' ? backslashes + 1 : *argument ? 0 : backslashes; more; more--) {
            PUT(L'\\');
        }
        if (!*argument) {
            break;
        }
        backslashes = *argument == L'\\' ? backslashes + 1 : 0;
        PUT(*argument);
    }
    PUT(L'"');
#undef PUT
    return at;
}

/* Returns the program's name and the arguments, each in quotes; the caller frees the text. NULL: out of memory. */
static wchar_t *make_command(const wchar_t *program, char *const args[]) {
    size_t len = add_quoted(NULL, 0, program);
    wchar_t *command = malloc((len + 1) * sizeof *command);
    if (command) {
        add_quoted(command, 0, program);
        command[len] = L'\0';
    }
    for (size_t i = 0; command && args && args[i]; i++) {
        wchar_t *wide = fm_windows_wide(args[i]);
        wchar_t *longer = wide ? realloc(command, (add_quoted(NULL, len + 1, wide) + 1) * sizeof *command) : NULL;
        if (!longer) {
            free(wide);
            free(command);
            return NULL;
        }
        command = longer;
        command[len] = L' ';
        len = add_quoted(command, len + 1, wide);
        command[len] = L'\0';
        free(wide);
    }
    return command;
}

/* Creates the process in its job. Returns 0 or an errno value. */
static int create_process(struct start *start, const char *path, char *const args[], char *const env[]) {
    start->program = fm_windows_wide(path);
    start->command = start->program ? make_command(start->program, args) : NULL;
    start->environment = make_environment(env);
    if (!start->command || !start->environment) {
        return ENOMEM;
    }
    if (!make_pipes(start) || !make_job(start) || !make_attributes(start)) {
        return fm_windows_errno(GetLastError());
    }
    STARTUPINFOEXW info = {.StartupInfo = {.cb = sizeof info,
                                           .dwFlags = STARTF_USESTDHANDLES,
                                           .hStdInput = start->theirs[0],
                                           .hStdOutput = start->theirs[1],
                                           .hStdError = start->theirs[2]},
                           .lpAttributeList = start->attributes};
    DWORD flags =
        CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    if (!CreateProcessW(start->program, start->command, NULL, NULL, TRUE, flags, start->environment, NULL,
                        &info.StartupInfo, &start->process)) {
        return fm_windows_errno(GetLastError());
    }
    if (!put_into_job(start)) {
        int error = fm_windows_errno(GetLastError());
        TerminateProcess(start->process.hProcess, KILLED);
        return error;
    }
    return 0;
}

/* ---- the end ---- */

/*
 * Waits until the process has ended and all its output has come, then closes `fd`. That makes the other end readable.
 */
struct watch {
    HANDLE process;
    HANDLE job;
    struct fm_windows_tail *output;
    int fd;
};

static void free_watch(struct watch *watch) {
    close_handle(watch->process);
    close_handle(watch->job);
    if (watch->output) {
        fm_windows_tail_free(watch->output);
    }
    free(watch);
}

static void *watch_process(void *argument) {
    struct watch *watch = argument;
    WaitForSingleObject(watch->process, INFINITE);
    TerminateJobObject(watch->job, KILLED); /* a process that the child started may hold its output open */
    fm_windows_tail_wait(watch->output, -1, true);
    fm_close(watch->fd);
    free_watch(watch);
    return NULL;
}

static HANDLE copy_handle(HANDLE handle) {
    HANDLE here = GetCurrentProcess();
    HANDLE copy;
    return DuplicateHandle(here, handle, here, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS) ? copy : NULL;
}

/* 0 or an errno value. */
static int start_watch(struct fm_child *child, const struct start *start) {
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        return ENOMEM;
    }
    watch->process = copy_handle(start->process.hProcess);
    watch->job = copy_handle(start->job);
    watch->output = fm_windows_tail_new(child->from_child);
    int error = watch->process && watch->job && watch->output ? fm_pipe(&child->ended, &watch->fd) : ENOMEM;
    if (error) {
        free_watch(watch);
        return error;
    }
    error = fm_thread_start(watch_process, watch);
    if (error) {
        fm_close(watch->fd);
        free_watch(watch);
    }
    return error;
}

/* Takes over the handles for fm_child_kill and fm_child_reap. False: there are too many children, or no memory. */
static bool note_process(struct fm_child *child, struct start *start) {
    struct fm_windows_tail *errors = fm_windows_tail_new(child->errors);
    struct process *free_one = NULL;
    if (!errors) {
        return false;
    }
    child->pid = (pid_t)start->process.dwProcessId;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        free_one = processes[i].pid ? free_one : &processes[i];
    }
    if (free_one) {
        *free_one = (struct process){child->pid, start->process.hProcess, start->job, errors};
        start->process.hProcess = start->job = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (!free_one) {
        fm_windows_tail_free(errors);
    }
    return free_one;
}

/* Makes descriptors from our ends of the pipes. Returns 0 or an errno value. */
static int take_pipes(struct fm_child *child, struct start *start) {
    int *fds[] = {&child->to_child, &child->from_child, &child->errors};
    for (int i = 0; i < 3; i++) {
        *fds[i] = i == 0 ? fm_windows_writer(start->ours[i]) : fm_windows_reader(start->ours[i]);
        if (*fds[i] < 0) {
            return errno;
        }
        start->ours[i] = NULL;
    }
    return 0;
}

static void close_fds(const struct fm_child *child) {
    const int fds[] = {child->to_child, child->from_child, child->errors, child->ended};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            fm_close(fds[i]);
        }
    }
}

int fm_child_start(struct fm_child *child, const char *path, char *const env[], const struct fm_child_given *given) {
    return fm_child_start_args(child, path, NULL, env, given);
}

int fm_child_start_args(struct fm_child *child, const char *path, char *const args[], char *const env[],
                        const struct fm_child_given *given) {
    struct start start = {.job = NULL};
    (void)given; /* no descriptor is ever given: fm_private_folder_open */
    *child = (struct fm_child){.to_child = -1, .from_child = -1, .errors = -1, .ended = -1};
    int error = create_process(&start, path, args, env);
    bool created = !error;
    for (int i = 0; i < 3; i++) { /* otherwise the end of its output would never come */
        close_handle(start.theirs[i]);
        start.theirs[i] = NULL;
    }
    error = error ? error : take_pipes(child, &start);
    error = error ? error : start_watch(child, &start);
    if (!error && !note_process(child, &start)) {
        error = EAGAIN;
    }
    if (error) {
        if (created) {
            TerminateJobObject(start.job, KILLED);
        }
        close_fds(child);
    }
    end_start(&start);
    return error;
}

/* Returns a copy of the row of the process; all 0 if it has no row. */
static struct process find_process(pid_t pid) {
    struct process found = {.pid = 0};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        found = processes[i].pid == pid ? processes[i] : found;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool fm_child_has_ended(pid_t pid) {
    struct process found = find_process(pid);
    return !found.process || WaitForSingleObject(found.process, 0) == WAIT_OBJECT_0;
}

void fm_child_kill(pid_t pid) {
    struct process found = find_process(pid);
    if (found.job) {
        TerminateJobObject(found.job, KILLED);
    }
}

int fm_child_reap(pid_t pid) {
    struct process found = find_process(pid);
    DWORD status = 0;
    if (!found.process) {
        return 0;
    }
    WaitForSingleObject(found.process, INFINITE);
    GetExitCodeProcess(found.process, &status);
    fm_windows_tail_wait(found.errors, LAST_WORDS_MS, false);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (processes[i].pid == pid) {
            processes[i] = (struct process){.pid = 0};
        }
    }
    pthread_mutex_unlock(&lock);
    fm_windows_tail_free(found.errors);
    close_handle(found.process);
    close_handle(found.job);
    return status_of(status);
}
