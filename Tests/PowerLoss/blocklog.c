// A file system of two files (FUSE, Linux) that logs the writes and flushes that a disk receives, in their order. Used by
// `tools/torture power-loss --blocks`.
//
//     blocklog IMAGE LOG MOUNTPOINT
//
// `disk`: the bytes of IMAGE. A loop device on it carries the file system that is tested. The kernel sends a flush of that
// device as fsync(2), which is logged and does nothing else: the reader of the log decides what a flush keeps.
// `said`: lines appended to it are logged among the writes, and kept nowhere else. A line that a worker writes after fsync(2) has
// returned comes after the flush, and one that it writes before an operation comes before all writes of that operation.
//
// One thread, so that the log has one order. It ends when it is unmounted.

#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, FLUSH, SAID };

struct record {
    uint32_t kind, length;
    uint64_t offset;
};

static int image, log_file;

static void note(uint32_t kind, const char *data, size_t length, off_t offset) {
    struct record record = {kind, (uint32_t)length, (uint64_t)offset};
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)data, length}};
    // A log with a gap would tell of disks that cannot be.
    if (writev(log_file, parts, 2) != (ssize_t)(sizeof record + length)) abort();
}

static int is_disk(const char *path) { return strcmp(path, "/disk") == 0; }
static int is_said(const char *path) { return strcmp(path, "/said") == 0; }

static int get_attributes(const char *path, struct stat *status, struct fuse_file_info *info) {
    (void)info;
    memset(status, 0, sizeof *status);
    status->st_nlink = 1;
    status->st_mode = S_IFREG | 0600;
    if (is_disk(path)) return fstat(image, status) == 0 ? 0 : -errno;
    if (is_said(path)) return 0;
    if (strcmp(path, "/") != 0) return -ENOENT;
    status->st_mode = S_IFDIR | 0700;
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *info) {
    if (!is_disk(path) && !is_said(path)) return -ENOENT;
    // Nothing waits in the page cache: each write is here before the call that makes it returns.
    info->direct_io = 1;
    return 0;
}

static int read_file(const char *path, char *data, size_t length, off_t offset, struct fuse_file_info *info) {
    (void)info;
    if (!is_disk(path)) return 0;
    ssize_t count = pread(image, data, length, offset);
    return count < 0 ? -errno : (int)count;
}

static int write_file(const char *path, const char *data, size_t length, off_t offset, struct fuse_file_info *info) {
    (void)info;
    if (is_said(path)) {
        note(SAID, data, length, 0);
        return (int)length;
    }
    note(WRITE, data, length, offset);
    ssize_t count = pwrite(image, data, length, offset);
    return count < 0 ? -errno : (int)count;
}

static int sync_file(const char *path, int is_data_only, struct fuse_file_info *info) {
    (void)is_data_only, (void)info;
    if (is_disk(path)) note(FLUSH, NULL, 0, 0);
    return 0;
}

// Opening `said` as a new file for output truncates it.
static int truncate_file(const char *path, off_t length, struct fuse_file_info *info) {
    (void)length, (void)info;
    return is_said(path) ? 0 : -EPERM;
}

int main(int count, char **words) {
    if (count != 4) return 64;
    image = open(words[1], O_RDWR | O_CLOEXEC);
    log_file = open(words[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (image < 0 || log_file < 0) return perror("blocklog"), 1;
    static const struct fuse_operations operations = {
        .getattr = get_attributes, .open = open_file, .read = read_file, .write = write_file, .fsync = sync_file,
        .truncate = truncate_file,
    };
    char *arguments[] = {words[0], "-f", "-s", words[3], NULL};
    return fuse_main(4, arguments, &operations, NULL);
}
