"""diskcache's calls, and the mapping."""

import io
import pickle
import threading

import pytest

import larder
from larder import Cache, ClosedError, LockedError, NoSpaceError, ReadOnlyError


def test_the_mapping(cache):
    assert len(cache) == 0 and "k" not in cache and cache.get("k") is None and cache.get("k", 5) == 5
    cache["k"] = b"v"
    assert cache["k"] == b"v" and "k" in cache and len(cache) == 1 and list(cache) == ["k"]
    del cache["k"]
    with pytest.raises(KeyError):
        cache["k"]
    with pytest.raises(KeyError):
        del cache["k"]
    assert not cache.delete("k")


def test_values_of_any_length(cache):
    for length in (0, 1, 65_535, 65_536, 65_537, 300_000, 2_000_000):
        cache["k"] = value = bytes(index % 251 for index in range(1000)) * (length // 1000) + b"x" * (length % 1000)
        assert len(value) == length
        assert cache["k"] == value
        cache.flush(durable=False)
        assert cache["k"] == value
        assert bytes(cache.view("k")) == value
        assert cache.read("k").read() == value


def test_expiry_and_tags(cache):
    cache.set("gone", 1, expire=-1)
    assert "gone" not in cache and cache.get("gone", expire_time=True, tag=True) == (None, None, None)
    for expire in (0, -1e30):
        cache.set("gone", 1, expire=expire)
        assert "gone" not in cache
    for expire in (1e30, float("inf")):
        cache.set("k", 1, expire=expire)
        assert cache.get("k", expire_time=True) == (1, None)
    with pytest.raises((TypeError, ValueError)):
        cache.set("k", 2, expire="soon")
    with pytest.raises(ValueError):
        cache.set("k", 2, expire=float("nan"))
    cache.set("k", "v", expire=1000, tag="t")
    value, expires, tag = cache.get("k", expire_time=True, tag=True)
    assert value == "v" and tag == "t" and expires == pytest.approx(cache.describe("k").stored + 1000, abs=1)
    assert cache.touch("k") and cache.get("k", expire_time=True) == ("v", None)
    assert not cache.touch("none")
    cache.set("two", 1, tag=("t", "u"))
    assert cache.get("two", tag=True) == (1, ("t", "u"))
    assert cache.evict("u") == 1 and cache.evict("u") == 0
    assert list(cache) == ["gone", "k"]
    assert cache.expire() == 1 and list(cache) == ["k"]
    assert cache.evict("t") == 1 and len(cache) == 0


def test_a_default_lifetime(tmp_path):
    with Cache(tmp_path / "c", expire=1000) as cache:
        cache["k"] = 1
        assert cache.get("k", expire_time=True)[1] is not None


def test_add_and_pop(cache):
    assert cache.add("k", 1) and not cache.add("k", 2) and cache["k"] == 1
    assert cache.pop("k", tag=True) == (1, None)
    assert cache.pop("k") is None and cache.pop("k", 7) == 7 and cache.pop("k", 7, True, True) == (7, None, None)
    cache.set("k", 1, expire=-1)
    assert cache.add("k", 2) and cache["k"] == 2


def test_counters(cache):
    assert cache.incr("n") == 1 and cache.incr("n", 10) == 11 and cache.decr("n", 12) == -1 and cache["n"] == -1
    with pytest.raises(KeyError):
        cache.incr("none", default=None)
    cache["text"] = "1"
    with pytest.raises(TypeError):
        cache.incr("text")
    cache.set("n", 5, expire=1000, tag="t")
    assert cache.incr("n") == 6
    value, expires, tag = cache.get("n", expire_time=True, tag=True)
    assert value == 6 and expires is not None and tag == "t"


def in_threads(count, function):
    results = []
    threads = [threading.Thread(target=lambda: results.append(function())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_lose_no_update(cache):
    in_threads(4, lambda: [cache.incr("n") for _ in range(25)])
    assert cache["n"] == 100
    cache["once"] = "x"
    assert sorted(map(str, in_threads(4, lambda: cache.pop("once")))) == ["None", "None", "None", "x"]
    assert sum(in_threads(4, lambda: cache.add("one", 1))) == 1


def test_threads_read_and_write(cache):
    def work():
        wrong = 0
        for number in range(200):
            key, value = ("k", number % 7), bytes([number % 7]) * (number % 7 * 20_000)
            cache[key] = value
            wrong += cache[key] != value
        return wrong

    assert in_threads(4, work) == [0] * 4


def test_files(cache):
    cache.set("k", io.BytesIO(b"line 1\nline 2" + bytes(600_000)), read=True, tag="t")
    file = cache.get("k", read=True)
    assert file.readline() == b"line 1\n"
    assert file.seek(-1, io.SEEK_END) == 600_012 and file.read() == b"\0" and file.read() == b""
    with pytest.raises(KeyError):
        cache.read("none")

    class Broken:
        def read(self, _):
            raise OSError("broken")

    with pytest.raises(OSError):
        cache.set("broken", Broken(), read=True)
    assert "broken" not in cache


def test_the_size_limit_holds(tmp_path):
    with Cache(tmp_path / "c", size_limit=4 << 20) as cache:
        for number in range(500):
            cache[number] = number.to_bytes(4, "big") * 5_000
        assert cache.volume() <= 4 << 20 and 20 < len(cache) < 500
        assert cache.cull() >= 0 and cache.check(fix=True) == []
        with pytest.raises(larder.TooLargeError):
            cache["large"] = bytes(5 << 20)
        assert "large" not in cache
    with Cache(tmp_path / "c", size_limit=None) as cache:
        assert cache._store.statistics().budget_bytes == 4 << 20


def test_stats_and_clear(cache):
    cache["k"] = 1
    cache["k"], cache.get("none")
    assert cache.stats() == (1, 1) and cache.stats(reset=True) == (1, 1) and cache.stats() == (0, 0)
    assert cache.clear() == 1 and len(cache) == 0


def test_closing(tmp_path):
    cache = Cache(tmp_path / "c")
    cache["k"] = b"v"
    view = cache.view("k")
    cache.close()
    cache.close()
    for call in (lambda: cache["k"], lambda: cache.set("k", 1), lambda: len(cache), lambda: list(cache)):
        with pytest.raises(ClosedError):
            call()
    assert view == b"v"
    with Cache(tmp_path / "c", read_only=True) as cache:
        assert cache["k"] == b"v"
        with pytest.raises(ReadOnlyError):
            cache["k"] = 1
        with pytest.raises(LockedError):
            Cache(tmp_path / "c")


def test_a_pickled_cache_is_opened_again(cache):
    cache["k"] = 1
    with pickle.loads(pickle.dumps(cache)) as other:
        assert other["k"] == 1
        other["l"] = 2
    assert cache["l"] == 2


def test_errors_of_opening(tmp_path):
    with pytest.raises(larder.InvalidArgumentError):
        Cache(tmp_path / "c", size_limit=5)
    (tmp_path / "file").write_text("x")
    with pytest.raises(larder.Error):
        Cache(tmp_path / "file")
    assert issubclass(NoSpaceError, larder.Error) and larder.library_version() == larder.__version__


def test_reserved_names(cache):
    """Tags that begin with ``larder:`` are Larder's own. Keys begin with a letter of their type."""
    with pytest.raises(ValueError):
        cache.set("k", b"v", tag="larder:leads t")
    assert "k" not in cache
    cache.set("larder:k", b"v")
    assert cache["larder:k"] == b"v"


def test_values_stay_in_memory(tmp_path):
    with Cache(tmp_path / "c", memory=4 << 20, inline_threshold=0) as cache:
        cache["k"] = b"x" * 300_000
        cache.flush(durable=False)
        for _ in range(3):
            assert cache["k"] == b"x" * 300_000
        statistics = cache._store.statistics()
        assert statistics.held_bodies == 1 and statistics.held_bytes >= 300_000 and statistics.held_hits >= 2
        cache["k"] = b"y" * 300_000
        assert cache["k"] == b"y" * 300_000
    with pytest.raises(ValueError):
        Cache(tmp_path / "c", memory=0)


def test_values_are_compressed(tmp_path):
    text = b"a line of text that is there many times\n" * 20_000
    with Cache(tmp_path / "c", compress=True) as cache:
        cache["short"], cache["long"] = text[:5_000], text
        cache.flush(durable=False)
        assert cache["short"] == text[:5_000] and cache["long"] == text
        statistics = cache._store.statistics()
        assert statistics.stored_bytes + statistics.compression_gain == len(text) + 5_000
        assert statistics.stored_bytes < 50_000
    with Cache(tmp_path / "c") as cache:
        assert cache["long"] == text
