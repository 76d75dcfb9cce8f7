"""Transactions of a cache: several changes that become visible together."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Dict, Iterator, Optional, Set, Tuple

from ._errors import TooLargeError
from ._keys import encode
from ._locks import EntryLock, acquire
from ._store import Options, Store
from ._values import Values, kind_of

#: Not the encoding of a key of the caller.
_LOCK_KEY = b"\x00transaction"
_MISSING = object()
#: A removal is None.
_Overlay = Dict[bytes, Optional[Tuple[int, bytes, Options]]]


class Transactions:
    """The part of ``Cache`` that holds changes back until their transaction ends."""

    _store: Store
    _values: Values

    def __init__(self) -> None:
        #: The threads that have one open: while there is none nothing else has to be looked at. Not a count under a lock,
        #: which a child of fork(2) might find held.
        self._transactions: Set[int] = set()
        self._local = threading.local()

    @contextlib.contextmanager
    def transact(self, timeout: Optional[float] = None, expire: float = 60) -> Iterator[None]:
        """Runs a block whose changes become visible together when it ends, or not at all if it raises.

        One transaction runs at a time, of all threads and processes; within it the thread sees its own changes. Reads
        and changes outside of transactions do not wait, and a change of the same key that comes between is overwritten:
        change what needs more than one step in transactions only. Within the block: ``get``, ``set``, ``add``,
        ``incr``, ``decr``, ``pop``, ``delete``, ``in`` and ``[]`` without further options; other calls that change or
        read single entries raise RuntimeError, and ``len`` and iteration show what is stored. Functions that are
        memoized store their results at once. A transaction within one is part of it, unless it is of another object:
        that waits for itself. At most 16,384 changes.

        :param timeout: seconds to wait for another transaction; then ``Timeout`` is raised. None: without end.
        :param expire: seconds after which others take the lock of a thread that is stuck, or of a process that died
            elsewhere; the block must be shorter.
        """
        if getattr(self._local, "overlay", None) is not None:
            yield
            return
        lock = EntryLock(self._store, _LOCK_KEY, expire)
        acquire(lock, timeout)
        self._transactions.add(threading.get_ident())
        overlay: _Overlay = {}
        self._local.overlay = overlay
        self._local.kept = {}
        try:
            yield
            if overlay:
                if not lock.is_held():
                    raise RuntimeError(f"the transaction took longer than {expire} s: nothing was changed")
                self._store.write(
                    [(key, None if put is None else (put[1], put[2])) for key, put in overlay.items()]
                )
        finally:
            self._local.overlay = None
            self._transactions.discard(threading.get_ident())
            lock.release()

    def _is_in_transaction(self) -> bool:
        return getattr(self._local, "overlay", None) is not None

    def _pending_value(self, key: bytes) -> Optional[Tuple[Optional[int], bytes]]:
        """What the transaction of this thread made of a key: None if nothing, (None, b"") if it removed it."""
        overlay: Optional[_Overlay] = getattr(self._local, "overlay", None)
        if overlay is None or key not in overlay:
            return None
        put = overlay[key]
        return (None, b"") if put is None else (put[0], put[1])

    def _note(
        self, key: bytes, kind: int, body: Any, options: Options, expire: Optional[float] = None, tag: Any = None
    ) -> bool:
        """Keeps a put for the end of the transaction. False if there is none."""
        overlay: Optional[_Overlay] = getattr(self._local, "overlay", None)
        if overlay is None:
            return False
        # What the library would refuse at the end, when the other changes are made.
        if len(key) > 65_536:
            raise TooLargeError("a key has at most 65,536 bytes", -12)
        self._local.kept[key] = (None if expire is None else time.time() + expire, tag)
        overlay[key] = (kind, bytes(body), options)
        return True

    def _note_removal(self, key: bytes) -> None:
        self._local.overlay[key] = None

    def _incr_in_transaction(self, key: Any, delta: int, default: Optional[int]) -> int:
        data = encode(key)
        expires: Optional[float] = None
        tags: Any = None
        if data in self._local.overlay:
            value = self.get(key, _MISSING)  # type: ignore[attr-defined]
            expires, tags = self._local.kept.get(data, (None, None))
        else:
            body = self._store.get(data)
            value = _MISSING
            if body is not None:
                item = body.describe()
                value = self._values.decode(kind_of(item.metadata), bytes(body.view()))
                expires, tags = item.expires, item.tags or None
        if value is _MISSING:
            if default is None:
                raise KeyError(key)
            value = default
        if type(value) is not int:
            raise TypeError(f"the value of {key!r} is not an int")
        left = None if expires is None else max(expires - time.time(), 0.000_001)
        self.set(key, value + delta, expire=left, tag=tags)  # type: ignore[attr-defined]
        return value + delta

    def _refuse_in_transaction(self, call: str) -> None:
        if self._transactions and self._is_in_transaction():
            raise RuntimeError(f"{call} cannot be part of a transaction")
