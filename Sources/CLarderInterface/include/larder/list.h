/* Part of larder.h: describing, listing and removing many entries. */
#ifndef LARDER_LIST_H
#define LARDER_LIST_H

#include <larder/read.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of larder_item.flags. */
enum {
    /* Displacement passes the entry by: pinned itself, or through one of its tags. */
    LARDER_ITEM_PINNED = 1,
    /* The body is stored in the index, not in a file. */
    LARDER_ITEM_INLINE = 2,
    /* The entry is removed when the store is closed. */
    LARDER_ITEM_SESSION = 4,
    /* The entry is in the memory of this process only. */
    LARDER_ITEM_MEMORY_ONLY = 8
};

/* What is known of an entry, except its body. The library owns all of it: valid inside the callback that gets it. */
typedef struct larder_item {
    /* Bytes of the structure that the library filled. */
    size_t size;
    /* LARDER_ITEM_... */
    uint32_t flags;
    uint32_t reserved;
    const void *key;
    size_t key_length;
    const void *metadata;
    size_t metadata_length;
    const char *const *tags;
    size_t tag_count;
    /* SHA-256 of the body, and its length. */
    uint8_t digest[LARDER_DIGEST_LENGTH];
    uint64_t length;
    /*
     * Entries that share the body; 1 for a body that is part of its entry (`embedding_threshold`). 0 where it was not
     * looked up: in larder_body_describe().
     */
    uint64_t references;
    /* Hits since it was put. */
    uint64_t hits;
    /* Moments: the key was first put, the body was put, the latest access, the end of freshness or LARDER_NEVER. */
    int64_t created, stored, accessed, expires;
} larder_item;

/* Gets an entry. Returns 0 to continue, anything else to stop. */
typedef int (*larder_item_callback)(void *context, const larder_item *item);

/*
 * Calls `callback` once with the entry under a key, expired or not. LARDER_ABSENT if there is none. Not an access.
 * Waits for the commit of what this process has pending. What `callback` returns has no effect.
 */
larder_status larder_describe(
    larder_store *store, const void *key, size_t key_length, larder_item_callback callback, void *context);

/* Calls `callback` once with the entry that a body was looked up as. LARDER_ABSENT for one of larder_get_content(). */
larder_status larder_body_describe(larder_body *body, larder_item_callback callback, void *context);

/* Bits of larder_selection.flags. */
enum {
    /* Entries that are no longer fresh; pinned ones are left out. */
    LARDER_SELECT_EXPIRED = 1,
    /* Entries that displacement passes by. */
    LARDER_SELECT_PINNED = 2,
    /* Entries that it does not. */
    LARDER_SELECT_UNPINNED = 4,
    /* Entries of other application versions instead of the store's own. */
    LARDER_SELECT_OTHER_VERSIONS = 8
};

/* Which entries: those for which everything that is set is true. Nothing set: every entry. */
typedef struct larder_selection {
    size_t size;
    /* LARDER_SELECT_... */
    uint32_t flags;
    /* Must be 0. */
    uint32_t reserved;
    /* The first bytes of the key. */
    const void *prefix;
    size_t prefix_length;
    /* A tag, and the host of keys that are URLs. NULL: any. */
    const char *tag;
    const char *host;
    /* SHA-256 of the body. NULL: any. */
    const void *digest;
    size_t digest_length;
    /* Bodies of this length or more. */
    uint64_t at_least;
    /* Put before a moment, and neither put nor read since a moment. 0: at any time. */
    int64_t stored_before;
    int64_t unused_since;
} larder_selection;

/*
 * Calls `callback` with each selected entry, in the order of their keys; those with a tag in the order in which their
 * keys were first put. Memory stays bounded; entries that others put or remove meanwhile may be seen or not. Waits for
 * the commit of what this process has pending. `selection` may be NULL: every entry. LARDER_STOPPED if `callback`
 * asked for it.
 */
larder_status larder_list(
    larder_store *store, const larder_selection *selection, larder_item_callback callback, void *context);

/*
 * Removes the selected entries, pinned ones too, in small batches that let others write in between. `count`, which may
 * be NULL, gets how many. `selection` may not be NULL: larder_clear() removes everything.
 */
larder_status larder_remove_selected(larder_store *store, const larder_selection *selection, uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
