"""A cache on disk with a size limit that holds at every moment: the Python binding of Larder.

    from larder import Cache

    with Cache("/var/cache/app", size_limit=1 << 30) as cache:
        cache.set("key", b"value", expire=60, tag="news")
        value = cache["key"]

See docs/python.md.
"""

from ._errors import (
    ClosedError,
    CorruptionError,
    Error,
    ForkedError,
    FormatError,
    InvalidArgumentError,
    LockedError,
    NoSpaceError,
    ReadOnlyError,
    SerializerError,
    Timeout,
    TooLargeError,
    WrongKeyError,
)
from ._keys import Key
from ._library import library_version
from ._locks import Lock
from ._store import Item
from ._values import Serializer
from .aio import AsyncCache
from .cache import Cache

__version__ = "0.1.0"

__all__ = [
    "AsyncCache",
    "Cache",
    "ClosedError",
    "CorruptionError",
    "Error",
    "ForkedError",
    "FormatError",
    "InvalidArgumentError",
    "Item",
    "Key",
    "Lock",
    "LockedError",
    "NoSpaceError",
    "ReadOnlyError",
    "Serializer",
    "SerializerError",
    "Timeout",
    "TooLargeError",
    "WrongKeyError",
    "library_version",
]
