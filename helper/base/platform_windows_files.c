/* Files and folders on Windows. Paths are UTF-8 here and UTF-16 in the system. */
#include "base/file.h"
#include "base/platform.h"
#include "base/platform_os.h"
#include "base/platform_windows.h"
#include "base/private_files.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* The ticks between 1601, where FILETIME begins, and 1970. */
#define EPOCH_SECONDS 11644473600
#define TICKS         10000000 /* ticks in a second */

/* Errors that are in winerror.h, but not in the copy that comes with gcc. */
#define VIRUS_FOUND      225
#define VIRUS_DELETED    226
#define ELEVATION_WANTED 740
#define POLICY_OF_SYSTEM 4551 /* Smart App Control and similar features */

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

int fm_windows_errno(DWORD error) {
    switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_BAD_PATHNAME: return ENOENT;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_WRITE_PROTECT:
    case ERROR_ACCESS_DISABLED_BY_POLICY:
    case VIRUS_FOUND:
    case VIRUS_DELETED:
    case ELEVATION_WANTED:
    case POLICY_OF_SYSTEM: return EACCES;
    case ERROR_BAD_EXE_FORMAT:
    case ERROR_EXE_MACHINE_TYPE_MISMATCH:
    case ERROR_SXS_CANT_GEN_ACTCTX: return ENOEXEC;
    case ERROR_NO_PROC_SLOTS:
    case ERROR_MAX_THRDS_REACHED: return EAGAIN;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_PAGEFILE_QUOTA:
    case ERROR_NOT_ENOUGH_QUOTA:
    case ERROR_NO_SYSTEM_RESOURCES: return ENOMEM;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    case ERROR_FILENAME_EXCED_RANGE: return ENAMETOOLONG;
    default: return EIO;
    }
}

wchar_t *fm_windows_wide(const char *text) {
    int len = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = malloc((size_t)len * sizeof *wide);
    if (wide) {
        MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, len);
    }
    return wide;
}

char *fm_windows_utf8(const wchar_t *text) {
    int len = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *utf8 = malloc((size_t)len);
    if (utf8) {
        WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, len, NULL, NULL);
    }
    return utf8;
}

/* Calls CreateFileW so that other processes may do everything with the file. INVALID_HANDLE_VALUE with errno. */
static HANDLE open_path(const char *path, DWORD access, DWORD how, DWORD flags) {
    wchar_t *wide = fm_windows_wide(path);
    if (!wide) {
        errno = ENOMEM;
        return INVALID_HANDLE_VALUE;
    }
    HANDLE handle = CreateFileW(wide, access, SHARE_ALL, NULL, how, flags, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        errno = fm_windows_errno(GetLastError());
    }
    free(wide);
    return handle;
}

int fm_os_open(const char *path, bool create, bool *regular) {
    DWORD access = GENERIC_READ | (create ? GENERIC_WRITE : 0);
    HANDLE handle = open_path(path, access, create ? OPEN_ALWAYS : OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL);
    if (handle == INVALID_HANDLE_VALUE) {
        return -1;
    }
    *regular = GetFileType(handle) == FILE_TYPE_DISK;
    int fd = _open_osfhandle((intptr_t)handle, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    if (fd < 0) {
        CloseHandle(handle);
        errno = EMFILE;
    }
    return fd;
}

/*
 * Nothing is to do: a file has the rights of its folder, which is the user's own folder unless another one was chosen.
 */
int fm_os_make_private(const char *path) {
    (void)path;
    return 0;
}

int fm_file_examine(const char *path, struct fm_file_info *info) {
    BY_HANDLE_FILE_INFORMATION found;
    *info = (struct fm_file_info){.regular = false};
    /* Backup semantics open folders too. An open handle drops no locks here. */
    HANDLE handle = open_path(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (handle == INVALID_HANDLE_VALUE) {
        return errno;
    }
    int error = 0;
    if (GetFileInformationByHandle(handle, &found)) {
        uint64_t ticks = (uint64_t)found.ftLastWriteTime.dwHighDateTime << 32 | found.ftLastWriteTime.dwLowDateTime;
        info->id.device = found.dwVolumeSerialNumber;
        info->id.inode = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
        info->regular = GetFileType(handle) == FILE_TYPE_DISK && !(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
        info->changed = (int64_t)(ticks / TICKS) - EPOCH_SECONDS;
        info->size = (int64_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
    } else if (GetFileType(handle) == FILE_TYPE_DISK) {
        error = fm_windows_errno(GetLastError());
    }
    CloseHandle(handle);
    return error;
}

/* Does not check more: errors show when the program is started. */
int fm_file_check_program(const char *path) {
    return fm_file_check_readable(path);
}

void fm_file_remove(const char *path) {
    wchar_t *wide = fm_windows_wide(path);
    if (wide) {
        DeleteFileW(wide);
    }
    free(wide);
}

static void use_slashes(char *path) {
    for (; *path; path++) {
        *path = *path == '\\' ? '/' : *path;
    }
}

/* NULL: out of memory, or the path is too long. */
static char *absolute_of(const char *path) {
    wchar_t whole[PATH_MAX];
    wchar_t *wide = fm_windows_wide(path);
    DWORD len = wide ? GetFullPathNameW(wide, PATH_MAX, whole, NULL) : 0;
    char *absolute = len > 0 && len < PATH_MAX ? fm_windows_utf8(whole) : NULL;
    if (absolute) {
        use_slashes(absolute);
    }
    free(wide);
    return absolute;
}

char *fm_file_resolve(const char *path) {
    struct fm_file_info info;
    int error = fm_file_examine(path, &info);
    char *resolved = error ? NULL : absolute_of(path);
    if (!resolved) {
        errno = error ? error : ENOMEM;
    }
    return resolved;
}

bool fm_file_absolute(const char *path, char *absolute, size_t size) {
    char *whole = absolute_of(path);
    bool fits = whole && strlen(whole) < size;
    if (fits) {
        memcpy(absolute, whole, strlen(whole) + 1);
    }
    free(whole);
    return fits;
}

const char *fm_file_last_separator(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *backslash = strrchr(path, '\\');
    return !slash || (backslash && backslash > slash) ? backslash : slash;
}

bool fm_program_dir(char *dir, size_t size) {
    wchar_t wide[PATH_MAX];
    DWORD len = GetModuleFileNameW(NULL, wide, PATH_MAX);
    char *path = len > 0 && len < PATH_MAX ? fm_windows_utf8(wide) : NULL;
    size_t dir_len = path ? (size_t)(fm_file_last_separator(path) - path) : size;
    if (dir_len < size) {
        memcpy(dir, path, dir_len);
        dir[dir_len] = '\0';
        use_slashes(dir);
    }
    free(path);
    return dir_len < size;
}

bool fm_library_dir(const char *function, char *dir, size_t size) {
    (void)function;
    return fm_program_dir(dir, size);
}

/* ---- folders ---- */

struct fm_folder {
    HANDLE search;
    WIN32_FIND_DATAW found;
    bool is_new; /* `found` has not been returned yet */
    char name[4 * MAX_PATH];
};

struct fm_folder *fm_folder_open(const char *path) {
    size_t len = strlen(path);
    char *pattern = malloc(len + sizeof "/*");
    struct fm_folder *folder = calloc(1, sizeof *folder);
    wchar_t *wide = NULL;
    if (pattern && folder) {
        memcpy(pattern, path, len);
        memcpy(pattern + len, "/*", sizeof "/*");
        wide = fm_windows_wide(pattern);
    }
    free(pattern);
    int error = wide ? 0 : ENOMEM;
    if (wide) {
        folder->search = FindFirstFileW(wide, &folder->found);
        folder->is_new = true;
        error = folder->search == INVALID_HANDLE_VALUE ? fm_windows_errno(GetLastError()) : 0;
    }
    free(wide);
    if (error) {
        free(folder);
        errno = error;
        return NULL;
    }
    return folder;
}

const char *fm_folder_next(struct fm_folder *folder) {
    do {
        if (!folder->is_new && !FindNextFileW(folder->search, &folder->found)) {
            errno = GetLastError() == ERROR_NO_MORE_FILES ? 0 : fm_windows_errno(GetLastError());
            return NULL;
        }
        folder->is_new = false;
        WideCharToMultiByte(CP_UTF8, 0, folder->found.cFileName, -1, folder->name, sizeof folder->name, NULL, NULL);
    } while (strcmp(folder->name, ".") == 0 || strcmp(folder->name, "..") == 0);
    return folder->name;
}

void fm_folder_close(struct fm_folder *folder) {
    FindClose(folder->search);
    free(folder);
}

/* ---- private_files.h: an engine here can't be given a descriptor ---- */

bool fm_cache_folder(char *path, size_t size) {
    (void)path;
    (void)size;
    return false;
}

int fm_private_folder_open(const char *path) {
    (void)path;
    errno = ENOSYS;
    return -1;
}

bool fm_private_folder_list(int folder, void (*each)(void *context, const struct fm_private_entry *entry),
                            void *context) {
    (void)folder;
    (void)each;
    (void)context;
    return false;
}

int fm_private_file_open(int folder, const char *name) {
    (void)folder;
    (void)name;
    errno = ENOSYS;
    return -1;
}

int fm_private_file_create(int folder, const char *name) {
    return fm_private_file_open(folder, name);
}

bool fm_private_file_is_left(int folder, const char *name) {
    (void)folder;
    (void)name;
    return false;
}

bool fm_private_file_is(int folder, const char *name, int fd) {
    (void)fd;
    return fm_private_file_is_left(folder, name);
}

bool fm_private_file_rename(int folder, const char *from, const char *to) {
    (void)to;
    return fm_private_file_is_left(folder, from);
}

void fm_private_file_remove(int folder, const char *name) {
    (void)folder;
    (void)name;
}

int64_t fm_private_file_size(int fd) {
    (void)fd;
    return -1;
}

bool fm_private_file_read(int fd, void *data, size_t len, int64_t offset) {
    (void)fd;
    (void)data;
    (void)len;
    (void)offset;
    return false;
}
