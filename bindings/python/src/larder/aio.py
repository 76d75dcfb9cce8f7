"""The cache for asyncio: the same calls, on threads of their own.

Larder's calls block for microseconds, or for a disk. So each call here costs a change of threads, some tens of
microseconds, and the event loop never waits. A program that reads small values may call ``Cache.get`` in the event loop
instead: a hit takes less than the change of threads.
"""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional, Tuple

from ._errors import ClosedError
from ._keys import Key
from .cache import Cache


class AsyncCache:
    """A ``Cache`` whose calls are coroutines.

        async with AsyncCache("/var/cache/app") as cache:
            await cache.set("key", b"value", expire=60)

    Takes what ``Cache`` takes, or ``cache=`` to share one. Cancelling a call whose work has begun leaves it to be finished
    by its thread. ``transact`` is not here: it belongs to a thread. ``Cache.memoize`` takes coroutine functions. Make one
    in each process: its threads stay behind at a fork, as event loops do.

    :param threads: calls that run at a time; others wait.
    """

    def __init__(self, *args: Any, cache: Optional[Cache] = None, threads: int = 4, **kwargs: Any) -> None:
        self._make: Callable[[], Cache] = (lambda: cache) if cache is not None else (lambda: Cache(*args, **kwargs))
        self._cache: Optional[Cache] = cache
        self._owns = cache is None
        self._is_closed = False
        self._opening: Optional["asyncio.Future[Cache]"] = None
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="larder")

    async def _run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(function, *args, **kwargs))

    async def open(self) -> Cache:
        """Opens the cache, once; the calls do that by themselves."""
        if self._is_closed:
            raise ClosedError("the cache is closed", -2)
        if self._cache is None:
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._run(self._make))
            try:
                self._cache = await asyncio.shield(self._opening)
            except Exception:
                # The next call tries again: the cause may be gone by then.
                self._opening = None
                raise
        return self._cache

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return await self._run(getattr(await self.open(), name), *args, **kwargs)

    async def close(self) -> None:
        """Closes the cache, unless it was given. Calls after that raise ClosedError; closing again does not."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._cache is not None and self._owns:
            await self._run(self._cache.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> "AsyncCache":
        await self.open()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def get(self, key: Key, default: Any = None, **options: Any) -> Any:
        """``Cache.get``."""
        return await self._call("get", key, default, **options)

    async def view(self, key: Key) -> Optional[memoryview]:
        """``Cache.view``. A large value is mapped, so the thread that touches its bytes may wait for the disk."""
        found: Optional[memoryview] = await self._call("view", key)
        return found

    async def describe(self, key: Key) -> Any:
        """``Cache.describe``."""
        return await self._call("describe", key)

    async def flush(self, durable: bool = True) -> None:
        """``Cache.flush``."""
        await self._call("flush", durable)

    async def contains(self, key: Key) -> bool:
        """``key in cache``."""
        return bool(await self._call("__contains__", key))

    async def set(self, key: Key, value: Any, **options: Any) -> bool:
        """``Cache.set``."""
        return bool(await self._call("set", key, value, **options))

    async def add(self, key: Key, value: Any, **options: Any) -> bool:
        """``Cache.add``."""
        return bool(await self._call("add", key, value, **options))

    async def incr(self, key: Key, delta: int = 1, default: Optional[int] = 0) -> int:
        """``Cache.incr``."""
        return int(await self._call("incr", key, delta, default))

    async def decr(self, key: Key, delta: int = 1, default: Optional[int] = 0) -> int:
        """``Cache.decr``."""
        return int(await self._call("decr", key, delta, default))

    async def pop(self, key: Key, default: Any = None, **options: Any) -> Any:
        """``Cache.pop``."""
        return await self._call("pop", key, default, **options)

    async def touch(self, key: Key, expire: Optional[float] = None) -> bool:
        """``Cache.touch``."""
        return bool(await self._call("touch", key, expire))

    async def delete(self, key: Key) -> bool:
        """``Cache.delete``."""
        return bool(await self._call("delete", key))

    async def evict(self, tag: str) -> int:
        """``Cache.evict``."""
        return int(await self._call("evict", tag))

    async def expire(self) -> int:
        """``Cache.expire``."""
        return int(await self._call("expire"))

    async def cull(self) -> int:
        """``Cache.cull``."""
        return int(await self._call("cull"))

    async def clear(self) -> int:
        """``Cache.clear``."""
        return int(await self._call("clear"))

    async def keys(self) -> List[Key]:
        """All keys."""
        return list(await self._run(list, await self.open()))

    async def length(self) -> int:
        """``len(cache)``."""
        return int(await self._call("__len__"))

    async def volume(self) -> int:
        """``Cache.volume``."""
        return int(await self._call("volume"))

    async def check(self, fix: bool = False) -> List[str]:
        """``Cache.check``."""
        return list(await self._call("check", fix))

    async def stats(self, reset: bool = False) -> Tuple[int, int]:
        """``Cache.stats``."""
        hits, misses = await self._call("stats", True, reset)
        return hits, misses
