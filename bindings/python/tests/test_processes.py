"""Several processes, and fork(2)."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from larder import Cache, ForkedError


def count_up(directory, times):
    with Cache(directory) as cache:
        for _ in range(times):
            cache.incr("n")


def test_processes_share_a_cache(cache):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=count_up, args=(cache.directory, 20)) for _ in range(2)]
    for process in processes:
        process.start()
    count_up(cache.directory, 20)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert cache["n"] == 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork(2)")
def test_a_forked_child_gets_an_error_and_the_parent_continues(cache):
    cache["k"] = 1
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answers = []
        for call in (lambda: cache["k"], lambda: cache.set("k", 2), lambda: Cache(cache.directory)):
            try:
                call()
                answers.append("none")
            except ForkedError as failure:
                answers.append("forked" if "fork" in str(failure) else str(failure))
            except BaseException as failure:
                answers.append(repr(failure))
        os.write(writing, ",".join(answers).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        assert pipe.read() == "forked,forked,forked"
    os.waitpid(child, 0)
    assert cache["k"] == 1
    cache["k"] = 3
    assert cache["k"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork(2)")
def test_a_child_may_open_a_cache_if_its_parent_has_not(tmp_path):
    program = (
        "import os, sys, larder\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    with larder.Cache(sys.argv[1]) as cache: cache['k'] = 'child'\n"
        "    os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "with larder.Cache(sys.argv[1]) as cache: print(cache['k'])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "c")], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout == "child\n"
