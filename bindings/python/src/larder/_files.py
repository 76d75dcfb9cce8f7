"""Bodies as file objects."""

from __future__ import annotations

import io
from typing import Any

from ._store import Body


class _Reader(io.RawIOBase):
    def __init__(self, body: Body) -> None:
        self._body = body
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: len(self._body)}[whence]
        if start + offset < 0:
            raise ValueError("a position before the start")
        self._offset = start + offset
        return self._offset

    def readinto(self, target: Any) -> int:
        count = self._body.read_into(self._offset, target)
        self._offset += count
        return count


def open_body(body: Body) -> io.BufferedReader:
    """A body as a binary file object."""
    return io.BufferedReader(_Reader(body), 1 << 16)
