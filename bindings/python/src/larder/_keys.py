"""Keys: ``bytes``, ``str``, ``int``, and tuples of them, as bytes that say which.

=======  =====================================================================
str      ``s`` and its UTF-8
bytes    ``b`` and the bytes
int      ``i`` and its decimal digits
tuple    ``t``, and for each part the length of its encoding, ``:`` and that
=======  =====================================================================

So ``1``, ``"1"``, ``b"1"`` and ``("1",)`` are four keys, and keys with a common first text have common first bytes.
``True`` is not ``1``: bools, floats and ``None`` are not keys.
"""

from __future__ import annotations

from typing import Any, Tuple, Union

Key = Union[str, bytes, int, Tuple[Any, ...]]


def encode(key: object) -> bytes:
    """The bytes of a key. Raises TypeError for any other type."""
    if isinstance(key, str):
        return b"s" + key.encode("utf-8")
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, int) and not isinstance(key, bool):
        return b"i%d" % key
    if isinstance(key, tuple):
        parts = [encode(part) for part in key]
        return b"t" + b"".join(b"%d:%s" % (len(part), part) for part in parts)
    raise TypeError(f"a key is bytes, str, int or a tuple of them, not {type(key).__name__}")


def decode(data: bytes) -> Key:
    """The key with these bytes. Raises ValueError for bytes that ``encode`` does not make."""
    kind, rest = data[:1], data[1:]
    if kind == b"s":
        return rest.decode("utf-8")
    if kind == b"b":
        return rest
    if kind == b"i":
        return int(rest)
    if kind == b"t":
        parts = []
        while rest:
            length, _, rest = rest.partition(b":")
            count = int(length)
            if count < 1 or count > len(rest):
                raise ValueError("a part of a key is cut")
            parts.append(decode(rest[:count]))
            rest = rest[count:]
        return tuple(parts)
    raise ValueError("not a key of this binding")
