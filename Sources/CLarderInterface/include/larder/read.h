/* Part of larder.h: looking up entries and reading their bodies. */
#ifndef LARDER_READ_H
#define LARDER_READ_H

#include <larder/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of the flags of larder_get and larder_read. */
enum {
    /* Finds an expired entry that is still there as well, for callers that can validate it. */
    LARDER_GET_EXPIRED = 1
};

/*
 * Looks up the entry under a key. Counts as an access. Takes about a microsecond; waits only for page faults in the
 * index, and for a body in a file that was written shortly before the machine went down.
 *
 * LARDER_OK: *body is a handle that the caller ends with larder_body_release(); it stays readable whatever happens to
 * the entry and the store. A large body keeps a file descriptor open. LARDER_ABSENT: a miss, *body is NULL.
 */
larder_status larder_get(
    larder_store *store, const void *key, size_t key_length, uint32_t flags, larder_body **body);

/*
 * As larder_get, by the SHA-256 of the body, under whatever key it is. Not an access. The body has neither metadata nor
 * anything else of an entry. Waits for the commit of what this process has pending. A small body (`embedding_threshold`)
 * is found by searching all entries, unless its key is "sha256:" and the 64 hexadecimal digits of its digest.
 */
larder_status larder_get_content(
    larder_store *store, const void *digest, size_t digest_length, larder_body **body);

/* LARDER_OK if larder_get would find an entry, else LARDER_ABSENT. Looks at the index only; not an access. */
larder_status larder_contains(larder_store *store, const void *key, size_t key_length);

/*
 * LARDER_OK if there is content with a digest, else LARDER_ABSENT. Waits for the commit of what is pending. Looks where
 * larder_get_content does.
 */
larder_status larder_contains_content(larder_store *store, const void *digest, size_t digest_length);

/* Memory of the caller, which a call fills. */
typedef struct larder_buffer {
    /* Where to write. May be NULL if `capacity` is 0. */
    void *data;
    /* Bytes there are. */
    size_t capacity;
    /* Out: bytes there would have to be. Written with LARDER_OK and LARDER_SHORT. */
    size_t length;
} larder_buffer;

/*
 * Looks up an entry and copies its body, and its metadata unless `metadata` is NULL, into the caller's memory in one
 * call without a handle: the fastest way to read a small body. Counts as an access.
 *
 * LARDER_OK: both are there. LARDER_SHORT: one of the buffers is too small; the lengths are set and the contents of
 * the buffers are unspecified. LARDER_ABSENT: a miss.
 */
larder_status larder_read(
    larder_store *store, const void *key, size_t key_length, uint32_t flags, larder_buffer *body,
    larder_buffer *metadata);

/* Bodies. */

/* The length of a body. */
larder_status larder_body_length(larder_body *body, uint64_t *length);

/*
 * The SHA-256 of a body: writes 32 bytes to `digest`. LARDER_SHORT if `capacity`, the room there, is less. Normally it is
 * that of the bytes that were put. For a body that is part of its entry (`embedding_threshold`) it is computed from the
 * bytes that were read, so it cannot show damage unless LARDER_OPEN_VERIFY_ALWAYS is set.
 */
larder_status larder_body_digest(larder_body *body, void *digest, size_t capacity);

/*
 * All bytes, in memory that the body owns: valid until larder_body_release(), the same for every call. *bytes may be
 * NULL for an empty body.
 *
 * A large body is not read but mapped (mmap(2), read-only): parts that are not touched cost nothing, and a page that
 * the disk cannot deliver ends the process with SIGBUS. Use larder_body_read() where that matters. LARDER_CORRUPTION
 * if the file is shorter than it should be.
 */
larder_status larder_body_bytes(larder_body *body, const void **bytes, size_t *length);

/* The metadata of the entry, in memory that the body owns: valid until larder_body_release(). Empty without entry. */
larder_status larder_body_metadata(larder_body *body, const void **metadata, size_t *length);

/*
 * Copies bytes from `offset` on into the caller's memory: streaming. *count gets how many were copied: fewer than
 * `capacity` only at the end of the body, 0 beyond it. May wait for the disk.
 */
larder_status larder_body_read(
    larder_body *body, uint64_t offset, void *buffer, size_t capacity, size_t *count);

/*
 * A file descriptor and the range of it that is the body: for sendfile(2), or for a child process. A small body is
 * copied to a memory file (memfd_create(2)) at the first call.
 *
 * The body owns the descriptor: valid until larder_body_release(). Do not write to it, move its position or close it;
 * read at offsets (pread(2)).
 */
larder_status larder_body_descriptor(larder_body *body, int *descriptor, uint64_t *offset, uint64_t *length);

/* Releases a body, and with it its bytes, metadata and descriptor. NULL does nothing. */
larder_status larder_body_release(larder_body *body);

#ifdef __cplusplus
}
#endif

#endif
