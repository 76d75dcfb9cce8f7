/* Part of larder.h: storing entries. */
#ifndef LARDER_WRITE_H
#define LARDER_WRITE_H

#include <larder/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of larder_put_options.flags. */
enum {
    /* The call returns when the entry survives power loss. Default: as the store was opened. */
    LARDER_PUT_DURABLE = 1,
    /* The call returns when this process sees the entry. Not together with LARDER_PUT_DURABLE. */
    LARDER_PUT_RELAXED = 2,
    /* Keeps the entry out of displacement. */
    LARDER_PUT_PINNED = 4,
    /* The entry is removed when the store is closed, or at the next open if the process died. */
    LARDER_PUT_SESSION = 8,
    /* The entry is never written to disk, and only this process sees it. Not with LARDER_PUT_SESSION or ..._DURABLE. */
    LARDER_PUT_MEMORY_ONLY = 16,
    /* The body is stored compressed where that saves an eighth or more, as with LARDER_OPEN_COMPRESS. */
    LARDER_PUT_COMPRESS = 32,
    /* The body is stored as it is, whatever the store does by default. Not together with LARDER_PUT_COMPRESS. */
    LARDER_PUT_PLAIN = 64
};

/* What to keep with a body. */
typedef struct larder_put_options {
    size_t size;
    /* LARDER_PUT_... */
    uint32_t flags;
    /* Must be 0. */
    uint32_t reserved;
    /* How long the entry is fresh. 0: as the store was opened. LARDER_NEVER: without end. Less than 0: not at all. */
    int64_t lifetime;
    /* The moment at which it stops being fresh, instead of `lifetime`, which must be 0 then. 0: not used. */
    int64_t expires;
    /* Bytes of the caller's own, at most 1 MiB. */
    const void *metadata;
    size_t metadata_length;
    /* Names shared with other entries: at most 4,096 of 1 to 200 bytes, 32,768 bytes together. */
    const char *const *tags;
    size_t tag_count;
    /* The SHA-256 that the body is declared to have. NULL: not known. */
    const void *digest;
    size_t digest_length;
} larder_put_options;

/*
 * Stores a body under a key, and replaces what was there. Readers of this process see it at once. `options` may be
 * NULL. `digest`, which may be NULL, gets the SHA-256 of the body: LARDER_DIGEST_LENGTH bytes.
 *
 * A relaxed put that cannot be committed later is reported by larder_flush() and larder_close(). Waits while much is
 * pending, and for the disk with a body in a file.
 *
 * Errors: LARDER_TOO_LARGE, LARDER_DIGEST_MISMATCH, LARDER_NO_SPACE.
 */
larder_status larder_put(
    larder_store *store, const void *key, size_t key_length, const void *body, size_t body_length,
    const larder_put_options *options, void *digest);

/*
 * As larder_put, unless there is a fresh entry under the key: then LARDER_PRESENT, and it stays. Of several threads and
 * processes that put at the same moment one gets LARDER_OK. Waits for the commit. LARDER_PUT_MEMORY_ONLY is
 * LARDER_INVALID_ARGUMENT.
 */
larder_status larder_put_if_absent(
    larder_store *store, const void *key, size_t key_length, const void *body, size_t body_length,
    const larder_put_options *options);

/*
 * As larder_put under the key of `expected`, which larder_get returned, if the entry still has its body and its
 * metadata: compare and set. Otherwise LARDER_CHANGED or LARDER_ABSENT. Does not look at lifetimes. Waits for the
 * commit. LARDER_PUT_MEMORY_ONLY is LARDER_INVALID_ARGUMENT, and so is a body without an entry.
 */
larder_status larder_put_if_unchanged(
    larder_store *store, larder_body *expected, const void *body, size_t body_length,
    const larder_put_options *options);

/* Bodies that come in pieces, or do not fit memory. */

/* A length that is not known. */
#define LARDER_LENGTH_UNKNOWN UINT64_MAX

/*
 * Begins a body. `length` is the one it will have, whose room is reserved at once, or LARDER_LENGTH_UNKNOWN. `options`
 * may be NULL. *writer is a handle that larder_writer_commit() or larder_writer_cancel() ends. Otherwise *writer is
 * NULL. Errors: LARDER_TOO_LARGE.
 */
larder_status larder_writer_open(
    larder_store *store, const void *key, size_t key_length, uint64_t length, const larder_put_options *options,
    larder_writer **writer);

/*
 * Appends bytes. After an error other than LARDER_INVALID_ARGUMENT the writer stores nothing any more, and its calls
 * return LARDER_CLOSED; it still has to be ended.
 * Errors: LARDER_LENGTH_MISMATCH (more than declared), LARDER_TOO_LARGE, LARDER_NO_SPACE, LARDER_CLOSED.
 */
larder_status larder_writer_write(larder_writer *writer, const void *bytes, size_t length);

/*
 * Stores what was written. `digest`, which may be NULL, gets its SHA-256: LARDER_DIGEST_LENGTH bytes. The handle is
 * over whatever is returned, and after an error nothing is stored.
 * Errors: LARDER_LENGTH_MISMATCH (fewer than declared), LARDER_DIGEST_MISMATCH, and those of larder_put.
 */
larder_status larder_writer_commit(larder_writer *writer, void *digest);

/* Ends a writer and drops what was written. NULL does nothing. */
larder_status larder_writer_cancel(larder_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
