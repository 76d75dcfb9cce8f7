"""Values without a copy: the memory lives as long as the last view of it."""

import gc
import os

import pytest


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("length", [10, 1_000_000])
def test_a_view_outlives_the_entry(cache, length):
    value = os.urandom(length)
    cache["k"] = value
    view = cache.view("k")
    part = view[3:7]
    cache["k"] = b"other"
    del cache["k"], view
    cache.cull()
    gc.collect()
    assert part == value[3:7] and part.readonly
    with pytest.raises(TypeError):
        part[0] = 1


def test_views_of_nothing(cache):
    cache["empty"] = b""
    assert cache.view("empty") == b"" and cache.view("none") is None


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_views_give_their_files_back(cache):
    cache["k"] = bytes(1_000_000)
    cache.flush()
    before = descriptors()
    views = [cache.view("k") for _ in range(5)]
    assert descriptors() == before + 5
    parts = [view[:5] for view in views]
    del views
    gc.collect()
    assert descriptors() == before + 5
    del parts
    gc.collect()
    assert descriptors() == before
