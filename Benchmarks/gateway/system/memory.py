"""Resident memory of a server, summed over its processes, in bytes."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

from system.failure import Failure


@dataclass(frozen=True)
class Memory:
    resident: int
    """VmRSS. Pages that master and worker share count twice."""
    anonymous: int
    """RssAnon: without pages of programs, libraries, mapped files and shared memory."""
    proportional: int
    """Pss: shared pages count once, divided among those who share them."""
    processes: int

    @staticmethod
    def of(members: list[int]) -> Memory:
        return Memory(
            resident=sum(_kib(member, "status", "VmRSS:") for member in members) * 1024,
            anonymous=sum(_kib(member, "status", "RssAnon:") for member in members) * 1024,
            proportional=sum(_kib(member, "smaps_rollup", "Pss:") for member in members) * 1024,
            processes=len(members),
        )


def _kib(pid: int, file: str, field: str) -> int:
    for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise Failure(f"/proc/{pid}/{file} has no {field}")
