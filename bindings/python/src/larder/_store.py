"""A store of liblarder: bytes by encoded keys. ``Cache`` gives them types."""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import multiprocessing.util
import os
import threading
import weakref
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import ClosedError
from ._library import ABSENT, NEVER, OK, SECOND, SHORT, UNKNOWN_LENGTH, check, ffi, lib, text

#: Bodies up to this length are read in one call.
SLOT = 1 << 16
_EXTRA = 256
_PUT_PINNED = 4
_buffer = ffi.buffer
_read = lib.larder_read


class Item(NamedTuple):
    """What is known of an entry. Moments are seconds since 1970."""

    key: bytes
    metadata: bytes
    tags: Tuple[str, ...]
    length: int
    hits: int
    expires: Optional[float]
    stored: float


class _Slot:
    """Memory for one read, used again and again. The lengths and bytes are read through memoryviews, which take a third
    of the time of cffi's members and slices."""

    __slots__ = ("body", "metadata", "bytes", "extra", "lengths", "_kept")

    def __init__(self) -> None:
        memory, extra = ffi.new("char[]", SLOT), ffi.new("char[]", _EXTRA)
        both = ffi.new("larder_buffer[2]", [(memory, SLOT, 0), (extra, _EXTRA, 0)])
        self.body, self.metadata = both + 0, both + 1
        self.bytes, self.extra = memoryview(_buffer(memory)), memoryview(_buffer(extra))
        #: Of the body at 2, of the metadata at 5.
        self.lengths = memoryview(_buffer(both)).cast("B").cast("L")
        self._kept = (memory, extra, both)


def lifetime(seconds: Optional[float]) -> int:
    """A lifetime in microseconds, as the library wants it."""
    if seconds is None or seconds >= NEVER / SECOND:
        return NEVER
    if seconds < 0:
        return -1
    # 0 would be the default of the store; every moment before now is the same.
    return max(int(seconds * SECOND), -1) or -1


class Options:
    """A larder_put_options, and what it points to."""

    __slots__ = ("pointer", "_kept")

    def __init__(
        self, metadata: bytes, expire: Optional[float] = None, tags: Sequence[str] = (), expires: Optional[int] = None,
        pinned: bool = False,
    ) -> None:
        self.pointer = pointer = ffi.new("larder_put_options *")
        pointer.size = ffi.sizeof("larder_put_options")
        if pinned:
            pointer.flags = _PUT_PINNED
        if expires is None:
            pointer.lifetime = lifetime(expire)
        else:
            pointer.expires = expires
        memory = ffi.new("char[]", metadata)
        pointer.metadata, pointer.metadata_length = memory, len(metadata)
        texts = [text(tag, "a tag") for tag in tags]
        array = ffi.new("char *[]", texts)
        pointer.tags, pointer.tag_count = array, len(texts)
        self._kept = (memory, texts, array)


class StoreKey:
    """A larder_key, and what it points to. It is not printed."""

    __slots__ = ("pointer", "_kept")

    def __init__(self, key: Union[bytes, str]) -> None:
        self.pointer = ffi.new("larder_key *")
        self.pointer.size = ffi.sizeof("larder_key")
        self._kept: Any
        if isinstance(key, bytes):
            self._kept = ffi.new("char[]", key)
            self.pointer.bytes, self.pointer.length = self._kept, len(key)
        elif isinstance(key, str):
            self._kept = text(key, "the passphrase")
            self.pointer.passphrase = self._kept
        else:
            raise TypeError(f"a key is bytes, or a passphrase in a str, not {type(key).__name__}")


def change_key(directory: str, old: StoreKey, new: StoreKey) -> None:
    """Changes the key of an encrypted store."""
    check(lib.larder_change_key(os.fsencode(directory), old.pointer, new.pointer))


def _item(item: Any) -> Item:
    return Item(
        key=_buffer(item.key, item.key_length)[:],
        metadata=_buffer(item.metadata, item.metadata_length)[:] if item.metadata_length else b"",
        tags=tuple(ffi.string(item.tags[index]).decode("utf-8") for index in range(item.tag_count)),
        length=item.length,
        hits=item.hits,
        expires=None if item.expires == NEVER else item.expires / SECOND,
        stored=item.stored / SECOND,
    )


class Body:
    """A body that was looked up: readable whatever happens to the entry. Released with the object."""

    __slots__ = ("handle", "_guard", "__weakref__")

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._guard = ffi.gc(handle, lib.larder_body_release)

    def __len__(self) -> int:
        length = ffi.new("uint64_t *")
        check(lib.larder_body_length(self.handle, length))
        return int(length[0])

    def view(self) -> memoryview:
        """The bytes in place, read-only: in memory, or a mapped file. The body stays as long as the view does."""
        start, length = ffi.new("void **"), ffi.new("size_t *")
        check(lib.larder_body_bytes(self.handle, start, length))
        if length[0] == 0:
            return memoryview(b"")
        # The view keeps the buffer, that the pointer, and that this body: its destructor has nothing else to do.
        pointer = ffi.gc(ffi.cast("char *", start[0]), lambda _, body=self: None)
        return memoryview(_buffer(pointer, length[0])).toreadonly()

    def metadata(self) -> bytes:
        start, length = ffi.new("void **"), ffi.new("size_t *")
        check(lib.larder_body_metadata(self.handle, start, length))
        return bytes(_buffer(start[0], length[0])) if length[0] else b""

    def read_into(self, offset: int, target: Any) -> int:
        """Fills the buffer `target` from an offset on; how many bytes that were."""
        count = ffi.new("size_t *")
        with ffi.from_buffer("char[]", target, require_writable=True) as memory:
            check(lib.larder_body_read(self.handle, offset, memory, len(memory), count))
        return int(count[0])

    def describe(self) -> Item:
        found: List[Item] = []
        with _Callback(found.append) as (function, context):
            check(lib.larder_body_describe(self.handle, function, context))
        return found[0]


class _Callback:
    """A Python function as a larder_item_callback. What it raises ends the call, and is raised again."""

    def __init__(self, use: Callable[[Item], Any]) -> None:
        failures: List[BaseException] = []

        def call(_: Any, item: Any) -> int:
            use(_item(item))
            return 0

        def fail(_: Any, failure: BaseException, __: Any) -> None:
            failures.append(failure)

        # It must not pass through the library, wherever it comes from: an interrupt may come before the first line.
        self._function = ffi.callback("int(void *, const larder_item *)", call, error=1, onerror=fail)
        self._failures = failures

    def __enter__(self) -> Tuple[Any, Any]:
        return self._function, ffi.NULL

    def __exit__(self, *_: Any) -> None:
        del self._function
        if self._failures:
            raise self._failures[0]


_logger = logging.getLogger("larder")
#: The open stores, for what a fork asks of each.
_open: "weakref.WeakSet[Store]" = weakref.WeakSet()


#: Held while the set changes and while the library opens a store. Reentrant, for handlers of signals.
_lock = threading.RLock()


def _flush_all() -> None:
    """Commits what was put: before a fork, so that the child finds it, and when the process ends."""
    with _lock:
        handles = [(store.directory, store.__dict__.get("handle")) for store in list(_open)]
    for directory, handle in handles:
        if handle is not None and lib.larder_flush(handle, 0) < 0:
            message = ffi.string(lib.larder_error_message()).decode("utf-8", "replace")
            _logger.error("what was put in %s could not be committed: %s", directory, message)


def _before_fork() -> None:
    _flush_all()
    _lock.acquire()


def _in_parent() -> None:
    _lock.release()


def _in_child() -> None:
    """The handles are of the parent, whose threads stayed there: each store is opened again when it is used."""
    global _lock
    _lock = threading.RLock()
    for store in list(_open):
        store.__dict__.pop("handle", None)


class Store:
    """An open store. Any number of threads may use it, and children of fork(2)."""

    def __init__(
        self, directory: str, flags: int = 0, version: Optional[str] = None, key: Optional["StoreKey"] = None, **limits: int
    ) -> None:
        self.directory = directory
        self._arguments = (flags, version, key, limits)
        self._is_closed = False
        self._slots: List[_Slot] = []
        with _lock:
            self.handle = self._open()
            _open.add(self)

    def _open(self) -> Any:
        flags, version, key, limits = self._arguments
        options = ffi.new("larder_options *")
        options.size = ffi.sizeof("larder_options")
        options.flags = flags
        for name, value in limits.items():
            setattr(options, name, value)
        kept = None if version is None else text(version, "the version")
        if kept is not None:
            options.version = kept
        if key is not None:
            options.key = key.pointer
        path = os.fsencode(self.directory)
        if b"\0" in path:
            raise ValueError("the directory contains a NUL")
        target = ffi.new("void **")
        check(lib.larder_open(path, options, target))
        # Workers of multiprocessing are often ended by a signal as soon as they have returned their results
        # (`with Pool()`), so what they put is committed by then.
        self._commits = multiprocessing.parent_process() is not None
        return target[0]

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there: the handle, in a child of fork(2).
        if name != "handle":
            raise AttributeError(name)
        with _lock:
            if self._is_closed:
                raise ClosedError("the cache is closed", -2)
            if "handle" not in self.__dict__:
                self.handle = self._open()
        return self.__dict__["handle"]

    def close(self) -> None:
        with _lock:
            _open.discard(self)
            self._is_closed = True
        # In a child that has not used it there is nothing to close.
        if "handle" in self.__dict__:
            check(lib.larder_close(self.handle))

    def _commit(self) -> None:
        check(lib.larder_flush(self.handle, 0))

    def set_limits(self, size: Optional[int], entries: Optional[int]) -> None:
        """Changes those limits that are given, for every process."""
        budget = ffi.new("larder_budget *")
        budget.size = ffi.sizeof("larder_budget")
        check(lib.larder_get_budget(self.handle, budget))
        before = (budget.bytes, budget.entries)
        if size is not None:
            budget.bytes = size
        if entries is not None:
            budget.entries = entries
        if (budget.bytes, budget.entries) != before:
            check(lib.larder_set_budget(self.handle, budget))

    def read(self, key: bytes) -> Optional[Tuple[bytes, bytes]]:
        """The metadata and the body under a key; None for a miss."""
        slots = self._slots
        try:
            slot = slots.pop()
        except IndexError:  # Another thread may take the last one between two looks.
            slot = _Slot()
        status = _read(self.handle, key, len(key), 0, slot.body, slot.metadata)
        if status == OK:
            lengths = slot.lengths
            found = slot.extra[: lengths[5]].tobytes(), slot.bytes[: lengths[2]].tobytes()
            slots.append(slot)
            return found
        slots.append(slot)
        if status == SHORT:
            body = self.get(key)
            return None if body is None else (body.metadata(), bytes(body.view()))
        check(status)
        return None

    def get(self, key: bytes) -> Optional[Body]:
        target = ffi.new("void **")
        if check(lib.larder_get(self.handle, key, len(key), 0, target)) == ABSENT:
            return None
        return Body(target[0])

    def contains(self, key: bytes) -> bool:
        return check(lib.larder_contains(self.handle, key, len(key))) == OK

    def put(self, key: bytes, body: Any, options: Options) -> None:
        if type(body) is not bytes:
            body = ffi.from_buffer("char[]", body)
        check(lib.larder_put(self.handle, key, len(key), body, len(body), options.pointer, ffi.NULL))
        if self._commits:
            self._commit()

    def put_if_absent(self, key: bytes, body: bytes, options: Options) -> bool:
        return check(lib.larder_put_if_absent(self.handle, key, len(key), body, len(body), options.pointer)) == OK

    def put_if_unchanged(self, expected: Body, body: bytes, options: Options) -> bool:
        """False if the entry is another by now, or gone."""
        status = lib.larder_put_if_unchanged(self.handle, expected.handle, body, len(body), options.pointer)
        return check(status) == OK

    def write(self, operations: Sequence[Tuple[bytes, Optional[Tuple[bytes, Options]]]]) -> None:
        """Puts and, where there is None, removals, in one commit."""
        target = ffi.new("void **")
        check(lib.larder_batch_create(target))
        batch = target[0]
        try:
            for key, put in operations:
                if put is None:
                    check(lib.larder_batch_remove(batch, key, len(key)))
                else:
                    body, options = put
                    check(lib.larder_batch_put(batch, key, len(key), body, len(body), options.pointer, 0))
            check(lib.larder_batch_write(self.handle, batch, 0, ffi.NULL, 0))
        finally:
            lib.larder_batch_release(batch)

    def put_stream(self, key: bytes, read: Callable[[int], bytes], options: Options) -> None:
        """Stores what `read` returns, piece by piece, until that is empty."""
        writer = Writer(self, key, options)
        try:
            while True:
                piece = read(1 << 18)
                if piece is None:
                    raise BlockingIOError("the file has no bytes yet: it does not block")
                if not isinstance(piece, (bytes, bytearray, memoryview)):
                    raise TypeError(f"a binary file gives bytes, not {type(piece).__name__}")
                if not len(piece):
                    break
                writer.write(bytes(piece))
        except BaseException:
            writer.cancel()
            raise
        writer.commit()

    def touch(self, key: bytes, expire: Optional[float]) -> bool:
        return check(lib.larder_touch(self.handle, key, len(key), lifetime(expire))) == OK

    def change_metadata(self, key: bytes, metadata: bytes) -> bool:
        """False if there is no such entry."""
        memory = ffi.new("char[]", metadata)
        change = ffi.new("larder_entry_change *")
        change.size = ffi.sizeof("larder_entry_change")
        change.fields, change.metadata, change.metadata_length = 2, memory, len(metadata)
        return check(lib.larder_change(self.handle, key, len(key), change)) == OK

    def remove(self, key: bytes) -> bool:
        return check(lib.larder_remove(self.handle, key, len(key))) == OK

    def remove_if_unchanged(self, expected: Body) -> bool:
        return check(lib.larder_remove_if_unchanged(self.handle, expected.handle)) == OK

    def describe(self, key: bytes) -> Optional[Item]:
        found: List[Item] = []
        with _Callback(found.append) as (function, context):
            check(lib.larder_describe(self.handle, key, len(key), function, context))
        return found[0] if found else None

    def items(self, tag: Optional[str] = None) -> List[Item]:
        found: List[Item] = []
        selection, _kept = _selection(tag, 0)
        with _Callback(found.append) as (function, context):
            check(lib.larder_list(self.handle, selection, function, context))
        return found

    def remove_selected(self, tag: Optional[str] = None, expired: bool = False) -> int:
        selection, _kept = _selection(tag, 1 if expired else 0)
        count = ffi.new("uint64_t *")
        check(lib.larder_remove_selected(self.handle, selection, count))
        return int(count[0])

    def clear(self) -> int:
        count = ffi.new("uint64_t *")
        check(lib.larder_clear(self.handle, count))
        return int(count[0])

    def flush(self, durable: bool) -> None:
        check(lib.larder_flush(self.handle, 1 if durable else 0))

    def statistics(self) -> Any:
        statistics = ffi.new("larder_statistics *")
        statistics.size = ffi.sizeof("larder_statistics")
        check(lib.larder_get_statistics(self.handle, statistics))
        return statistics

    def collect(self) -> Any:
        result = ffi.new("larder_collection *")
        result.size = ffi.sizeof("larder_collection")
        check(lib.larder_collect(self.handle, 0, ffi.NULL, ffi.NULL, result))
        return result

    def check(self, repair: bool) -> List[str]:
        found: List[str] = []

        @ffi.callback("int(void *, const char *, int)")  # type: ignore[untyped-decorator]
        def report(_: Any, violation: Any, is_repaired: int) -> int:
            text = ffi.string(violation).decode("utf-8", "replace")
            found.append(text + " (repaired)" if is_repaired else text)
            return 0

        check(lib.larder_check(self.handle, 1 if repair else 0, report, ffi.NULL, ffi.NULL, ffi.NULL))
        return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
atexit.register(_flush_all)
def _flush_at_end(_: Any) -> None:
    multiprocessing.util.Finalize(None, _flush_all, exitpriority=0)


# The children of multiprocessing end with os._exit(), which passes by atexit, and forget the finalizers of their parent.
# A child may also be the first to import this.
multiprocessing.util.register_after_fork(Store, _flush_at_end)
_flush_at_end(None)


class Writer:
    """A body that is written piece by piece: stored by `commit`, dropped by `cancel`."""

    def __init__(self, store: Store, key: bytes, options: Options) -> None:
        target = ffi.new("void **")
        check(lib.larder_writer_open(store.handle, key, len(key), UNKNOWN_LENGTH, options.pointer, target))
        # Ended with the object, which is harmless after a commit.
        self._handle = ffi.gc(target[0], lib.larder_writer_cancel)

    def write(self, piece: bytes) -> None:
        check(lib.larder_writer_write(self._handle, piece, len(piece)))

    def commit(self) -> None:
        check(lib.larder_writer_commit(self._handle, ffi.NULL))

    def cancel(self) -> None:
        """Harmless after `commit`."""
        lib.larder_writer_cancel(self._handle)


def _selection(tag: Optional[str], flags: int) -> Tuple[Any, Any]:
    selection = ffi.new("larder_selection *")
    selection.size = ffi.sizeof("larder_selection")
    selection.flags = flags
    kept = None if tag is None else text(tag, "a tag")
    if kept is not None:
        selection.tag = kept
    return selection, kept
