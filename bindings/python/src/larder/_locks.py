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


def _space() -> bytes:
    """What process ids belong to: a run of the machine, and a container in it. Empty where that is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip() + os.readlink("/proc/self/ns/pid").encode()
    except OSError:
        return b""


_SPACE = _space()


def _is_dead(token: bytes) -> bool:
    """Whether the process that took a lock is known to have ended."""
    parts = token.split(b"/", 2)
    if len(parts) < 3 or not _SPACE or parts[1] != _SPACE.replace(b"/", b""):
        return False
    try:
        os.kill(int(parts[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        pass
    return False


class EntryLock:
    """A lock on an encoded key."""

    def __init__(self, store: Store, key: bytes, expire: Optional[float]) -> None:
        self._store = store
        self._key = key
        self._expire = expire
        #: Threads may share the object, and each has a token of its own.
        self._tokens = threading.local()

    def try_acquire(self) -> bool:
        holder = self._store.get(self._key)
        if holder is not None:
            if not _is_dead(bytes(holder.view())):
                return False
            self._store.remove_if_unchanged(holder)
        token = b"%d/%s/%s" % (os.getpid(), _SPACE.replace(b"/", b""), os.urandom(8).hex().encode())
        # Pinned: a lock that is displaced would be taken twice.
        if not self._store.put_if_absent(self._key, token, Options(b"b", self._expire, pinned=True)):
            return False
        self._tokens.own = token
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
        self._tokens.own = b""
        return body is not None and self._store.remove_if_unchanged(body)

    def is_held(self) -> bool:
        """Whether it was taken here, and has not expired since."""
        return self._own() is not None

    def _own(self) -> Optional[Body]:
        # A child of fork(2) has a copy of the token of its parent, which holds the lock.
        token: bytes = getattr(self._tokens, "own", b"")
        if not token.startswith(b"%d/" % os.getpid()):
            return None
        body = self._store.get(self._key)
        return body if body is not None and bytes(body.view()) == token else None

    def locked(self) -> bool:
        return self._store.contains(self._key)


class Lock:
    """A lock that threads and processes take in turn: an entry of a cache; the one that puts it holds the lock.

        with Lock(cache, "report", expire=60):
            ...

    Not fair, and not for the same thread twice. With `expire` it ends by itself that many seconds after it was taken. The
    lock of a process that died is free at once on Linux, if it ran on this machine and in this container; elsewhere when
    it expires, or when its key is deleted. `clear()` frees every lock.
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
        # Without an error if it has expired: the block may be on its way out with one of its own.
        self._lock.release()


def acquire(lock: EntryLock, timeout: Optional[float]) -> None:
    """Takes a lock; raises Timeout if that takes longer."""
    if not lock.acquire(timeout):
        raise Timeout(f"the lock was not released within {timeout} s")
