"""Which core runs what, so that every server under test gets the same one, and nothing else of the benchmark runs there."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    server: int
    load: int
    origin: int

    @staticmethod
    def available() -> Cores | None:
        """None with one core: then nothing is pinned."""
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            return None
        return Cores(server=allowed[0], load=allowed[1], origin=allowed[2] if len(allowed) > 2 else allowed[1])

    def described(self) -> str:
        origin = "origin there, too" if self.origin == self.load else f"origin on core {self.origin}"
        return f"server under test on core {self.server}, wrk on core {self.load}, {origin}"


def pinned(command: list[str], core: int | None) -> list[str]:
    return command if core is None else ["taskset", "--cpu-list", str(core), *command]


def yielding(command: list[str]) -> list[str]:
    """Runs only while no other process needs the core: wrk takes over as soon as it wakes."""
    return ["chrt", "--idle", "0", *command]
