"""What the origin serves: one file of each size, incompressible, and text to compress; the same in every run."""

from __future__ import annotations

import gzip
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

    @property
    def fields(self) -> list[str]:
        """Of a request for it."""
        return []

    @property
    def least_bytes(self) -> int:
        """Of an answer that is whole."""
        return self.size_bytes

    def content(self) -> bytes:
        return random.Random(self.size_bytes).randbytes(self.size_bytes)


@dataclass(frozen=True)
class Text(Body):
    """Asked for by clients that accept gzip."""

    @property
    def path(self) -> str:
        return f"/files/{self.size_bytes}.html"

    @property
    def fields(self) -> list[str]:
        return ["Accept-Encoding: gzip"]

    @property
    def least_bytes(self) -> int:
        return len(gzip.compress(self.content(), 9)) // 2

    def content(self) -> bytes:
        words = random.Random(self.size_bytes)
        text = " ".join(f"word{words.randrange(4096)}" for _ in range(self.size_bytes // 5))
        return text.encode()[: self.size_bytes]


SMALL = Body("1 KiB", 1 << 10)
BODIES = [SMALL, Body("16 KiB", 16 << 10), Body("1 MiB", 1 << 20)]
TEXTS = [Text("4 KiB", 4 << 10), Text("64 KiB", 64 << 10), Text("1 MiB", 1 << 20)]


def write_bodies(root: pathlib.Path) -> None:
    for body in [*BODIES, *TEXTS]:
        file = root / body.path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.content())
