"""Values as bytes, and what they are: a letter that is stored with them.

``b``: bytes. ``s``: str, as UTF-8. ``j``: JSON. ``p``: pickle, which is never read or written unless the cache was
opened with ``serializer="pickle"``: anyone who can write to the directory could run code in the reader (CVE-2025-69872
describes that for another cache). ``c``: what the caller's own serializer made.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Callable, Dict, Protocol, Tuple, Union

from ._errors import SerializerError


class Serializer(Protocol):
    """Turns values other than bytes and str into bytes and back."""

    def dumps(self, value: Any) -> bytes: ...

    def loads(self, data: bytes) -> Any: ...


def kind_of(metadata: bytes) -> int:
    """The letter in the metadata of an entry; 0 for one of another program."""
    return metadata[0] if metadata else 0


class _JSON:
    kind = ord("j")

    @staticmethod
    def dumps(value: Any) -> bytes:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")

    @staticmethod
    def loads(data: bytes) -> Any:
        return json.loads(data)


class _Pickle:
    kind = ord("p")

    @staticmethod
    def dumps(value: Any) -> bytes:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def loads(data: bytes) -> Any:
        return pickle.loads(data)


class Values:
    """How a cache turns values into bytes and back."""

    BYTES = ord("b")
    TEXT = ord("s")

    def __init__(self, serializer: Union[str, Serializer]) -> None:
        chosen: Any
        if serializer == "json":
            chosen = _JSON
        elif serializer == "pickle":
            chosen = _Pickle
        elif isinstance(serializer, str):
            raise ValueError(f"serializer {serializer!r}: 'json', 'pickle', or an object with dumps and loads")
        else:
            chosen = serializer
        self._dumps: Callable[[Any], bytes] = chosen.dumps
        self._kind: int = getattr(chosen, "kind", ord("c"))
        # JSON can always be read: it runs nothing, and counters are stored as such.
        self._loads: Dict[int, Callable[[bytes], Any]] = {_JSON.kind: _JSON.loads, self._kind: chosen.loads}

    def encode(self, value: Any) -> Tuple[int, Any]:
        """The letter of a value, and its bytes: something with the buffer interface."""
        if isinstance(value, bytes):
            return self.BYTES, value
        if isinstance(value, str):
            return self.TEXT, value.encode("utf-8")
        if isinstance(value, (bytearray, memoryview)):
            return self.BYTES, bytes(value) if isinstance(value, bytearray) or not value.c_contiguous else value
        if type(value) is int:
            return _JSON.kind, b"%d" % value
        return self._kind, self._dumps(value)

    def decode(self, kind: int, data: bytes) -> Any:
        """The value of bytes."""
        if kind == self.BYTES:
            return data
        try:
            if kind == self.TEXT:
                return str(data, "utf-8")
            loads = self._loads.get(kind)
            if loads is not None:
                return loads(data)
        except Exception as failure:
            raise SerializerError(f"the stored value cannot be read: {failure}") from failure
        if kind == _Pickle.kind:
            raise SerializerError("the value was stored with pickle, which only serializer='pickle' reads")
        raise SerializerError("the value was not stored by this binding, or with another serializer")
