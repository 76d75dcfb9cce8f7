#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdatomic.h>
#include "clarder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <link.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <malloc.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

uint64_t clarder_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

void clarder_store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

uint64_t clarder_add(uint64_t *word, int64_t delta) {
    return __atomic_add_fetch(word, (uint64_t)delta, __ATOMIC_SEQ_CST);
}

bool clarder_claim(uint64_t *word, uint64_t expected, uint64_t value) {
    return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#ifdef __linux__

void clarder_lock_slowly(uint32_t *word) {
    // Most locks are held for less than the time of a system call.
    for (int round = 0; round < 100; round++) {
        if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 && clarder_try_lock(word)) return;
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
    // A thread that takes it from here on does not know whether others wait, so it says so.
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void clarder_wake_one(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

#endif

#if defined(__linux__) && defined(LARDER_STATIC_RUNTIME)
// `tid` in `ulock_get_tid()`, swift/Threading/Impl/Linux/ulock.h.
extern _Thread_local pid_t swift_thread __asm__("_ZZN5swift14threading_impl5linux13ulock_get_tidEvE3tid");

void clarder_forget_thread(void) { swift_thread = 0; }
#else
void clarder_forget_thread(void) {}
#endif

static _Thread_local int first_rounds;

int clarder_first_rounds(void) { return first_rounds; }
void clarder_set_first_rounds(int rounds) { first_rounds = rounds; }

static _Atomic uint32_t calls[1024];

bool clarder_is_first_call(uint32_t function) {
    _Atomic uint32_t *count = &calls[function % 1024];
    if (atomic_load_explicit(count, memory_order_relaxed) >= 10000) return false;
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    return true;
}

static _Thread_local bool in_call;

bool clarder_is_in_call(void) { return in_call; }
void clarder_set_in_call(bool is_in_call) { in_call = is_in_call; }

int clarder_make_temporary(char *name) { return mkostemp(name, O_CLOEXEC); }

int clarder_punch_hole(int descriptor, int64_t offset, int64_t length) {
#ifdef __linux__
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
#else
    struct fpunchhole hole = {0, 0, offset, length};
    return fcntl(descriptor, F_PUNCHHOLE, &hole);
#endif
}

int clarder_preallocate(int descriptor, int64_t offset, int64_t length) {
#ifdef __linux__
    return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, length);
#else
    // F_PREALLOCATE adds to what the file has on disk, whatever the offset: only what is missing is asked for.
    struct stat status;
    if (fstat(descriptor, &status) != 0) return -1;
    int64_t missing = offset + length - (int64_t)status.st_blocks * 512;
    if (missing <= 0) return 0;
    fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, missing, 0};
    return fcntl(descriptor, F_PREALLOCATE, &store);
#endif
}

int clarder_write_in_place(int descriptor) {
#ifdef __linux__
    int flags = 0;
    if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return -1;
    flags |= FS_NOCOW_FL;
    return ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
#else
    (void)descriptor;
    errno = ENOTSUP;
    return -1;
#endif
}

int clarder_clone(int source, int destination) {
#ifdef __linux__
    return ioctl(destination, FICLONE, source);
#else
    (void)source;
    (void)destination;
    errno = ENOTSUP;
    return -1;
#endif
}

int64_t clarder_copy_range(int source, int destination, int64_t offset, int64_t length) {
#ifdef __linux__
    off_t from = offset, to = offset;
    return copy_file_range(source, &from, destination, &to, (size_t)length, 0);
#else
    (void)source;
    (void)destination;
    (void)offset;
    (void)length;
    errno = ENOSYS;
    return -1;
#endif
}

#ifdef __APPLE__
// unistd.h; the flags stand in sys/unistd.h.
extern int fsync_volume_np(int descriptor, int flags);
#ifndef SYNC_VOLUME_FULLSYNC
#define SYNC_VOLUME_FULLSYNC 0x01
#define SYNC_VOLUME_WAIT 0x02
#endif
#endif

int clarder_sync_file_system(int descriptor) {
#ifdef __linux__
    return syncfs(descriptor);
#else
    return fsync_volume_np(descriptor, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
#endif
}

int clarder_sync_data(int descriptor) {
#ifdef __linux__
    return fdatasync(descriptor);
#else
    return fcntl(descriptor, F_FULLFSYNC);
#endif
}

void clarder_begin_writing(int descriptor) {
#ifdef __linux__
    (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)descriptor;
#endif
}

void clarder_drop_pages(int descriptor, int64_t offset, int64_t length) {
#ifdef __linux__
    (void)posix_fadvise(descriptor, offset, length, POSIX_FADV_DONTNEED);
#else
    (void)descriptor;
    (void)offset;
    (void)length;
#endif
}

void clarder_read_ahead(int descriptor, int64_t offset, int64_t length) {
#ifdef __linux__
    (void)posix_fadvise(descriptor, offset, length, POSIX_FADV_WILLNEED);
#else
    struct radvisory advice = {offset, length > INT32_MAX ? INT32_MAX : (int)length};
    (void)fcntl(descriptor, F_RDADVISE, &advice);
#endif
}

bool clarder_blocks_are_final(int descriptor) {
#ifdef __linux__
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return false;
    switch ((unsigned long)status.f_type) {
    case EXT4_SUPER_MAGIC:
    case 0x58465342: /* XFS */
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
        return true;
    default:
        return false;
    }
#else
    (void)descriptor;
    return false;
#endif
}

bool clarder_has_data(int descriptor, int64_t offset, int64_t length) {
#ifdef __linux__
    off_t found = lseek(descriptor, offset, SEEK_DATA);
    return found < 0 ? errno != ENXIO : found < offset + length;
#else
    (void)descriptor, (void)offset, (void)length;
    return true;
#endif
}

bool clarder_speculates(int descriptor) {
#ifdef __linux__
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 && (unsigned long)status.f_type == 0x58465342; /* XFS */
#else
    (void)descriptor;
    return false;
#endif
}

/// Closes a descriptor after a failure; keeps `errno`.
static int fail(int descriptor) {
    int number = errno;
    close(descriptor);
    errno = number;
    return -1;
}

static int write_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t done = write(descriptor, bytes, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        bytes += done;
        count -= (size_t)done;
    }
    return 0;
}

int clarder_memory_file(const void *bytes, size_t count) {
#ifdef __linux__
    int descriptor = memfd_create("larder", MFD_CLOEXEC | MFD_ALLOW_SEALING);
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
    // A system may refuse memory files that could be executed (vm.memfd_noexec of Linux 6.3).
    if (descriptor < 0 && errno == EACCES) {
        descriptor = memfd_create("larder", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    }
    if (descriptor < 0) return -1;
    if (write_all(descriptor, bytes, count) != 0) return fail(descriptor);
    if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) return fail(descriptor);
    if (lseek(descriptor, 0, SEEK_SET) != 0) return fail(descriptor);
    return descriptor;
#else
    // An app in a sandbox may write to its own temporary directory only.
    char name[PATH_MAX];
    size_t length = confstr(_CS_DARWIN_USER_TEMP_DIR, name, sizeof name);
    if (length == 0 || length > sizeof name) strlcpy(name, "/tmp/", sizeof name);
    strlcat(name, "larder-XXXXXX", sizeof name);
    int writer = mkostemp(name, O_CLOEXEC);
    if (writer < 0) return -1;
    int reader = open(name, O_RDONLY | O_CLOEXEC);
    unlink(name);
    if (reader < 0) return fail(writer);
    if (write_all(writer, bytes, count) != 0) {
        fail(writer);
        return fail(reader);
    }
    close(writer);
    return reader;
#endif
}

int clarder_processors(void) {
#ifdef __linux__
    // The call fails on a machine with more processors than the set has room for.
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 1 ? (int)count : 1;
}

#ifdef __linux__

struct release {
    int pages;       // /proc/self/pagemap
    uintptr_t size;  // of a page
    int64_t released;
};

// Whether a page is the process's own, not the file's: the loader, a debugger or a probe wrote to it.
static bool is_own(uint64_t entry) {
    enum { is_present = 63, is_swapped = 62, is_of_file = 61 };
    return (entry >> is_swapped & 1) != 0 || ((entry >> is_present & 1) != 0 && (entry >> is_of_file & 1) == 0);
}

static void release_range(struct release *release, uintptr_t start, uintptr_t end) {
    enum { count = 512 };
    uint64_t entries[count];
    while (start < end) {
        size_t wanted = (end - start) / release->size;
        if (wanted > count) wanted = count;
        ssize_t bytes = pread(release->pages, entries, wanted * sizeof *entries, (off_t)(start / release->size * sizeof *entries));
        if (bytes < (ssize_t)sizeof *entries) return;
        const size_t known = (size_t)bytes / sizeof *entries;
        for (size_t index = 0; index < known; index++) {
            const size_t first = index;
            while (index < known && !is_own(entries[index])) index++;
            const size_t length = (index - first) * release->size;
            if (length == 0) continue;
            if (madvise((void *)(start + first * release->size), length, MADV_DONTNEED) == 0) release->released += (int64_t)length;
        }
        start += known * release->size;
    }
}

// Segments that cannot be written to. Not those that the loader writes to and protects then (RELRO): they may change meanwhile.
static int release_segments(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct release *release = context;
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[index];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) != 0) continue;
        const uintptr_t start = object->dlpi_addr + header->p_vaddr, end = start + header->p_filesz;
        release_range(release, start - start % release->size, end + (release->size - end % release->size) % release->size);
    }
    return 0;
}

#endif

int64_t clarder_release_startup_memory(void) {
    int64_t released = 0;
#ifdef __linux__
    struct release release = {open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), (uintptr_t)sysconf(_SC_PAGESIZE), 0};
    if (release.pages >= 0) {
        dl_iterate_phdr(release_segments, &release);
        close(release.pages);
    }
    released = release.released;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
#endif
    return released;
}
