"""What the origin serves, and how it is asked for: files of each size, incompressible, and text; the same in every run."""

from __future__ import annotations

import gzip
import os
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

    @property
    def most_bytes(self) -> int:
        """Of an answer with its head."""
        return self.least_bytes + 2048

    status = 200
    """Of an answer."""

    def content(self) -> bytes:
        """Of the whole representation."""
        return random.Random(self.size_bytes).randbytes(self.size_bytes)

    def answer(self) -> bytes:
        """The content of an answer."""
        return self.content()


@dataclass(frozen=True)
class Varying(Body):
    """Its answer says `Vary: Accept-Encoding`."""

    @property
    def path(self) -> str:
        return f"/vary/{self.size_bytes}.bin"

    @property
    def fields(self) -> list[str]:
        return ["Accept-Encoding: gzip, deflate, br"]


@dataclass(frozen=True)
class Part(Body):
    """200 bytes of it."""

    status = 206

    @property
    def fields(self) -> list[str]:
        return ["Range: bytes=1000-1199"]

    @property
    def least_bytes(self) -> int:
        return 200

    def answer(self) -> bytes:
        return self.content()[1000:1200]


@dataclass(frozen=True)
class Unchanged(Body):
    """The client has it."""

    status = 304

    @property
    def fields(self) -> list[str]:
        # As nginx, the origin, makes it of the file.
        return [f'If-None-Match: "{_MODIFIED:x}-{self.size_bytes:x}"']

    @property
    def least_bytes(self) -> int:
        return 0

    def answer(self) -> bytes:
        return b""


@dataclass(frozen=True)
class Passing(Body):
    """Its answer says `no-store`."""

    @property
    def path(self) -> str:
        return f"/pass/{self.size_bytes}.bin"


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

    @property
    def most_bytes(self) -> int:
        return self.size_bytes + 2048

    def content(self) -> bytes:
        words = random.Random(self.size_bytes)
        text = " ".join(f"word{words.randrange(4096)}" for _ in range(self.size_bytes // 5))
        return text.encode()[: self.size_bytes]


_MODIFIED = 1_700_000_000

SMALL = Body("1 KiB", 1 << 10)
MIDDLE = Body("16 KiB", 16 << 10)
LARGE = Body("1 MiB", 1 << 20)
BODIES = [SMALL, MIDDLE, LARGE]
TEXTS = [Text("4 KiB", 4 << 10), Text("64 KiB", 64 << 10), Text("1 MiB", 1 << 20)]


# Sizes of responses of the Web: most are short, and the few long ones are most of the bytes.
WEB_SIZES = (300, 700, 1500, 3000, 5000, 8000, 12000, 18000, 27000, 45000, 90000, 250000)
NUMBERED_SIZES = (1000, 16000)
FILLER = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100))


@dataclass(frozen=True)
class Numbered(Body):
    """One of any number of URLs, each with content of its own: its path, and a filler of `size_bytes`. A cache that stores
    the same content once gains nothing."""

    number: str = ""
    kind: str = "many"
    """Or `changing`: to be stored for a second."""

    @property
    def path(self) -> str:
        return f"/{self.kind}/{self.size_bytes}/{self.number}"

    @property
    def tag(self) -> str:
        return f'"{self.path}"'

    def content(self) -> bytes:
        return (self.path + FILLER * (self.size_bytes // 100)).encode()


def write_bodies(root: pathlib.Path) -> None:
    for body in [*BODIES, *TEXTS]:
        file = root / body.path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.content())
        os.utime(file, (_MODIFIED, _MODIFIED))
