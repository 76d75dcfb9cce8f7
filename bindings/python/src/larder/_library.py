"""Finds liblarder and says what is in it.

In this order: the file that the environment variable LARDER_LIBRARY names; a file next to this module; what the loader
of the system finds (ld.so(8)). Nothing is compiled.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List

from cffi import FFI

from ._errors import error

ffi: Any = FFI()
# A part of larder.h. `char *` stands for `void *`, as cffi passes bytes for it without a copy.
ffi.cdef(
    """
typedef struct { size_t size; const char *bytes; size_t length; const char *passphrase; } larder_key;
typedef struct { size_t size; uint32_t flags; uint32_t reserved; uint64_t budget_bytes; uint64_t budget_entries;
    uint64_t largest_entry; uint64_t free_disk_floor; int64_t default_lifetime; int64_t maximum_lifetime;
    int64_t expired_retention; int64_t commit_delay; uint64_t inline_threshold; uint64_t memory_limit;
    uint64_t index_map_size; const char *version; uint64_t embedding_threshold; const larder_key *key; }
    larder_options;
typedef struct { void *data; size_t capacity; size_t length; } larder_buffer;
typedef struct { size_t size; uint32_t flags; uint32_t reserved; int64_t lifetime; int64_t expires;
    const void *metadata; size_t metadata_length; const char *const *tags; size_t tag_count; const void *digest;
    size_t digest_length; } larder_put_options;
typedef struct { size_t size; uint32_t fields; uint32_t reserved; int64_t lifetime; int64_t expires;
    const void *metadata; size_t metadata_length; const char *const *tags; size_t tag_count; } larder_entry_change;
typedef struct { size_t size; uint64_t entries, blobs, logical_bytes, stored_bytes, allocated_bytes, index_bytes,
    budget_bytes, hits, misses, bytes_read, puts, bytes_written, removed, displaced, memory_entries, memory_bytes;
    int64_t counted_since; uint64_t held_bodies, held_bytes, held_hits, held_misses,
    compression_gain; } larder_statistics;
typedef struct { size_t size; uint64_t bytes, entries, largest_entry, free_disk_floor; } larder_budget;
typedef struct { size_t size; uint64_t expired, displaced, other_versions, orphans, stale_files, dangling,
    allocated_before, allocated_after; } larder_collection;
typedef struct { size_t size; uint32_t flags; uint32_t reserved; const void *key; size_t key_length;
    const void *metadata; size_t metadata_length; const char *const *tags; size_t tag_count; uint8_t digest[32];
    uint64_t length; uint64_t references; uint64_t hits; int64_t created, stored, accessed, expires; } larder_item;
typedef struct { size_t size; uint32_t flags; uint32_t reserved; const void *prefix; size_t prefix_length;
    const char *tag; const char *host; const void *digest; size_t digest_length; uint64_t at_least;
    int64_t stored_before; int64_t unused_since; } larder_selection;

const char *larder_version(void);
const char *larder_error_message(void);
int larder_error_number(void);
int larder_open(const char *, const larder_options *, void **);
int larder_change_key(const char *, const larder_key *, const larder_key *);
int larder_close(void *);
int larder_flush(void *, int);
int larder_clear(void *, uint64_t *);
int larder_get_budget(void *, larder_budget *);
int larder_set_budget(void *, const larder_budget *);
int larder_get_statistics(void *, larder_statistics *);
int larder_collect(void *, uint32_t, void *, void *, larder_collection *);
int larder_check(void *, uint32_t, int (*)(void *, const char *, int), void *, uint64_t *, uint64_t *);
int larder_get(void *, const char *, size_t, uint32_t, void **);
int larder_contains(void *, const char *, size_t);
int larder_read(void *, const char *, size_t, uint32_t, larder_buffer *, larder_buffer *);
int larder_body_length(void *, uint64_t *);
int larder_body_bytes(void *, const void **, size_t *);
int larder_body_metadata(void *, const void **, size_t *);
int larder_body_read(void *, uint64_t, char *, size_t, size_t *);
int larder_body_release(void *);
int larder_put(void *, const char *, size_t, const char *, size_t, const larder_put_options *, void *);
int larder_put_if_absent(void *, const char *, size_t, const char *, size_t, const larder_put_options *);
int larder_put_if_unchanged(void *, void *, const char *, size_t, const larder_put_options *);
int larder_writer_open(void *, const char *, size_t, uint64_t, const larder_put_options *, void **);
int larder_writer_write(void *, const char *, size_t);
int larder_writer_commit(void *, void *);
int larder_writer_cancel(void *);
int larder_change(void *, const char *, size_t, const larder_entry_change *);
int larder_touch(void *, const char *, size_t, int64_t);
int larder_remove(void *, const char *, size_t);
int larder_remove_if_unchanged(void *, void *);
int larder_batch_create(void **);
int larder_batch_put(void *, const char *, size_t, const char *, size_t, const larder_put_options *, int);
int larder_batch_remove(void *, const char *, size_t);
int larder_batch_write(void *, void *, int, int *, size_t);
int larder_batch_release(void *);
int larder_describe(void *, const char *, size_t, int (*)(void *, const larder_item *), void *);
int larder_body_describe(void *, int (*)(void *, const larder_item *), void *);
int larder_list(void *, const larder_selection *, int (*)(void *, const larder_item *), void *);
int larder_remove_selected(void *, const larder_selection *, uint64_t *);
"""
)

OK, ABSENT, PRESENT, CHANGED, SHORT = 0, 1, 2, 3, 4
NEVER = 2**63 - 1
UNKNOWN_LENGTH = 2**64 - 1
#: Microseconds of a second.
SECOND = 1_000_000


def _candidates() -> List[str]:
    named = os.environ.get("LARDER_LIBRARY")
    if named:
        return [named]
    name = "liblarder.dylib" if sys.platform == "darwin" else "liblarder.so"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    return [beside] if os.path.exists(beside) else [name, name + ".0"]


def _load() -> Any:
    failures = []
    for path in _candidates():
        try:
            return ffi.dlopen(path)
        except OSError as failure:
            failures.append(str(failure))
    raise ImportError(
        "liblarder was not found: install it with tools/install-c, or set LARDER_LIBRARY to its path ("
        + "; ".join(failures)
        + ")"
    )


lib: Any = _load()


def check(status: int) -> int:
    """Returns an answer; raises for an error."""
    if status < 0:
        message = ffi.string(lib.larder_error_message()).decode("utf-8", "replace")
        raise error(status, message, lib.larder_error_number())
    return status


def text(value: str, what: str) -> Any:
    """A text for the library, which ends it at the first NUL: one that has a NUL is a ValueError."""
    data = value.encode("utf-8")
    if b"\0" in data:
        raise ValueError(f"{what} contains a NUL")
    return ffi.new("char[]", data)


def library_version() -> str:
    """The version of liblarder."""
    return str(ffi.string(lib.larder_version()).decode())
