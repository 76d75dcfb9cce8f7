#ifndef CLARDER_H
#define CLARDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Asks the processor to load the cache line at `address`, which may be any address. A hint; never fails.
static inline void clarder_prefetch(const void *address) { __builtin_prefetch(address, 0, 3); }

// Atomic words in memory shared between processes. Swift's `Atomic` owns its storage, so it cannot be laid over a
// mapped file; these four can. All are sequentially consistent.

uint64_t clarder_load(const uint64_t *word);
void clarder_store(uint64_t *word, uint64_t value);
uint64_t clarder_add(uint64_t *word, int64_t delta);
bool clarder_claim(uint64_t *word, uint64_t expected, uint64_t value);

// Counters: words in such memory that order nothing, so these are relaxed, and inlined for the sake of lookups.

/// The value of a counter.
static inline uint64_t clarder_count(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

/// Adds to a counter.
static inline void clarder_count_add(uint64_t *word, uint64_t delta) { (void)__atomic_fetch_add(word, delta, __ATOMIC_RELAXED); }

/// Adds to a counter that only one thread changes at a time: costs no more than a store to ordinary memory.
static inline void clarder_count_alone(uint64_t *word, uint64_t delta) {
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + delta, __ATOMIC_RELAXED);
}

#if defined(__linux__)

// A lock in a word of this process: 0 while it is free, 1 while it is held, 2 if others may wait as well. It has no owner,
// so it works in a child of fork(2), too. futex(2).

void clarder_lock_slowly(uint32_t *word);
void clarder_wake_one(uint32_t *word);

/// Takes the lock if it is free.
static inline bool clarder_try_lock(uint32_t *word) {
    uint32_t unlocked = 0;
    return __atomic_compare_exchange_n(word, &unlocked, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/// Takes the lock, and waits for it if it is held.
static inline void clarder_lock(uint32_t *word) {
    if (!clarder_try_lock(word)) clarder_lock_slowly(word);
}

/// Gives the lock back.
static inline void clarder_unlock(uint32_t *word) {
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) clarder_wake_one(word);
}

#endif

/// In a child of fork(2): makes Swift's runtime look up the number of this thread again. The runtime keeps the number for
/// its locks on what is made once (`swift_once`), and the thread that called fork(2) has another one in the child: a second
/// thread that wants the same would wait forever. Works where the runtime is linked statically, as tools/install-c does it;
/// otherwise the number is out of reach, and this does nothing.
void clarder_forget_thread(void);

/// A number that each thread has for itself, 0 at first: see `FirstRounds`.
int clarder_first_rounds(void);
void clarder_set_first_rounds(int rounds);

/// Counts a call of a function that has this number; false for those behind its first 10,000. Numbers that are equal modulo
/// 1,024 count together.
bool clarder_is_first_call(uint32_t function);

/// Whether the thread is in a call: see `FirstCalls`.
bool clarder_is_in_call(void);
void clarder_set_in_call(bool is_in_call);

/// Makes and opens a file of mode 0600 that no program started later inherits. `name` ends with `XXXXXX`, which is replaced.
/// Returns its descriptor, or -1 with `errno` set. mkostemp(3).
int clarder_make_temporary(char *name);

/// Releases the blocks behind `[offset, offset + length)` of a file without changing its length.
/// Returns 0, or -1 with `errno` set. fallocate(2) on Linux, fcntl(2) F_PUNCHHOLE on Darwin.
int clarder_punch_hole(int descriptor, int64_t offset, int64_t length);

/// Allocates blocks for `[offset, offset + length)` without changing the file's length. Darwin: as many as the file lacks of
/// them, behind those it has.
/// Returns 0, or -1 with `errno` set. fallocate(2) on Linux, fcntl(2) F_PREALLOCATE on Darwin.
int clarder_preallocate(int descriptor, int64_t offset, int64_t length);

/// Has an empty file overwritten where it is, on a file system that otherwise writes each change of a block to a new place.
/// Returns 0, or -1 with `errno` set. ioctl_iflags(2) FS_NOCOW_FL on Linux (btrfs); ENOTSUP on Darwin.
int clarder_write_in_place(int descriptor);

/// Makes `destination` share the blocks of `source`. Returns 0, or -1 with `errno` set (EOPNOTSUPP where the file
/// system cannot). ioctl_ficlone(2) on Linux, unsupported on Darwin through a descriptor.
int clarder_clone(int source, int destination);

/// Copies `length` bytes from the start of `source` to the start of `destination` inside the kernel.
/// Returns the number of bytes copied, or -1 with `errno` set. copy_file_range(2); -1/ENOSYS on Darwin.
int64_t clarder_copy_range(int source, int destination, int64_t offset, int64_t length);

/// Writes every dirty page of the file system behind `descriptor`, waits for it, and makes the drive keep it. Returns 0, or -1
/// with `errno` set. syncfs(2) on Linux, fsync_volume_np on Darwin, where sync(2) neither waits nor reaches the drive.
int clarder_sync_file_system(int descriptor);

/// Makes the drive keep the bytes of a file. Returns 0, or -1 with `errno` set. fdatasync(2) on Linux, fcntl(2) F_FULLFSYNC on
/// Darwin, where fsync(2) may leave them in the drive's cache; not every volume there offers it.
int clarder_sync_data(int descriptor);

/// Begins to write a file's dirty pages, without waiting. sync_file_range(2); no effect on Darwin.
void clarder_begin_writing(int descriptor);

/// Tells the kernel that a file's pages will not be needed again soon. posix_fadvise(2); no effect on Darwin.
void clarder_drop_pages(int descriptor, int64_t offset, int64_t length);

/// Asks for bytes of a file to be read into memory soon. posix_fadvise(2), fcntl(2) F_RDADVISE.
void clarder_read_ahead(int descriptor, int64_t offset, int64_t length);

/// A descriptor of a file without a name that holds `count` bytes and can no longer be changed; closed on exec. Returns -1 with
/// `errno` set. memfd_create(2) and F_ADD_SEALS on Linux; an unlinked temporary file, open for reading only, on Darwin.
int clarder_memory_file(const void *bytes, size_t count);

/// True on a file system of which `st_blocks` is what a file takes once it has been synced, and stays so: ext4, XFS, btrfs, tmpfs.
/// ZFS and network file systems tell it later, others may have one of those below them (overlayfs). statfs(2).
bool clarder_blocks_are_final(int descriptor);

/// False if a file has nothing but a hole in these bytes; true where that is not known. Moves the descriptor's position. lseek(2),
/// SEEK_DATA.
bool clarder_has_data(int descriptor, int64_t offset, int64_t length);

/// True on a file system that allocates blocks beyond the end of a file that grows, as many as the file has: XFS. statfs(2).
bool clarder_speculates(int descriptor);

/// How many processors the calling thread may use, and with it the threads that it starts: fewer than the machine has where
/// taskset(1) or the cpuset of a container says so. A quota of time does not count. At least 1. sched_getaffinity(2), sysconf(3).
int clarder_processors(void);

/// Takes from the memory of this process the code and read-only tables of the program and its libraries: what is used again comes
/// back from the page cache. Leaves pages that differ from the file: relocations, breakpoints, probes. Gives freed memory back,
/// too. Returns how many bytes of files it took. dl_iterate_phdr(3), proc_pid_pagemap(5), madvise(2) MADV_DONTNEED,
/// malloc_trim(3) of glibc; 0 and no effect on Darwin.
int64_t clarder_release_startup_memory(void);

#endif
