/* Attempts to do what the sandbox forbids: one function for each attempt, and a table of their names. */
#include "engine/fake/attempt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each function returns 0 or more, or -1 with errno. `value` is the text after the "=". */

static int try_socket(const char *value) {
    (void)value;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : close(fd);
}

/* Calls `use` with a new socket, and closes the socket again. */
static int with_socket(int (*use)(int, const struct sockaddr *, socklen_t), const void *address, socklen_t len) {
    int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);
    if (fd < 0) {
        return -1;
    }
    int result = use(fd, address, len);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

/* A port on 127.0.0.1. */
static int with_port(int (*use)(int, const struct sockaddr *, socklen_t), const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(port, NULL, 10))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return with_socket(use, &address, sizeof address);
}

static int try_connect(const char *value) {
    return with_port(connect, value);
}

static int try_bind(const char *value) {
    return with_port(bind, value);
}

static int try_connect_abstract(const char *value) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(value);
    if (len >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path + 1, value, len); /* a NUL before the name makes the socket abstract */
    return with_socket(connect, &address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
}

static int try_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

static int try_write(const char *value) {
    return try_open(value, O_WRONLY | O_CREAT | O_TRUNC);
}

static int try_append(const char *value) {
    return try_open(value, O_WRONLY | O_APPEND);
}

static int try_update(const char *value) {
    return try_open(value, O_RDWR);
}

static int try_read(const char *value) {
    return try_open(value, O_RDONLY);
}

/* Reads a few bytes of the file, if it has any. */
static int try_peek(const char *value) {
    char bytes[4096];
    int fd = open(value, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t got = read(fd, bytes, sizeof bytes);
    int error = got == 0 ? ENODATA : errno;
    close(fd);
    errno = error;
    return got > 0 ? 0 : -1;
}

static int try_list(const char *value) {
    DIR *folder = opendir(value);
    return folder ? closedir(folder) : -1;
}

/* Writes the sequence that makes a terminal set the clipboard. */
static int try_escape(const char *value) {
    static const char sequence[] = "\033]52;c;ZXZpbA==\a\n";
    return write((int)strtol(value, NULL, 10), sequence, sizeof sequence - 1) > 0 ? 0 : -1;
}

static int try_type(const char *value) {
    return ioctl((int)strtol(value, NULL, 10), TIOCSTI, "x");
}

static int try_no_append(const char *value) {
    return fcntl((int)strtol(value, NULL, 10), F_SETFL, 0);
}

static int try_overwrite(const char *value) {
    return pwrite((int)strtol(value, NULL, 10), "x", 1, 0) > 0 ? 0 : -1;
}

static int try_shorten(const char *value) {
    return ftruncate((int)strtol(value, NULL, 10), 0);
}

static int try_mkdir(const char *value) {
    return mkdir(value, 0700);
}

static int try_truncate(const char *value) {
    return truncate(value, 0);
}

static int try_mkfifo(const char *value) {
    return mkfifo(value, 0600);
}

static int try_symlink(const char *value) {
    return symlink("/", value);
}

/* Moves the file into the folder above. */
static int try_rename(const char *value) {
    char to[PATH_MAX];
    const char *slash = strrchr(value, '/');
    if (!slash || snprintf(to, sizeof to, "%.*s/..%s", (int)(slash - value), value, slash) >= (int)sizeof to) {
        errno = EINVAL;
        return -1;
    }
    return rename(value, to);
}

/* Sends a request that no device knows. */
static int request(const char *value, int flags, unsigned long number) {
    int fd = open(value, flags | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int result = ioctl(fd, number, NULL);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static int try_ioctl(const char *value) {
    return request(value, O_RDONLY, 0x666dUL);
}

/* Sends a request of the kind that GPUs have. */
static int try_gpu_ioctl(const char *value) {
    return request(value, O_RDWR, 0x64ffUL);
}

static int try_exec(const char *value) {
    char *const argv[] = {(char *)value, NULL};
    char *const env[] = {NULL};
    return execve(value, argv, env);
}

static int try_fork(const char *value) {
    (void)value;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    return pid < 0 || waitpid(pid, NULL, 0) == pid ? (int)pid : -1;
}

static int try_kill_parent(const char *value) {
    (void)value;
    return kill(getppid(), 0); /* only checks whether a signal would be allowed */
}

static void *nothing(void *argument) {
    return argument;
}

static int try_thread(const char *value) {
    (void)value;
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    return errno ? -1 : pthread_join(thread, NULL);
}

static int try_descriptor(const char *value) {
    return fcntl((int)strtol(value, NULL, 10), F_GETFD);
}

/* Exists only on systems where the numbers of system calls do not change. */
static int try_syscall(const char *value) {
#ifdef SYS_gettid
    long n[7] = {-1, -1, -1, -1, -1, -1, -1};
    pid_t self = getpid();
    for (size_t i = 0; i < 7; i++) {
        char *end;
        n[i] = (long)strtoull(value, &end, 0);
        if (*end != ',') {
            break;
        }
        value = end + 1;
    }
    long result = syscall(n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
    if (getpid() != self) {
        _exit(0); /* this is the child of a fork that was not denied */
    }
    return result < 0 ? -1 : 0;
#else
    (void)value;
    errno = ENOSYS;
    return -1;
#endif
}

static int try_ptrace(const char *value) {
    (void)value;
#ifdef SYS_ptrace
    return syscall(SYS_ptrace, 0L /* PTRACE_TRACEME */, 0L, 0L, 0L) < 0 ? -1 : 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}

/* Makes a 32-bit system call from a 64-bit program: getpid, which has the number 20 there. */
static int try_other_arch(const char *value) {
    (void)value;
#ifdef __x86_64__
    long result = 20;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result < 0 ? -1 : 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static const struct attempt {
    const char *name; /* with "=" at its end if a value follows */
    int (*run)(const char *value);
} attempts[] = {
    {"socket", try_socket},
    {"connect=", try_connect},
    {"write=", try_write},
    {"append=", try_append},
    {"update=", try_update},
    {"read=", try_read},
    {"peek=", try_peek},
    {"list=", try_list},
    {"escape=", try_escape},
    {"type=", try_type},
    {"no-append=", try_no_append},
    {"overwrite=", try_overwrite},
    {"shorten=", try_shorten},
    {"mkdir=", try_mkdir},
    {"unlink=", unlink},
    {"bind=", try_bind},
    {"connect-abstract=", try_connect_abstract},
    {"truncate=", try_truncate},
    {"mkfifo=", try_mkfifo},
    {"symlink=", try_symlink},
    {"rename=", try_rename},
    {"rmdir=", rmdir},
    {"ioctl=", try_ioctl},
    {"gpu-ioctl=", try_gpu_ioctl},
    {"exec=", try_exec},
    {"fork", try_fork},
    {"ptrace", try_ptrace},
    {"kill-parent", try_kill_parent},
    {"thread", try_thread},
    {"descriptor=", try_descriptor},
    {"syscall=", try_syscall},
    {"other-arch", try_other_arch},
};

static const struct attempt *find_attempt(const char *text) {
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        size_t len = strlen(attempts[i].name);
        bool has_value = attempts[i].name[len - 1] == '=';
        if (has_value ? strncmp(text, attempts[i].name, len) == 0 : strcmp(text, attempts[i].name) == 0) {
            return &attempts[i];
        }
    }
    return NULL;
}

static const char *errno_name(int number) {
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},           {EACCES, "EACCES"},
        {ENOSYS, "ENOSYS"},         {ENOENT, "ENOENT"},
        {EEXIST, "EEXIST"},         {EBADF, "EBADF"},
        {EFAULT, "EFAULT"},         {EINVAL, "EINVAL"},
        {EROFS, "EROFS"},           {ECONNREFUSED, "ECONNREFUSED"},
        {EAGAIN, "EAGAIN"},         {ESRCH, "ESRCH"},
        {EXDEV, "EXDEV"},           {ENOTTY, "ENOTTY"},
        {EADDRINUSE, "EADDRINUSE"}, {ENXIO, "ENXIO"},
        {ESPIPE, "ESPIPE"},         {EIO, "EIO"},
        {ENODATA, "ENODATA"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].number == number) {
            return names[i].name;
        }
    }
    return "another error";
}

bool fm_attempt_known(const char *attempt) {
    return find_attempt(attempt) != NULL;
}

const char *fm_attempt_run(const char *attempt) {
    const struct attempt *found = find_attempt(attempt);
    int result = found->run(attempt + strlen(found->name));
    return result < 0 ? errno_name(errno) : "ok";
}
