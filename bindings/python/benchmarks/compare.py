"""Larder and diskcache in one run: get and set of 1 and 16 KiB, by one thread.

    python benchmarks/compare.py [--seconds 0.5] [--rounds 5]

Prints microseconds a call, the least of the rounds, which alternate between the two, and the ratio. Values are bytes,
keys str, and both caches hold 1,000 entries, so every get is a hit. diskcache is as it comes: SQLite in WAL mode,
synchronous=NORMAL. Larder is as it comes, too: a put waits for no disk; a call of flush() at the end of each round of
puts, which does wait, is part of the round. With --durable every set survives power loss (Larder only).
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict

import diskcache

import larder

COUNT = 1_000


def per_call(work: Callable[[str], Any], finish: Callable[[], Any], seconds: float, start: int) -> float:
    """Microseconds of a call, over at least `seconds`."""
    calls = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for number in range(start, start + COUNT):
            work(f"key-{number}")
        calls += COUNT
    finish()
    return (time.perf_counter() - began) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--durable", action="store_true")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="larder-benchmark-")
    caches: Dict[str, Any] = {
        "larder": larder.Cache(os.path.join(directory, "larder"), durable=arguments.durable),
        "diskcache": diskcache.Cache(os.path.join(directory, "diskcache")),
    }
    try:
        print(f"{'':<14}{'larder':>10}{'diskcache':>12}   ratio")
        for length in (1 << 10, 16 << 10):
            value = os.urandom(length)
            steps: Dict[str, Callable[[Any], Callable[[str], Any]]] = {
                "set": lambda cache: lambda key: cache.set(key, value),
                "get (hit)": lambda cache: cache.get,
                "get (miss)": lambda cache: lambda key: cache.get(key + "-"),
            }
            for name, step in steps.items():
                best: Dict[str, float] = {}
                for _ in range(arguments.rounds):
                    for label, cache in caches.items():
                        finish = (lambda: caches["larder"].flush(False)) if (label, name) == ("larder", "set") else int
                        took = per_call(step(cache), finish, arguments.seconds, 0)
                        best[label] = min(best.get(label, took), took)
                row = f"{name} {length >> 10:>2} KiB"
                ratio = best["diskcache"] / best["larder"]
                print(f"{row:<16}{best['larder']:>8.2f}{best['diskcache']:>12.2f}{ratio:>8.1f}", flush=True)
    finally:
        for cache in caches.values():
            cache.close()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
