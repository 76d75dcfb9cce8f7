"""What users and reviewers of the first version found."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from larder import AsyncCache, Cache, ClosedError, Lock
from larder._keys import decode
from larder._store import Options


def test_another_open_leaves_the_limits(tmp_path):
    path = tmp_path / "c"
    with Cache(path, size_limit=64 << 20, entry_limit=20) as first:
        with Cache(path) as second, Cache(path, size_limit=None) as third:
            for n in range(40):
                second[n] = n
            assert len(third) <= 20
        with Cache(path, size_limit=32 << 20) as fourth:
            for n in range(40):
                fourth[n] = n
            assert len(first) <= 20
    with Cache(path) as cache:
        limits = budget(cache)
        assert limits == (32 << 20, 20)
    with Cache(tmp_path / "new") as cache:
        assert budget(cache)[0] == 1 << 30


def budget(cache):
    from larder._library import check, ffi, lib

    found = ffi.new("larder_budget *")
    found.size = ffi.sizeof("larder_budget")
    check(lib.larder_get_budget(cache._store.handle, found))
    return found.bytes, found.entries


def test_an_interrupt_ends_a_listing(cache, monkeypatch):
    import larder._store

    for n in range(3):
        cache[n] = n
    monkeypatch.setattr(larder._store, "_item", lambda item: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        list(cache)


def test_texts_with_nul_are_refused(cache, tmp_path):
    with pytest.raises(ValueError):
        Cache(str(tmp_path) + "/a\0b")
    with pytest.raises(ValueError):
        cache.set("k", b"x", tag="a\0b")
    with pytest.raises(ValueError):
        cache.evict("a\0b")
    with pytest.raises(ValueError):
        Cache(tmp_path / "v", version="1\0")


def test_a_number_keeps_its_expiry_and_tags_in_a_transaction(cache):
    cache.set("n", 1, expire=500, tag=("t", "u"))
    with cache.transact():
        assert cache.incr("n") == 2
        assert cache.incr("n") == 3
        assert cache.incr("new", default=5) == 6
    value, expires, tags = cache.get("n", expire_time=True, tag=True)
    assert value == 3 and expires is not None and tags == ("t", "u")
    cache["none"] = None
    with pytest.raises(TypeError), cache.transact():
        cache.incr("none")


def test_a_transaction_with_a_bad_tag_or_key_changes_nothing(cache):
    for bad in (lambda: cache.set("b", 2, tag="x" * 300), lambda: cache.set("k" * 70_000, 2)):
        with pytest.raises(ValueError), cache.transact():
            cache["a"] = 1
            bad()
        assert "a" not in cache


@pytest.mark.parametrize("call", [
    lambda cache: cache.get("k", tag=True), lambda cache: cache.view("k"), lambda cache: cache.read("k"),
    lambda cache: cache.pop("k", tag=True), lambda cache: cache.touch("k", 1)])
def test_what_a_transaction_cannot_show_is_refused(cache, call):
    cache["k"] = b"old"
    with cache.transact():
        cache["k"] = b"new"
        with pytest.raises(RuntimeError):
            call(cache)


def test_touch_does_not_revive(cache):
    cache.set("k", 1, expire=-1)
    assert cache.touch("k", 100) is False
    assert "k" not in cache


def test_the_lock_of_a_dead_process_is_free(tmp_path):
    program = (
        "import os, signal, sys, larder\n"
        "cache = larder.Cache(sys.argv[1])\n"
        "larder.Lock(cache, 'lock').acquire()\n"
        "with cache.transact():\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path / "c")], timeout=120)
    assert run.returncode == -signal.SIGKILL
    with Cache(tmp_path / "c") as cache:
        assert Lock(cache, "lock").acquire(timeout=5) is sys.platform.startswith("linux")
        if sys.platform.startswith("linux"):
            with cache.transact(timeout=5):
                cache["k"] = 1


def test_a_lock_that_expired_does_not_hide_an_error(cache):
    with pytest.raises(KeyError), Lock(cache, "lock", expire=-1):
        raise KeyError("mine")


def test_threads_that_share_a_lock_do_not_release_each_others(cache):
    lock = Lock(cache, "lock", expire=60)
    lock.acquire()
    failures = []

    def other():
        try:
            lock.release()
        except RuntimeError as failure:
            failures.append(failure)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(failures) == 1 and lock.locked()
    lock.release()


def test_locks_are_not_displaced(tmp_path):
    with Cache(tmp_path / "c", size_limit=1 << 20) as cache:
        lock = Lock(cache, "lock")
        lock.acquire()
        for n in range(100):
            cache[n] = os.urandom(50_000)
        assert lock.locked()
        lock.release()


def test_memoize_needs_parentheses(cache):
    with pytest.raises(TypeError):
        cache.memoize(len)


def test_a_result_can_be_forgotten(cache):
    calls = []

    @cache.memoize()
    def double(number):
        calls.append(number)
        return number * 2

    assert (double(1), double(1), len(calls)) == (2, 2, 1)
    key = double.__cache_key__(1)
    assert key in cache and list(cache) == [key] and len(cache) == 1
    del cache[key]
    assert (double(1), len(calls)) == (2, 2)


def test_a_relative_directory_stays_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with Cache("c") as cache:
        cache["k"] = 1
        cache.flush()
        monkeypatch.chdir(tmp_path / "other")
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            assert pool.apply(cache.get, ("k",)) == 1
    assert not (tmp_path / "other" / "c").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_is_ended_keeps_what_its_tasks_put(cache, method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(cache.set, [(n, b"x") for n in range(40)], chunksize=5) == [True] * 40
    assert [n for n in range(40) if n not in cache] == []


def test_a_writer_that_never_began_is_ended(cache):
    import gc

    from larder._store import Writer

    for _ in range(3):
        Writer(cache._store, b"sk", Options(b"b")).write(b"x" * 100_000)
    gc.collect()
    cache.cull()
    assert "k" not in cache


def test_a_file_that_has_no_bytes_yet_is_an_error(cache):
    class Slow:
        pieces = [b"a", None]

        def read(self, _):
            return self.pieces.pop(0)

    with pytest.raises(BlockingIOError):
        cache.set("k", Slow(), read=True)
    assert "k" not in cache


@pytest.mark.parametrize("data", [b"i1_0", b"i +5", b"i-0", b"t" + b"2:t" * 20_000])
def test_strange_keys_of_others_are_left_out(cache, data):
    cache._store.put(data, b"x", Options(b"b"))
    assert list(cache) == []


def test_lifetimes_of_any_float(cache):
    for seconds in (float("-inf"), -1e305):
        cache.set("k", 1, expire=seconds)
        assert "k" not in cache
    for seconds in (float("inf"), 1e305, 9223372036854.775807):
        cache.set("k", 1, expire=seconds)
        assert cache["k"] == 1


def test_an_async_cache_opens_when_the_cause_is_gone(tmp_path):
    async def run():
        (tmp_path / "c").write_bytes(b"")
        cache = AsyncCache(tmp_path / "c")
        with pytest.raises(Exception):
            await cache.get("k")
        (tmp_path / "c").unlink()
        await cache.set("k", 1)
        await cache.flush()
        assert (await cache.describe("k")).length == 1
        await cache.close()
        await cache.close()
        with pytest.raises(ClosedError):
            await cache.get("k")

    asyncio.run(run())


def test_what_cannot_be_committed_at_the_end_is_logged(tmp_path):
    program = (
        "import sys, larder\n"
        "from larder import _store\n"
        "cache = larder.Cache(sys.argv[1])\n"
        "cache['k'] = 1\n"
        "cache._store.handle = _store.ffi.cast('void *', 3)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "c")], capture_output=True, text=True, timeout=120)
    assert "could not be committed" in run.stderr


def test_functions_of_one_name_have_results_of_their_own(cache):
    double = cache.memoize()(lambda x: x * 2)
    triple = cache.memoize()(lambda x: x * 3)
    assert (double(5), triple(5), double(5)) == (10, 15, 10)

    def times(factor):
        @cache.memoize()
        def multiply(x, offset=factor):
            return x * factor + offset

        return multiply

    assert (times(2)(10), times(3)(10)) == (22, 33)

    calls = []

    def counted():
        @cache.memoize()
        def count(x):
            calls.append(x)
            return x

        return count

    # The same function, made again: one result.
    for _ in range(3):
        calls.clear()
        counted()(7)
    assert calls == []


def test_what_has_expired_cannot_be_deleted(cache):
    cache.set("k", 1, expire=0.01)
    time.sleep(0.05)
    assert not cache.delete("k")
    with pytest.raises(KeyError):
        del cache["k"]
    cache.set("k", 1)
    del cache["k"]
