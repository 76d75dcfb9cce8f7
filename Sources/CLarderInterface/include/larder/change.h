/* Part of larder.h: changing and removing entries, pins of tags, and batches. */
#ifndef LARDER_CHANGE_H
#define LARDER_CHANGE_H

#include <larder/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of larder_change.fields: what is changed. */
enum {
    LARDER_CHANGE_LIFETIME = 1,
    LARDER_CHANGE_METADATA = 2,
    LARDER_CHANGE_TAGS = 4,
    /* Keeps the entry out of displacement. */
    LARDER_CHANGE_PIN = 8,
    /* Takes the pin back. Not together with LARDER_CHANGE_PIN. */
    LARDER_CHANGE_UNPIN = 16,
    /* Counts as an access. */
    LARDER_CHANGE_ACCESS = 32
};

/* What to change of an entry; the rest, and its body, stay. */
typedef struct larder_entry_change {
    size_t size;
    /* LARDER_CHANGE_... */
    uint32_t fields;
    /* Must be 0. */
    uint32_t reserved;
    /* From the commit on; as in larder_put_options. */
    int64_t lifetime;
    int64_t expires;
    /* Replaces the metadata: at most 1 MiB. */
    const void *metadata;
    size_t metadata_length;
    /* Replaces all tags. */
    const char *const *tags;
    size_t tag_count;
} larder_entry_change;

/* Changes the entry under a key. LARDER_ABSENT if there is none. Waits for the commit that it joins. */
larder_status larder_change(
    larder_store *store, const void *key, size_t key_length, const larder_entry_change *change);

/*
 * Counts as an access of an entry and gives it a new lifetime, as in larder_put_options, unless that is 0.
 * LARDER_ABSENT if there is none. Waits for the commit that it joins.
 */
larder_status larder_touch(larder_store *store, const void *key, size_t key_length, int64_t lifetime);

/* Removes an entry. LARDER_ABSENT if there was none. Readers of this process see it gone at once. */
larder_status larder_remove(larder_store *store, const void *key, size_t key_length);

/*
 * Removes the entry of `expected`, which larder_get returned, if it still has its body and its metadata. Otherwise
 * LARDER_CHANGED or LARDER_ABSENT. Of several callers that remove it one gets LARDER_OK. Waits for the commit.
 */
larder_status larder_remove_if_unchanged(larder_store *store, larder_body *expected);

/*
 * Keeps every entry with a tag out of displacement, those put later too, in every process. `count`, which may be NULL,
 * gets how many entries have it now.
 */
larder_status larder_pin_tag(larder_store *store, const char *tag, uint64_t *count);

/* Takes larder_pin_tag() back. A tag that is not pinned is not an error. */
larder_status larder_unpin_tag(larder_store *store, const char *tag, uint64_t *count);

/* Batches: changes that become visible together, and that a crash keeps all of or none. */

/* Makes an empty batch. *batch is a handle that larder_batch_release() ends. */
larder_status larder_batch_create(larder_batch **batch);

/*
 * Adds a put. The body is copied. With `if_absent` other than 0 a fresh entry stays. The durability is that of the
 * write.
 */
larder_status larder_batch_put(
    larder_batch *batch, const void *key, size_t key_length, const void *body, size_t body_length,
    const larder_put_options *options, int if_absent);

/* Adds a change of the entry under a key. */
larder_status larder_batch_change(
    larder_batch *batch, const void *key, size_t key_length, const larder_entry_change *change);

/* Adds a removal. */
larder_status larder_batch_remove(larder_batch *batch, const void *key, size_t key_length);

/*
 * Writes the operations in one commit, in the order in which they were added. The batch stays as it is and may be
 * written again. At most 16,384 operations.
 *
 * `results`, which may be NULL if `capacity` is 0, gets a status for each operation: LARDER_OK, LARDER_PRESENT,
 * LARDER_ABSENT or an error. An operation that cannot be done leaves the others alone. LARDER_SHORT if `capacity` is
 * neither 0 nor at least the number of operations: nothing is written then. Without results, the error of the first
 * operation that failed is returned; the others are done. Otherwise an error means that none of the batch is in the
 * store.
 */
larder_status larder_batch_write(
    larder_store *store, larder_batch *batch, int durable, larder_status *results, size_t capacity);

/* Releases a batch. NULL does nothing. */
larder_status larder_batch_release(larder_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
