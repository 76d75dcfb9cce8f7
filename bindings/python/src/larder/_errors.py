"""What goes wrong, as exceptions. A miss is not an error."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """A call of the library failed. ``status`` is its number in ``larder/status.h``."""

    def __init__(self, message: str, status: int = -100, number: int = 0) -> None:
        super().__init__(message)
        self.status = status
        #: The errno of the system call that failed; 0 if there is none.
        self.errno = number


class InvalidArgumentError(Error, ValueError):
    """An argument is out of its documented range."""


class ClosedError(Error):
    """The cache was closed before."""


class LockedError(Error):
    """Another program holds what is needed, or the directory is open with other settings."""


class NoSpaceError(Error):
    """The file system or the size limit leaves no room."""


class CorruptionError(Error):
    """A file of the store is damaged: call ``Cache.check(fix=True)``."""


class FormatError(Error):
    """The directory is not a store, or of a format that this version does not know."""


class WrongKeyError(Error):
    """The cache is encrypted, and the key is another one or missing; or it is not, and a key was given."""


class TooLargeError(Error, ValueError):
    """The value, key or tags are larger than the limit."""


class ReadOnlyError(Error):
    """The cache was opened read-only."""


class ForkedError(Error):
    """A body that was looked up before a fork is used in the child. Caches themselves are opened again there."""


class SerializerError(Error):
    """A stored value cannot be read with the serializer of the cache, or was damaged."""


class Timeout(Error):
    """A lock was not released in time."""


_CLASSES: Dict[int, Type[Error]] = {
    -1: InvalidArgumentError,
    -2: ClosedError,
    -3: LockedError,
    -5: NoSpaceError,
    -8: CorruptionError,
    -9: FormatError,
    -12: TooLargeError,
    -13: ReadOnlyError,
    -15: ForkedError,
    -18: WrongKeyError,
}


def error(status: int, message: str, number: int) -> Error:
    """The exception for an error of the library."""
    return _CLASSES.get(status, Error)(message, status, number)
