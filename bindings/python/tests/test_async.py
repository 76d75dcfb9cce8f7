"""The same calls for asyncio."""

import asyncio

import pytest

from larder import AsyncCache, ClosedError


def test_calls_are_coroutines(tmp_path):
    async def work():
        async with AsyncCache(tmp_path / "c", size_limit=None) as cache:
            assert await cache.get("k") is None
            assert await cache.set("k", b"v", expire=100, tag="t") and await cache.contains("k")
            assert await cache.get("k", tag=True) == (b"v", "t") and await cache.view("k") == b"v"
            assert not await cache.add("k", 1) and await cache.touch("k") and await cache.pop("k") == b"v"
            sums = await asyncio.gather(*(cache.incr("n") for _ in range(30)))
            assert sorted(sums) == list(range(1, 31)) and await cache.decr("n") == 29
            assert await cache.keys() == ["n"] and await cache.length() == 1 and await cache.volume() > 0
            assert await cache.check() == [] and (await cache.stats())[0] > 0
            assert await cache.evict("t") == await cache.expire() == await cache.cull() == 0
            assert await cache.delete("n") and await cache.clear() == 0
            with pytest.raises(TypeError):
                await cache.get(1.5)
            return cache

    cache = asyncio.run(work())
    with pytest.raises((ClosedError, RuntimeError)):
        asyncio.run(cache.get("k"))


def test_a_cache_is_shared(cache):
    async def work():
        async with AsyncCache(cache=cache) as other:
            await other.set("k", 1)

    asyncio.run(work())
    assert cache["k"] == 1
