"""memoize, memoize_stampede, Lock and transact."""

import asyncio
import inspect
import threading

import pytest

from larder import Cache, Lock, Timeout


def test_memoize(cache):
    calls = []

    @cache.memoize(tag="t")
    def add(a, b=2, *rest, **more):
        calls.append((a, b))
        return (a, b)

    assert add(1) == [1, 2] and add(1) == [1, 2] and calls == [(1, 2)]
    assert add(1, 3) == [1, 3] and add("1") == ["1", 2] and add([1, 2], {"x": None}) is not None
    assert len(calls) == 4
    assert add(1.0) == [1, 2] and len(calls) == 4
    with pytest.raises(TypeError):
        add(object())
    assert cache.evict("t") == 4 and add(1) == [1, 2] and len(calls) == 5
    assert list(cache) == [add.__cache_key__(1)]


def test_memoize_tells_calls_apart(cache):
    calls = []

    @cache.memoize(name="f", typed=True, ignore=("session", 1))
    def f(*args, **kwargs):
        calls.append(args)
        return None

    different = [((1,), {}), ((1.0,), {}), ((True,), {}), (("1",), {}), (((1,),), {}), (([1],), {}), ((), {"a": 1})]
    for args, kwargs in different:
        assert f(*args, **kwargs) is None and f(*args, session=object(), **kwargs) is None
    assert len(calls) == 7
    f("a", object())
    f("a", object())
    assert len(calls) == 8
    f("long" * 10_000)
    f("long" * 10_000)
    assert len(calls) == 9
    assert f.__cache_key__(1) != f.__cache_key__(1.0)


def test_memoize_stampede(cache):
    calls = []
    done = threading.Event()

    @cache.memoize_stampede(expire=1000)
    def slow(a):
        calls.append(a)
        if len(calls) == 2:
            done.set()
        return "value %d" % len(calls)

    assert slow(1) == slow(1) == "value 1" and calls == [1]

    @cache.memoize_stampede(expire=1000, name="early", beta=1e12)
    def early(a):
        return slow.__wrapped__(a)

    # With so great a beta it is computed again at once: in the background, while the caller gets what there is.
    first = early(1)
    assert early(1) == first
    assert done.wait(10)


def test_locks(cache):
    lock = Lock(cache, "l")
    assert not lock.locked()
    with lock:
        assert lock.locked() and not Lock(cache, "l").acquire(timeout=0)
        with pytest.raises(RuntimeError):
            Lock(cache, "l").release()
    assert not lock.locked()
    with pytest.raises(RuntimeError):
        lock.release()

    total = []

    def work():
        for _ in range(10):
            with Lock(cache, "shared"):
                number = cache.get("n", 0)
                total.append(1)
                cache["n"] = number + 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache["n"] == 30


def test_transactions_are_seen_as_one(cache):
    cache["old"] = 1
    with cache.transact():
        cache["a"] = 1
        cache.set("b", b"x" * 300_000, tag="t")
        del cache["old"]
        assert cache.incr("n") == 1 and cache.incr("n") == 2
        assert cache.add("added", 1) and not cache.add("a", 2) and cache.pop("added") == 1
        assert cache["a"] == 1 and "old" not in cache and cache.get("old") is None
        with cache.transact():
            cache["inner"] = 1
        seen = []
        thread = threading.Thread(target=lambda: seen.extend(["a" in cache, "old" in cache, "inner" in cache]))
        thread.start()
        thread.join()
        assert seen == [False, True, False]
        for call in (cache.clear, cache.cull, cache.expire, lambda: cache.touch("a"), lambda: cache.evict("t")):
            with pytest.raises(RuntimeError):
                call()
    assert sorted(cache) == ["a", "b", "inner", "n"] and cache["n"] == 2 and len(cache) == 4
    assert cache.get("b", tag=True)[1] == "t"


def test_a_transaction_that_raises_changes_nothing(cache):
    cache["k"] = 1
    with pytest.raises(ZeroDivisionError):
        with cache.transact():
            cache["k"] = 2
            cache["l"] = 3
            1 / 0
    assert cache["k"] == 1 and "l" not in cache
    with cache.transact(timeout=0):
        cache["k"] = 4
    assert cache["k"] == 4


def test_transactions_wait_for_each_other(cache, tmp_path):
    with Cache(tmp_path / "cache") as other, cache.transact():
        with pytest.raises(Timeout):
            with other.transact(timeout=0):
                pass
    with pytest.raises(RuntimeError):
        with cache.transact(expire=-1):
            cache["k"] = 1
    assert "k" not in cache


def test_memoize_of_coroutine_functions(cache):
    calls = []

    @cache.memoize(tag="t")
    async def double(x, fail=False):
        calls.append(x)
        await asyncio.sleep(0)
        if fail:
            raise ValueError("not now")
        return {"doubled": 2 * x}

    async def run():
        assert await double(3) == {"doubled": 6}
        assert await double(3) == {"doubled": 6} and calls == [3]
        assert await asyncio.gather(*(double(4) for _ in range(5))) == [{"doubled": 8}] * 5
        with pytest.raises(ValueError):
            await double(5, fail=True)
        with pytest.raises(ValueError):
            await double(5, fail=True)

    asyncio.run(run())
    assert calls.count(5) == 2
    assert inspect.iscoroutinefunction(double)
    assert cache[double.__cache_key__(3)] == {"doubled": 6}
    assert cache.evict("t") == 2
    with pytest.raises(TypeError):
        cache.memoize_stampede(expire=1)(double)
