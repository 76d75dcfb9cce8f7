"""Keys and values keep their types, and nothing else is stored."""

import pytest

from larder import Cache, InvalidArgumentError, SerializerError, TooLargeError
from larder._keys import decode, encode

KEYS = [
    "a", "", "ä\0", b"a", b"", b"\xff\0", 0, 1, -1, 2**100, (), ("a",), ("a", 1), ("a", "1"), (("a",), b"b"),
    ("a:", "b"),
]
WRONG = [None, 1.0, True, ["a"], {"a": 1}, object(), ("a", None), ("a", 1.5), bytearray(b"a")]
VALUES = [b"", b"bytes\xff", "", "text ä", 0, -5, 2**80, 1.5, None, True, [1, "a", None], {"a": [1], "": {}}]


def test_each_key_has_its_own_bytes():
    encoded = [encode(key) for key in KEYS]
    assert len(set(encoded)) == len(KEYS)
    assert [decode(data) for data in encoded] == KEYS


@pytest.mark.parametrize("data", [b"", b"x", b"t5:s", b"t1", b"t0:", b"tx:s", b"ix"])
def test_bytes_that_are_not_a_key_are_refused(data):
    with pytest.raises(ValueError):
        decode(data)


@pytest.mark.parametrize("key", WRONG)
def test_keys_of_other_types_are_refused(cache, key):
    for call in (
        lambda: cache.get(key), lambda: cache.set(key, b""), lambda: cache.add(key, b""), lambda: cache.pop(key),
        lambda: cache.delete(key), lambda: cache.touch(key), lambda: cache.incr(key), lambda: key in cache,
        lambda: cache[key], lambda: cache.__setitem__(key, 1), lambda: cache.view(key), lambda: cache.describe(key),
    ):
        with pytest.raises(TypeError):
            call()
    assert len(cache) == 0


def test_keys_do_not_mix(cache):
    for number, key in enumerate(KEYS):
        cache[key] = number
    for number, key in enumerate(KEYS):
        assert cache[key] == number
    assert sorted(map(encode, cache)) == [encode(key) for key in cache] == sorted(map(encode, KEYS))
    assert list(reversed(cache)) == list(cache)[::-1]


@pytest.mark.parametrize("value", VALUES)
def test_values_keep_their_type(cache, value):
    cache["k"] = value
    assert cache["k"] == value and type(cache["k"]) is type(value)


def test_buffers_become_bytes(cache):
    for value in (bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXcX")[::2]):
        cache["k"] = value
        assert cache["k"] == b"abc"


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"".join, {"a": b"bytes"}])
def test_values_without_a_form_are_refused_and_not_stored(cache, value):
    with pytest.raises((TypeError, ValueError)):
        cache["k"] = value
    assert "k" not in cache


def test_pickle_only_where_it_is_asked_for(tmp_path):
    with Cache(tmp_path / "c", serializer="pickle") as trusting:
        trusting["set"] = {1, 2}
        trusting["text"] = "text"
        assert trusting["set"] == {1, 2}
        with Cache(tmp_path / "c") as cache:
            assert cache["text"] == "text"
            with pytest.raises(SerializerError, match="pickle"):
                cache["set"]
    with pytest.raises(ValueError):
        Cache(tmp_path / "c", serializer="yaml")


def test_a_serializer_of_the_caller(tmp_path):
    class Reversed:
        def dumps(self, value):
            return repr(value).encode()[::-1]

        def loads(self, data):
            return eval(data[::-1])

    with Cache(tmp_path / "c", serializer=Reversed()) as cache:
        cache["k"] = (1, 2)
        cache["n"] = 5
        assert cache["k"] == (1, 2) and cache.incr("n") == 6


def test_limits_are_errors_and_nothing_is_stored(cache):
    with pytest.raises(TooLargeError):
        cache["k" * 70_000] = 1
    with pytest.raises(TooLargeError):
        cache.set("k", 1, tag=["t%d" % number for number in range(4097)])
    for tag in ("", "x" * 201, "\0"):
        with pytest.raises((InvalidArgumentError, TooLargeError)):
            cache.set("k", 1, tag=tag if tag != "\0" else "")
    with pytest.raises(TypeError):
        cache.set("k", 1, tag=5)
    assert len(cache) == 0


def test_what_another_program_stored_is_not_read(cache):
    from larder._store import Options

    cache._store.put(encode("k"), b"\xff", Options(b"s"))
    with pytest.raises(SerializerError):
        cache["k"]
    cache._store.put(encode("k"), b"x", Options(b""))
    with pytest.raises(SerializerError):
        cache["k"]
