"""Several processes, and fork(2)."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from larder import Cache, Lock


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


def in_child(run):
    """What `run` returns in a child of fork(2), as text, or what it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            answer = str(run())
        except BaseException as failure:
            answer = repr(failure)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork(2)")


@needs_fork
def test_a_child_uses_the_cache_of_its_parent(cache):
    cache["k"] = 1

    def child():
        seen = cache["k"], cache.incr("k")
        with cache.transact():
            cache["t"] = "transaction"
        with Lock(cache, "lock"):
            cache["large"] = b"x" * 1_000_000
        return seen

    # What was put is there although nothing waited for its commit; and so is what the child puts when it has ended.
    assert in_child(child) == "(1, 2)"
    assert (cache["k"], cache["t"], len(cache["large"])) == (2, "transaction", 1_000_000)
    cache["k"] = 3
    # And children of children.
    assert in_child(lambda: in_child(lambda: cache["k"])) == "3"
    assert in_child(lambda: (cache.get("k"), in_child(lambda: cache.incr("k")), cache.get("k"))) == "(3, '4', 4)"


@needs_fork
def test_children_are_forked_while_threads_use_the_cache(cache):
    is_over = threading.Event()

    def use(name):
        while not is_over.is_set():
            cache.set((name, "k"), b"x" * 100)
            with cache.transact():
                cache.incr("n")
            cache.get((name, "k"))

    threads = [threading.Thread(target=use, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    try:
        for round in range(20):
            assert in_child(lambda: put_and_flush(cache, round)) == str(round)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert [cache[("child", round)] for round in range(20)] == list(range(20))


@needs_fork
def test_the_last_puts_of_forked_workers_are_kept(cache):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=cache.set, args=(n, b"x" * 100)) for n in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [n for n in range(10) if n not in cache] == []


@needs_fork
def test_a_pool_of_forked_workers_shares_the_cache(cache):
    with multiprocessing.get_context("fork").Pool(3, initializer=use_in_worker, initargs=(cache,)) as pool:
        assert sorted(pool.map(count_in_worker, range(60))) == list(range(1, 61))
    assert cache["n"] == 60


def put_and_flush(cache, number):
    cache.set(("child", number), number)
    cache.flush(durable=False)
    return cache.get(("child", number))


def use_in_worker(cache):
    global worker_cache
    worker_cache = cache


def count_in_worker(_):
    return worker_cache.incr("n")


@needs_fork
def test_a_child_does_not_hold_the_locks_of_its_parent(cache):
    lock = Lock(cache, "lock")
    lock.acquire()
    assert "not held" in in_child(lock.release)
    assert lock.locked()
    lock.release()


@needs_fork
def test_bodies_of_the_parent_are_refused_and_views_stay(cache):
    cache["k"] = b"x" * 200_000
    view, file = cache.view("k"), cache.read("k")
    assert in_child(lambda: bytes(view) == b"x" * 200_000) == "True"
    assert in_child(lambda: file.read()).startswith("ForkedError")
    assert file.read() == b"x" * 200_000


@needs_fork
def test_a_parent_that_died_is_not_taken_for_alive_because_of_its_child(tmp_path):
    # The parent dies in the middle of a put; its child lives on.
    program = (
        "import os, signal, sys, time, larder\n"
        "cache = larder.Cache(sys.argv[1])\n"
        "def pieces():\n"
        "    yield b'x' * 1_000_000\n"
        "    if os.fork() == 0:\n"
        "        print('child', os.getpid(), flush=True)\n"
        "        os.close(1)\n"
        "        time.sleep(300)\n"
        "        os._exit(0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "class File:\n"
        "    source = pieces()\n"
        "    def read(self, _): return next(self.source)\n"
        "cache.set('k', File(), read=True)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True, timeout=120)
    assert run.returncode == -signal.SIGKILL
    child = int(run.stdout.split()[1])
    try:
        staging = tmp_path / "c" / "staging"
        assert max(file.stat().st_size for file in staging.iterdir()) == 1_000_000
        with Cache(tmp_path / "c") as cache:
            cache.cull()
            assert [file.name for file in staging.iterdir() if file.stat().st_size > 0] == []
    finally:
        os.kill(child, signal.SIGKILL)


@needs_fork
@needs_fork
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
