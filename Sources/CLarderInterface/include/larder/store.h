/* Part of larder.h: opening and closing a store, its budget and its statistics, and keeping it in order. */
#ifndef LARDER_STORE_H
#define LARDER_STORE_H

#include <larder/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of larder_options.flags. */
enum {
    /* Opens an existing store without changing it. */
    LARDER_OPEN_READ_ONLY = 1,
    /* Changes survive power loss when their call returns, unless it says otherwise. Default: relaxed. */
    LARDER_OPEN_DURABLE = 2,
    /* Opens a store whose directory belongs to another user, neither root nor the one who runs the process. */
    LARDER_OPEN_OTHER_OWNER = 4,
    /* Looks at every page of the index first: about a second for a million entries. */
    LARDER_OPEN_CHECK_INDEX = 8,
    /* Compares every body with its digest when it is read: 0.6 ms a MiB. Default: after an unclean shutdown. */
    LARDER_OPEN_VERIFY_ALWAYS = 16,
    /*
     * Compares them in larder_check only, and in larder_list and larder_describe those that are part of their entries.
     * Not together with LARDER_OPEN_VERIFY_ALWAYS.
     */
    LARDER_OPEN_VERIFY_NEVER = 32,
    /*
     * Bodies that were read whole stay in memory, in what entries of LARDER_PUT_MEMORY_ONLY leave of memory_limit.
     * larder_body_bytes copies them then, rather than map their files.
     */
    LARDER_OPEN_KEEP_BODIES = 64,
    /*
     * Bodies of 256 B to 16 MiB are stored compressed, as gzip members, where that saves an eighth or more. It makes
     * the store one of format 5, which earlier versions refuse. Each open store has its own choice.
     */
    LARDER_OPEN_COMPRESS = 128
};

/*
 * The key of an encrypted store: 32 bytes that no one can guess, or a passphrase. Nothing is kept of it once the call
 * has returned.
 */
typedef struct larder_key {
    size_t size;
    /* 32 bytes. NULL: the key is the passphrase. */
    const void *bytes;
    size_t length;
    /* 1 to 1,024 bytes of UTF-8, which become a key slowly (scrypt, RFC 7914): some 0.2 s. NULL: the key is `bytes`. */
    const char *passphrase;
} larder_key;

/*
 * How a store is opened. Stores of one directory in one process share the engine: an open that asks for another
 * LARDER_OPEN_READ_ONLY, LARDER_OPEN_VERIFY_..., LARDER_OPEN_KEEP_BODIES, expired_retention, commit_delay, memory_limit or index_map_size than
 * an open store has is LARDER_LOCKED.
 */
typedef struct larder_options {
    size_t size;
    /* LARDER_OPEN_... */
    uint32_t flags;
    /* Must be 0. */
    uint32_t reserved;
    /*
     * Limits. All four 0: those that the store has; a new store has no limits. Otherwise they replace the limits of
     * the store for every process, and a 0 among them means no limit.
     */
    /* Bytes allocated on disk, index included: at least 1 MiB (4 MiB where a page has 16 KiB). */
    uint64_t budget_bytes;
    /* Number of entries. */
    uint64_t budget_entries;
    /* Bytes of the largest body. 0: half of what budget_bytes leaves for entries. */
    uint64_t largest_entry;
    /* Bytes that must stay free on the file system. */
    uint64_t free_disk_floor;
    /* How long entries are fresh that are put without a lifetime. 0: without end. */
    int64_t default_lifetime;
    /* The longest lifetime that an entry gets. 0: no ceiling. */
    int64_t maximum_lifetime;
    /* How long an expired entry is kept for LARDER_GET_EXPIRED. 0: one minute. Less than 0: not at all. */
    int64_t expired_retention;
    /* How long a relaxed put may wait for others to share its commit. 0: 10 ms. */
    int64_t commit_delay;
    /* Bodies up to this length, at most 1 MiB, are stored in the index. 0: 256 KiB. LARDER_UNLIMITED: only empty ones are. */
    uint64_t inline_threshold;
    /* Memory for entries of LARDER_PUT_MEMORY_ONLY, and for bodies with LARDER_OPEN_KEEP_BODIES. 0: 16 MiB. */
    uint64_t memory_limit;
    /* The most address space that the index may take, 1 MiB or more. 0: 1 TiB. */
    uint64_t index_map_size;
    /* The application's version, 1 to 200 bytes: entries of another version are not found. NULL: every version is. */
    const char *version;
    /*
     * Bodies up to this length, at most 2 KiB, are part of the record of their entry, if both fit half a page of the
     * index: for example, a body of 1,944 bytes fits with a key of 20 bytes and no tags, metadata or lifetime. Such a
     * body is not shared, and a lookup by its digest is slow unless its key is "sha256:" and the 64 hexadecimal digits
     * of the digest. 0: 512 bytes. LARDER_UNLIMITED: none is.
     */
    uint64_t embedding_threshold;
    /*
     * The key of an encrypted store. A store is encrypted if it is made with a key, and then needs it at every open:
     * LARDER_WRONG_KEY otherwise. NULL: not encrypted.
     */
    const larder_key *key;
} larder_options;

/*
 * Opens the store in the directory `path`, and creates it and its parents if they are missing. `options` may be NULL:
 * the defaults. Waits for the disk.
 *
 * On success *store is a handle that the caller ends with larder_close(). Otherwise *store is NULL.
 *
 * Errors: LARDER_INVALID_ARGUMENT (a file in the way, values out of range), LARDER_FORMAT_MISMATCH,
 * LARDER_WRONG_KEY, LARDER_CORRUPTION, LARDER_IO, LARDER_LOCKED, LARDER_NO_SPACE. After LARDER_NO_SPACE the limits of `options` are those
 * of the store all the same, and entries may have been displaced for them, as with larder_set_budget().
 */
larder_status larder_open(const char *path, const larder_options *options, larder_store **store);

/*
 * Changes the key that opens the encrypted store in `path`. What is stored stays as it is, so this takes no longer for a
 * large store, and the store may be open meanwhile. Someone with the old key and an old copy of the file `encryption`
 * can still read the store.
 *
 * Errors: LARDER_WRONG_KEY (not its key, or it is not encrypted), LARDER_INVALID_ARGUMENT (there is no store),
 * LARDER_CORRUPTION, LARDER_IO, LARDER_NO_SPACE. The old key opens the store then.
 */
larder_status larder_change_key(const char *path, const larder_key *old_key, const larder_key *new_key);

/*
 * Commits what is pending and closes the store. Waits for the disk, and for nothing else: calls of other threads that
 * have begun end as they can, later ones return LARDER_CLOSED. NULL does nothing.
 *
 * The handle is over whatever is returned. An error tells of relaxed puts and removals that could not be committed.
 */
larder_status larder_close(larder_store *store);

/*
 * Commits everything put and removed so far by this process, and syncs the index. With `durable` other than 0 bodies in
 * files survive power loss as well. An error tells of relaxed puts and removals that could not be committed.
 */
larder_status larder_flush(larder_store *store, int durable);

/*
 * Removes every entry at once, pinned ones and those of every application version too. `count`, which may be NULL,
 * gets how many there were.
 */
larder_status larder_clear(larder_store *store, uint64_t *count);

/* The limits of a store. LARDER_UNLIMITED: none. */
typedef struct larder_budget {
    size_t size;
    /* Bytes allocated on disk, index included. */
    uint64_t bytes;
    /* Number of entries. */
    uint64_t entries;
    /* Bytes of the largest body. 0: half of what bytes leaves for entries. */
    uint64_t largest_entry;
    /* Bytes that must stay free on the file system. 0: none. */
    uint64_t free_disk_floor;
} larder_budget;

/* The limits in force, which another process may have changed. Set budget->size before. */
larder_status larder_get_budget(larder_store *store, larder_budget *budget);

/*
 * Changes all limits, for every process, and displaces entries until they hold. bytes and entries of 0 mean no limit.
 * LARDER_NO_SPACE: they are set, but what is pinned or leased exceeds them.
 */
larder_status larder_set_budget(larder_store *store, const larder_budget *budget);

/* The size and activity of a store. */
typedef struct larder_statistics {
    size_t size;
    /* Entries on disk; bodies, shared ones once, each that is part of its entry for itself. */
    uint64_t entries, blobs;
    /* Sum over the entries of the lengths of their bodies; the bytes stored for them, those of shared bodies once. */
    uint64_t logical_bytes, stored_bytes;
    /* Bytes allocated on disk by all files of the store; the part of it that is the index. */
    uint64_t allocated_bytes, index_bytes;
    /* The byte budget in force; LARDER_UNLIMITED: none. */
    uint64_t budget_bytes;
    /* Lookups by all processes that found an entry, and that found none, since `counted_since`. */
    uint64_t hits, misses;
    /* Bytes of the bodies that were found; bodies put, and their bytes. */
    uint64_t bytes_read, puts, bytes_written;
    /* Entries removed by calls, and entries displaced. */
    uint64_t removed, displaced;
    /* Entries and bytes of LARDER_PUT_MEMORY_ONLY in this process, which nothing else counts. */
    uint64_t memory_entries, memory_bytes;
    /* The moment at which counting began. */
    int64_t counted_since;
    /* Bodies in memory by LARDER_OPEN_KEEP_BODIES in this process, and what they take. */
    uint64_t held_bodies, held_bytes;
    /* How often this process looked for a body there and found it, and did not. */
    uint64_t held_hits, held_misses;
    /* Bytes that compression saves: the lengths of different bodies less what is stored for them. */
    uint64_t compression_gain;
} larder_statistics;

/* The size of the store, exact: commits first what this process has pending. Set statistics->size before. */
larder_status larder_get_statistics(larder_store *store, larder_statistics *statistics);

/* What a collection found and did so far. */
typedef struct larder_collection {
    size_t size;
    /* Entries removed because they had expired, to keep the budget, and because they are of another version. */
    uint64_t expired, displaced, other_versions;
    /* Files without an entry, files of processes that died, and entries without a body. */
    uint64_t orphans, stale_files, dangling;
    /* Bytes allocated before and after; after is 0 until the end. */
    uint64_t allocated_before, allocated_after;
} larder_collection;

/* Bits of the flags of larder_collect. */
enum {
    /* Only counts; nothing changes. */
    LARDER_COLLECT_DRY_RUN = 1,
    /* Gives back every free page of the index instead of only long runs of them. */
    LARDER_COLLECT_COMPACT = 2
};

/*
 * Called at each step of a collection ("sweep", "expired", "versions", "dangling", "orphans", "displace", "compact")
 * and while it runs. `step` and `so_far` are valid inside the call. Returns 0 to continue, anything else to stop.
 */
typedef int (*larder_collect_progress)(void *context, const char *step, const larder_collection *so_far);

/*
 * Puts the store in order while others use it: removes what expired, what dead processes left, files without an entry
 * and entries without a body, displaces to the budget, and gives free pages of the index back. `progress` and `result`
 * may be NULL; set result->size before. LARDER_STOPPED if `progress` asked for it.
 */
larder_status larder_collect(
    larder_store *store, uint32_t flags, larder_collect_progress progress, void *context, larder_collection *result);

/* Bits of the flags of larder_check. */
enum {
    /* Repairs what it finds: damaged entries become misses. */
    LARDER_CHECK_REPAIR = 1,
    /* Leaves out the comparison of every body with its digest, which takes most of the time. */
    LARDER_CHECK_INDEX_ONLY = 2
};

/*
 * Called for each violation found, at most 1,000 times, when the check is over. `violation` is text, valid inside the
 * call. Returns 0 to continue, anything else to stop.
 */
typedef int (*larder_check_report)(void *context, const char *violation, int is_repaired);

/*
 * Verifies the store while others use it. `report`, `violations` and `repaired` may be NULL; the last two get how many
 * violations there are and how many of them were repaired. LARDER_OK also if there are violations.
 */
larder_status larder_check(
    larder_store *store, uint32_t flags, larder_check_report report, void *context, uint64_t *violations,
    uint64_t *repaired);

#ifdef __cplusplus
}
#endif

#endif
