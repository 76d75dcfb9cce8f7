"""Locks between threads and processes, as entries of a cache."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Optional

from ._errors import Timeout
from ._keys import Key, encode
from ._store import Body, Options, Store

if TYPE_CHECKING:
    from .cache import Cache

#: Pauses between two looks at a lock that is taken, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class EntryLock:
    """A lock on an encoded key."""

    def __init__(self, store: Store, key: bytes, expire: Optional[float]) -> None:
        self._store = store
        self._key = key
        self._expire = expire
        self._token = b""

    def try_acquire(self) -> bool:
        token = b"%d:%d:" % (os.getpid(), threading.get_ident()) + os.urandom(8).hex().encode()
        # Pinned: a lock that is displaced would be taken twice.
        if not self._store.put_if_absent(self._key, token, Options(b"b", self._expire, pinned=True)):
            return False
        self._token = token
        return True

    def acquire(self, timeout: Optional[float] = None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not self.try_acquire():
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return True

    def release(self) -> bool:
        """False if the lock is another's by now, or expired."""
        body = self._own()
        self._token = b""
        return body is not None and self._store.remove_if_unchanged(body)

    def is_held(self) -> bool:
        """Whether it was taken here, and has not expired since."""
        return self._own() is not None

    def _own(self) -> Optional[Body]:
        # A child of fork(2) has a copy of the token of its parent, which holds the lock.
        if not self._token.startswith(b"%d:" % os.getpid()):
            return None
        body = self._store.get(self._key)
        return body if body is not None and bytes(body.view()) == self._token else None

    def locked(self) -> bool:
        return self._store.contains(self._key)


class Lock:
    """A lock that threads and processes take in turn: an entry of a cache; the one that puts it holds the lock.

        with Lock(cache, "report", expire=60):
            ...

    Not fair, and not for the same thread twice. With `expire` it ends by itself that many seconds after it was taken,
    which is how the lock of a process that died becomes free; without, someone has to delete its key.
    """

    def __init__(self, cache: "Cache", key: Key, expire: Optional[float] = None) -> None:
        self._lock = EntryLock(cache._store, encode(key), expire)

    def acquire(self, timeout: Optional[float] = None) -> bool:
        """Waits until the lock is free, for at most `timeout` seconds, and takes it. False if the time was over."""
        return self._lock.acquire(timeout)

    def release(self) -> None:
        """Gives the lock back. Raises RuntimeError if it is not held: it expired, or was never taken."""
        if not self._lock.release():
            raise RuntimeError("the lock is not held: it was released before, or it expired")

    def locked(self) -> bool:
        """Whether anyone holds it."""
        return self._lock.locked()

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()


def acquire(lock: EntryLock, timeout: Optional[float]) -> None:
    """Takes a lock; raises Timeout if that takes longer."""
    if not lock.acquire(timeout):
        raise Timeout(f"the lock was not released within {timeout} s")
