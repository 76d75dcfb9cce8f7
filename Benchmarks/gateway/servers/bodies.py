"""What the origin serves: one file of each size, incompressible, the same in every run."""

from __future__ import annotations

import pathlib
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    label: str
    size_bytes: int

    @property
    def path(self) -> str:
        return f"/files/{self.size_bytes}.bin"

    def content(self) -> bytes:
        return random.Random(self.size_bytes).randbytes(self.size_bytes)


SMALL = Body("1 KiB", 1 << 10)
BODIES = [SMALL, Body("16 KiB", 16 << 10), Body("1 MiB", 1 << 20)]


def write_bodies(root: pathlib.Path) -> None:
    for body in BODIES:
        file = root / body.path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.content())
