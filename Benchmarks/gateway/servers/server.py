"""A server under test, running: what the measures need to know of it."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable

from system.ports import HOST
from system.processes import Process, process_tree


@dataclass
class Server:
    name: str
    process: Process
    port: int
    is_hit: Callable[[Mapping[str, str]], bool]
    """Whether the fields of an answer (names in lower case) say that it came from the cache."""
    described: str
    """Configuration and command line, for the report."""
    secure_port: int | None = None
    """For TLS and HTTP/2."""
    store: pathlib.Path | None = None
    """The directory of what it stores."""
    serves: Callable[[int], bool] = lambda _pid: True
    """Whether the memory of one of its processes counts."""

    def serving_processes(self) -> list[int]:
        return [pid for pid in process_tree(self.process.pid) if self.serves(pid)]

    def url(self, path: str, is_secure: bool = False) -> str:
        return f"https://{HOST}:{self.secure_port}{path}" if is_secure else f"http://{HOST}:{self.port}{path}"


@dataclass(frozen=True)
class Kind:
    """How to start one. `start(directory, origin_port, cores)` takes an empty directory for the store and all else."""

    name: str
    start: Callable[..., Server]
