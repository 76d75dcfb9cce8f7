"""Encrypted caches."""

from __future__ import annotations

import os
import pickle
import sys

import pytest
from larder import Cache, WrongKeyError


def contents(directory) -> bytes:
    found = b""
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found += name.encode() + file.read()
    return found


def test_only_the_key_opens_a_cache(tmp_path):
    key = os.urandom(32)
    with Cache(tmp_path / "c", key=key) as cache:
        cache.set("a secret key", b"SECRET" * 50_000, tag="a secret tag")
        cache.set("small", "SECRET text")
    assert b"SECRET" not in contents(tmp_path) and b"a secret" not in contents(tmp_path)
    for wrong in (None, os.urandom(32), "a passphrase"):
        with pytest.raises(WrongKeyError):
            Cache(tmp_path / "c", key=wrong)
    with Cache(tmp_path / "c", key=key) as cache:
        assert cache.get("a secret key") == b"SECRET" * 50_000 and cache.get("small") == "SECRET text"
        assert cache.check() == []
    with Cache(tmp_path / "plain") as cache:
        cache.set("k", 1)
    with pytest.raises(WrongKeyError):
        Cache(tmp_path / "plain", key=key)


def test_the_key_is_changed(tmp_path):
    with Cache(tmp_path / "c", key="first passphrase") as cache:
        cache.set("k", 1)
        Cache.change_key(tmp_path / "c", "first passphrase", b"k" * 32)
        cache.set("l", 2)
    with pytest.raises(WrongKeyError):
        Cache(tmp_path / "c", key="first passphrase")
    with pytest.raises(WrongKeyError):
        Cache.change_key(tmp_path / "c", "first passphrase", b"l" * 32)
    with Cache(tmp_path / "c", key=b"k" * 32) as cache:
        assert cache.get("k") == 1 and cache.get("l") == 2


@pytest.mark.parametrize("key", [b"", b"k" * 31, b"k" * 33, "", "p" * 1025, "a\0b"])
def test_what_is_no_key_is_refused(tmp_path, key):
    with pytest.raises(ValueError):
        Cache(tmp_path / "c", key=key)
    with pytest.raises(TypeError):
        Cache(tmp_path / "c", key=5)
    assert not (tmp_path / "c" / "FORMAT").exists()


def test_a_key_is_neither_pickled_nor_printed(tmp_path):
    with Cache(tmp_path / "c", key="very secret") as cache:
        with pytest.raises(TypeError):
            pickle.dumps(cache)
        assert "secret" not in repr(cache)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_child_opens_it_again(tmp_path):
    with Cache(tmp_path / "c", key=b"k" * 32) as cache:
        cache.set("k", 1)
        cache.flush()
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.get("k") == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
