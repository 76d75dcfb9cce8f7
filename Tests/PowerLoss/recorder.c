// Records what a process writes to files and directories, and what it syncs, so that the state of the disk at any moment can
// be made up afterwards. Loaded with LD_PRELOAD (Linux); used by `tools/torture power-loss`.
//
// LARDER_RECORD: the log. One record an operation, in the order in which they took effect: a lock is held for the call and its
// record. Files are named by inode. Stores through mappings are not seen.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    WRITE = 1, TRUNCATE, PUNCH, SYNC, SYNC_ALL, CREATE, MAKE_DIRECTORY, UNLINK, RENAME, LINK, SAID, REMOVE_DIRECTORY
};

struct record {
    uint32_t kind, first_length, second_length, data_length;
    uint64_t inode, other, offset, length;
};

static int log_descriptor = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LARDER_RECORD");
    if (path) log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static void note(uint32_t kind, uint64_t inode, uint64_t other, uint64_t offset, uint64_t length, const char *first,
    const char *second, const void *data, size_t data_length) {
    if (log_descriptor < 0) return;
    int kept = errno;
    struct record record = {kind, first ? strlen(first) : 0, second ? strlen(second) : 0, data_length, inode, other, offset, length};
    struct iovec parts[4] = {{&record, sizeof record}, {(void *)first, record.first_length},
        {(void *)second, record.second_length}, {(void *)data, data_length}};
    size_t total = sizeof record + record.first_length + record.second_length + data_length;
    if ((size_t)syscall(SYS_writev, log_descriptor, parts, 4) != total) abort();
    errno = kept;
}

static uint64_t inode_of(int descriptor, mode_t *mode) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) return 0;
    if (mode) *mode = status.st_mode;
    return status.st_ino;
}

// The directory that `path` lies in, and its last component.
static uint64_t parent_of(int directory, const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    struct stat status;
    char parent[4096];
    if (!slash) {
        if (directory == AT_FDCWD) return fstatat(AT_FDCWD, ".", &status, 0) == 0 ? status.st_ino : 0;
        return inode_of(directory, NULL);
    }
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof parent) return 0;
    memcpy(parent, path, length);
    parent[length] = 0;
    return fstatat(directory, parent, &status, 0) == 0 ? status.st_ino : 0;
}

static void note_write(int descriptor, const void *data, ssize_t count, off_t offset) {
    mode_t mode = 0;
    uint64_t inode = inode_of(descriptor, &mode);
    if (count <= 0) return;
    if (descriptor == 1) return note(SAID, 0, 0, 0, 0, NULL, NULL, data, count);
    if (!S_ISREG(mode)) return;
    note(WRITE, inode, 0, offset, count, NULL, NULL, data, count);
    if (fcntl(descriptor, F_GETFL) & (O_DSYNC | O_SYNC)) note(SYNC, inode, 0, 0, 0, NULL, NULL, NULL, 0);
}

static off_t position(int descriptor) {
    if (fcntl(descriptor, F_GETFL) & O_APPEND) {
        struct stat status;
        return fstat(descriptor, &status) == 0 ? status.st_size : 0;
    }
    return lseek(descriptor, 0, SEEK_CUR);
}

ssize_t pwrite(int descriptor, const void *data, size_t count, off_t offset) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    pthread_mutex_lock(&lock);
    ssize_t result = real(descriptor, data, count, offset);
    note_write(descriptor, data, result, offset);
    pthread_mutex_unlock(&lock);
    return result;
}
ssize_t pwrite64(int descriptor, const void *data, size_t count, off_t offset) { return pwrite(descriptor, data, count, offset); }

ssize_t write(int descriptor, const void *data, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    pthread_mutex_lock(&lock);
    off_t offset = position(descriptor);
    ssize_t result = real(descriptor, data, count);
    note_write(descriptor, data, result, offset);
    pthread_mutex_unlock(&lock);
    return result;
}

static void note_parts(int descriptor, const struct iovec *parts, int count, ssize_t written, off_t offset) {
    for (int number = 0; number < count && written > 0; number++) {
        ssize_t length = (ssize_t)parts[number].iov_len < written ? (ssize_t)parts[number].iov_len : written;
        note_write(descriptor, parts[number].iov_base, length, offset);
        offset += length;
        written -= length;
    }
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    pthread_mutex_lock(&lock);
    off_t offset = position(descriptor);
    ssize_t result = real(descriptor, parts, count);
    note_parts(descriptor, parts, count, result, offset);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    pthread_mutex_lock(&lock);
    ssize_t result = real(descriptor, parts, count, offset);
    note_parts(descriptor, parts, count, result, offset);
    pthread_mutex_unlock(&lock);
    return result;
}
ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off_t offset) { return pwritev(descriptor, parts, count, offset); }

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned int flags) {
    (void)from, (void)from_offset, (void)to, (void)to_offset, (void)length, (void)flags;
    // Copied by hand instead, so that the bytes are seen.
    errno = ENOSYS;
    return -1;
}

int ftruncate(int descriptor, off_t length) {
    REAL(int, "ftruncate", int, off_t);
    pthread_mutex_lock(&lock);
    int result = real(descriptor, length);
    if (result == 0) note(TRUNCATE, inode_of(descriptor, NULL), 0, 0, length, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int descriptor, off_t length) { return ftruncate(descriptor, length); }

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    REAL(int, "fallocate", int, int, off_t, off_t);
    pthread_mutex_lock(&lock);
    int result = real(descriptor, mode, offset, length);
    // FALLOC_FL_PUNCH_HOLE is 2; allocation alone changes no bytes.
    if (result == 0 && mode & 2) note(PUNCH, inode_of(descriptor, NULL), 0, offset, length, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int fallocate64(int descriptor, int mode, off_t offset, off_t length) { return fallocate(descriptor, mode, offset, length); }

static int note_sync(int result, uint32_t kind, int descriptor) {
    if (result == 0) note(kind, inode_of(descriptor, NULL), 0, 0, 0, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int descriptor) {
    REAL(int, "fsync", int);
    pthread_mutex_lock(&lock);
    return note_sync(real(descriptor), SYNC, descriptor);
}
int fdatasync(int descriptor) {
    REAL(int, "fdatasync", int);
    pthread_mutex_lock(&lock);
    return note_sync(real(descriptor), SYNC, descriptor);
}
int syncfs(int descriptor) {
    pthread_mutex_lock(&lock);
    return note_sync(0, SYNC_ALL, descriptor);
}

static int do_open(int directory, const char *path, int flags, mode_t mode) {
    pthread_mutex_lock(&lock);
    struct stat status;
    int is_new = flags & O_CREAT && fstatat(directory, path, &status, 0) != 0;
    int descriptor = (int)syscall(SYS_openat, directory, path, flags, mode);
    if (descriptor >= 0) {
        mode_t kind = 0;
        uint64_t inode = inode_of(descriptor, &kind);
        const char *name;
        if (is_new) {
            uint64_t parent = parent_of(directory, path, &name);
            note(CREATE, inode, parent, 0, 0, name, NULL, NULL, 0);
        } else if (flags & O_TRUNC && S_ISREG(kind)) {
            note(TRUNCATE, inode, 0, 0, 0, NULL, NULL, NULL, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return descriptor;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }
int open(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) return do_open(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) return do_open(directory, path, flags, mode); }

static int do_mkdir(int directory, const char *path, mode_t mode) {
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_mkdirat, directory, path, mode);
    struct stat status;
    const char *name;
    if (result == 0 && fstatat(directory, path, &status, 0) == 0) {
        uint64_t parent = parent_of(directory, path, &name);
        note(MAKE_DIRECTORY, status.st_ino, parent, 0, 0, name, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int mkdir(const char *path, mode_t mode) { return do_mkdir(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return do_mkdir(directory, path, mode); }

static int do_unlink(int directory, const char *path, int flags) {
    pthread_mutex_lock(&lock);
    const char *name;
    uint64_t parent = parent_of(directory, path, &name);
    int result = (int)syscall(SYS_unlinkat, directory, path, flags);
    if (result == 0) note(flags & AT_REMOVEDIR ? REMOVE_DIRECTORY : UNLINK, 0, parent, 0, 0, name, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int unlink(const char *path) { return do_unlink(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return do_unlink(directory, path, flags); }
int rmdir(const char *path) { return do_unlink(AT_FDCWD, path, AT_REMOVEDIR); }

static int do_rename(int from, const char *path, int to, const char *target) {
    pthread_mutex_lock(&lock);
    const char *first, *second;
    uint64_t source = parent_of(from, path, &first), parent = parent_of(to, target, &second);
    int result = (int)syscall(SYS_renameat2, from, path, to, target, 0);
    if (result == 0) note(RENAME, source, parent, 0, 0, first, second, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int rename(const char *path, const char *target) { return do_rename(AT_FDCWD, path, AT_FDCWD, target); }
int renameat(int from, const char *path, int to, const char *target) { return do_rename(from, path, to, target); }

static int do_link(int from, const char *path, int to, const char *target, int flags) {
    pthread_mutex_lock(&lock);
    struct stat status;
    int result = (int)syscall(SYS_linkat, from, path, to, target, flags);
    const char *name;
    if (result == 0 && fstatat(to, target, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        uint64_t parent = parent_of(to, target, &name);
        note(LINK, status.st_ino, parent, 0, 0, name, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int link(const char *path, const char *target) { return do_link(AT_FDCWD, path, AT_FDCWD, target, 0); }
int linkat(int from, const char *path, int to, const char *target, int flags) { return do_link(from, path, to, target, flags); }
