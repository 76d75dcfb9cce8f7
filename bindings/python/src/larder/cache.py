"""The cache: a mapping on disk with a size limit, and diskcache's usual calls."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._errors import InvalidArgumentError, TooLargeError
from ._files import open_body
from ._functions import Functions
from ._keys import Key, decode, encode
from ._store import Item, Options, Store, StoreKey, change_key
from ._transaction import Transactions
from ._values import Serializer, Values, kind_of

Tags = Union[None, str, Sequence[str]]
_READ_ONLY, _DURABLE, _KEEP_BODIES, _COMPRESS = 1, 2, 64, 128


def _tags(tag: Tags) -> Tuple[str, ...]:
    if tag is None:
        return ()
    if not isinstance(tag, (str, list, tuple, set, frozenset)):
        raise TypeError(f"a tag is a str, or several in a list, not {type(tag).__name__}")
    tags = (tag,) if isinstance(tag, str) else tuple(tag)
    for text in tags:
        if not isinstance(text, str):
            raise TypeError(f"a tag is a str, not {type(text).__name__}")
        if not text:
            raise InvalidArgumentError("a tag is empty", -1)
    # Here and not at the end of a transaction, when the other changes have been made.
    lengths = [len(text.encode("utf-8")) for text in tags]
    if len(tags) > 4096 or max(lengths, default=0) > 200 or sum(lengths) + len(tags) > 32768:
        raise TooLargeError("an entry has at most 4,096 tags, of 200 bytes each and 32,768 together", -12)
    return tags


class _Default:
    """The size limit where none was given."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT = _Default()


class Cache(Functions, Transactions):
    """A cache in a directory, which any number of threads and processes may use.

    Keys are ``bytes``, ``str``, ``int`` or tuples of them; values are ``bytes``, ``str`` or what JSON can say (tuples
    come back as lists). With ``serializer="pickle"`` any object: only where no one else can write to the directory.

    :param directory: made if it is missing; None: a new temporary directory.
    :param size_limit: bytes on disk, index included, which hold at every moment, for every process: at least 1 MiB.
        Default: as the store has; a new one gets 1 GiB. None: as the store has; a new one has no limit.
    :param entry_limit: the most entries. None: as the store has.
    :param expire: seconds after which entries expire that are set without ``expire``. None: never.
    :param durable: True: a change survives power loss when its call returns.
    :param read_only: opens an existing cache without changing it.
    :param inline_threshold: values up to this length are stored in the index, not in files: at most 1 MiB.
    :param memory: bytes of memory in which values that were read stay, for this process. None: none.
    :param compress: True: values are stored compressed where that saves an eighth or more.
    :param key: of an encrypted cache: 32 bytes that no one can guess, or a passphrase as ``str``, which takes some 0.2 s
        at each open. A cache is encrypted if it is made with a key, and then needs it at every open: WrongKeyError
        otherwise. None: not encrypted.
    :param version: of the application: entries of another one are not found.
    :param serializer: ``"json"``, ``"pickle"``, or an object with ``dumps`` and ``loads``.
    """

    def __init__(
        self,
        directory: Union[None, str, "os.PathLike[str]"] = None,
        size_limit: Union[int, None, _Default] = DEFAULT,
        *,
        entry_limit: Optional[int] = None,
        expire: Optional[float] = None,
        durable: bool = False,
        read_only: bool = False,
        inline_threshold: Optional[int] = None,
        memory: Optional[int] = None,
        compress: bool = False,
        key: Union[None, bytes, str] = None,
        version: Optional[str] = None,
        serializer: Union[str, Serializer] = "json",
    ) -> None:
        # Until it is open there is nothing to close.
        self._is_closed = True
        # Absolute: a forked child that changes its directory opens the same one again.
        path = tempfile.mkdtemp(prefix="larder-") if directory is None else os.fsdecode(directory)
        path = os.path.abspath(os.path.expanduser(path))
        if entry_limit is not None and entry_limit < 1:
            raise ValueError("entry_limit is less than 1")
        if isinstance(size_limit, int) and size_limit < 1:
            raise ValueError("size_limit is less than 1")
        if memory is not None and memory < 1:
            raise ValueError("memory is less than 1")
        self._key = None if key is None else StoreKey(key)
        if version is not None and not isinstance(version, str):
            raise TypeError(f"version is a str, not {type(version).__name__}")
        self._arguments: Dict[str, Any] = dict(
            directory=path, size_limit=size_limit, entry_limit=entry_limit, expire=expire, durable=durable,
            read_only=read_only, inline_threshold=inline_threshold, memory=memory, compress=compress,
            version=version, serializer=serializer,
        )
        self._open()

    def _open(self) -> None:
        given = self._arguments
        limits: Dict[str, int] = {}
        if given["inline_threshold"] is not None:
            limits["inline_threshold"] = given["inline_threshold"] or 2**64 - 1
        flags = (_READ_ONLY if given["read_only"] else 0) | (_DURABLE if given["durable"] else 0)
        if given["compress"]:
            flags |= _COMPRESS
        if given["memory"] is not None:
            limits["memory_limit"] = given["memory"]
            flags |= _KEEP_BODIES
        self._values = Values(given["serializer"])
        self._expire: Optional[float] = given["expire"]
        self._options: Dict[int, Options] = {}
        self._baseline = (0, 0)
        super().__init__()
        size, entries = given["size_limit"], given["entry_limit"]
        if size is DEFAULT:
            is_new = not os.path.exists(os.path.join(given["directory"], "index", "data.mdb"))
            size = 1 << 30 if is_new else None
        self._store = Store(given["directory"], flags, given["version"], self._key, **limits)
        if not given["read_only"] and (size is not None or entries is not None):
            try:
                self._store.set_limits(size, entries)
            except BaseException:
                self._store.close()
                raise
        # The limits are those of the store from here on: opened again, in a forked child or from a pickle, it keeps them.
        given["size_limit"] = given["entry_limit"] = None
        self._is_closed = False

    # Its directory, and opening and closing

    @property
    def directory(self) -> str:
        """The directory."""
        return str(self._arguments["directory"])

    def close(self) -> None:
        """Commits what is pending, and closes the cache. Calls after that raise ClosedError; closing again does not."""
        if not self._is_closed:
            self._is_closed = True
            self._store.close()

    @staticmethod
    def change_key(
        directory: Union[str, "os.PathLike[str]"], old: Union[bytes, str], new: Union[bytes, str]
    ) -> None:
        """Changes the key of an encrypted cache, which may be open. What is stored stays as it is: someone with the old
        key and an old copy of the file ``encryption`` can still read it."""
        change_key(os.path.abspath(os.path.expanduser(os.fsdecode(directory))), StoreKey(old), StoreKey(new))

    def flush(self, durable: bool = True) -> None:
        """Commits what is pending; with `durable` it survives power loss."""
        self._store.flush(durable)

    def __enter__(self) -> "Cache":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception as failure:
            # There is no caller to raise to. At the end of the interpreter there may be no logging left.
            if logging is not None:
                logging.getLogger("larder").error("closing %r failed: %s", self, failure)

    def __getstate__(self) -> Dict[str, Any]:
        if self._key is not None:
            raise TypeError("an encrypted cache is not pickled, as its key would be: open it again")
        return dict(self._arguments)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._is_closed = True
        self._key = None
        self._arguments = state
        self._open()

    def __repr__(self) -> str:
        return f"Cache({self.directory!r})"

    # Reading

    def get(
        self, key: Key, default: Any = None, read: bool = False, expire_time: bool = False, tag: bool = False
    ) -> Any:
        """The value under a key, or `default`.

        :param read: True: a binary file object instead of the value, for values that do not fit memory.
        :param expire_time: True: a tuple with the moment it expires, in seconds since 1970, or None.
        :param tag: True: a tuple with the tag, a tuple of several, or None.
        """
        if read or expire_time or tag:
            return self._get_more(key, default, read, expire_time, tag)
        data = b"s" + key.encode("utf-8") if type(key) is str else encode(key)
        if self._transactions:
            found = self._pending_value(data)
            if found is not None:
                return default if found[0] is None else self._values.decode(found[0], found[1])
        pair = self._store.read(data)
        if pair is None:
            return default
        metadata, body = pair
        if metadata[:1] == b"b":
            return body
        return self._values.decode(kind_of(metadata), body)

    def _get_more(self, key: Key, default: Any, read: bool, expire_time: bool, tag: bool) -> Any:
        self._refuse_in_transaction("get with read, expire_time or tag")
        body = self._store.get(encode(key))
        if body is None:
            value, item = default, None
        else:
            item = body.describe()
            value = open_body(body) if read else self._values.decode(kind_of(item.metadata), bytes(body.view()))
        if not expire_time and not tag:
            return value
        result: Tuple[Any, ...] = (value,)
        if expire_time:
            result += (None if item is None else item.expires,)
        if tag:
            tags = () if item is None else item.tags
            result += (None if not tags else tags[0] if len(tags) == 1 else tags,)
        return result

    def view(self, key: Key) -> Optional[memoryview]:
        """The bytes of a value without a copy: a read-only view of memory or of a mapped file, or None.

        It stays as it is whatever happens to the entry, and keeps its memory until the last view of it is gone.
        """
        self._refuse_in_transaction("view")
        body = self._store.get(encode(key))
        return None if body is None else body.view()

    def read(self, key: Key) -> Any:
        """A binary file object with the value. Raises KeyError for a miss."""
        self._refuse_in_transaction("read")
        body = self._store.get(encode(key))
        if body is None:
            raise KeyError(key)
        return open_body(body)

    def __getitem__(self, key: Key) -> Any:
        missing = _MISSING
        value = self.get(key, missing)
        if value is missing:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        data = encode(key)
        if self._transactions:
            found = self._pending_value(data)
            if found is not None:
                return found[0] is not None
        return self._store.contains(data)

    # Writing

    def set(
        self, key: Key, value: Any, expire: Optional[float] = None, read: bool = False, tag: Tags = None
    ) -> bool:
        """Stores a value. Always True.

        :param expire: seconds until it expires. None: as the cache was opened.
        :param read: True: `value` is a binary file object, which is read to its end with bounded memory.
        :param tag: a tag, or several.
        """
        data = encode(key)
        if read:
            self._refuse_in_transaction("set with read=True")
            self._store.put_stream(data, value.read, self._options_for(Values.BYTES, expire, tag))
            return True
        kind, body = self._values.encode(value)
        options = self._options_for(kind, expire, tag)
        if self._transactions and self._note(data, kind, body, options, expire, tag):
            return True
        self._store.put(data, body, options)
        return True

    def _options_for(self, kind: int, expire: Optional[float], tag: Tags, extra: bytes = b"") -> Options:
        if expire is None:
            expire = self._expire
        if expire is not None or tag is not None or extra:
            return Options(bytes((kind,)) + extra, expire, _tags(tag))
        options = self._options.get(kind)
        if options is None:
            # Not changed once it is made, so threads may share it.
            options = self._options[kind] = Options(bytes((kind,)))
        return options

    def __setitem__(self, key: Key, value: Any) -> None:
        self.set(key, value)

    def add(self, key: Key, value: Any, expire: Optional[float] = None, tag: Tags = None) -> bool:
        """Stores a value unless there is one. Of several threads and processes one gets True."""
        data = encode(key)
        kind, body = self._values.encode(value)
        options = self._options_for(kind, expire, tag)
        if self._transactions and self._is_in_transaction():
            return False if key in self else self._note(data, kind, body, options, expire, tag)
        return self._store.put_if_absent(data, bytes(body), options)

    def incr(self, key: Key, delta: int = 1, default: Optional[int] = 0) -> int:
        """Adds to a number, and returns the sum: no update of any thread or process is lost, outside of transactions.

        The expiry and the tags of the entry stay. Raises KeyError without an entry if `default` is None, TypeError if
        the value is not an int.
        """
        data = encode(key)
        if self._transactions and self._is_in_transaction():
            return self._incr_in_transaction(key, delta, default)
        while True:
            body = self._store.get(data)
            if body is None:
                if default is None:
                    raise KeyError(key)
                number = default + delta
                kind, new = self._values.encode(number)
                if self._store.put_if_absent(data, new, self._options_for(kind, None, None)):
                    return number
                continue
            item = body.describe()
            value = self._values.decode(kind_of(item.metadata), bytes(body.view()))
            if type(value) is not int:
                raise TypeError(f"the value of {key!r} is not an int")
            number = value + delta
            kind, new = self._values.encode(number)
            expires = None if item.expires is None else round(item.expires * 1_000_000)
            if self._store.put_if_unchanged(body, new, Options(bytes((kind,)), None, item.tags, expires)):
                return number

    def decr(self, key: Key, delta: int = 1, default: Optional[int] = 0) -> int:
        """Subtracts from a number, and returns the difference: see `incr`. It may become negative."""
        return self.incr(key, -delta, default)

    def touch(self, key: Key, expire: Optional[float] = None) -> bool:
        """Gives an entry a new lifetime in seconds; None: without end. False if there is none."""
        self._refuse_in_transaction("touch")
        data = encode(key)
        # What has expired may still be there, and stays a miss.
        return self._store.contains(data) and self._store.touch(data, expire)

    # Removing

    def pop(self, key: Key, default: Any = None, expire_time: bool = False, tag: bool = False) -> Any:
        """Removes an entry and returns its value, or `default`. Of several callers one gets the value."""
        data = encode(key)
        if self._transactions and self._is_in_transaction():
            if expire_time or tag:
                self._refuse_in_transaction("pop with expire_time or tag")
            value = self.get(key, default)
            self.delete(key)
            return value
        while True:
            body = self._store.get(data)
            if body is None:
                found: Any = default
                more: Tuple[Any, ...] = (None,) * (expire_time + tag)
                return (found, *more) if more else found
            item = body.describe()
            value = self._values.decode(kind_of(item.metadata), bytes(body.view()))
            if self._store.remove_if_unchanged(body):
                result: Tuple[Any, ...] = (value,)
                if expire_time:
                    result += (item.expires,)
                if tag:
                    result += (item.tags[0] if len(item.tags) == 1 else item.tags or None,)
                return result if len(result) > 1 else value

    def delete(self, key: Key) -> bool:
        """Removes an entry. False if there was none."""
        data = encode(key)
        if self._transactions and self._is_in_transaction():
            existed = key in self
            self._note_removal(data)
            return existed
        # What has expired may still be there. It is removed, and was none.
        existed = self._store.contains(data)
        return self._store.remove(data) and existed

    def __delitem__(self, key: Key) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def evict(self, tag: str) -> int:
        """Removes the entries with a tag; how many there were."""
        self._refuse_in_transaction("evict")
        if not isinstance(tag, str):
            raise TypeError(f"a tag is a str, not {type(tag).__name__}")
        return self._store.remove_selected(tag=tag)

    def expire(self) -> int:
        """Removes what has expired; how many entries that were. It happens by itself, too, in the background."""
        self._refuse_in_transaction("expire")
        return self._store.remove_selected(expired=True)

    def cull(self) -> int:
        """Puts the store in order: removes what expired, what dead processes left, and what exceeds the limits."""
        self._refuse_in_transaction("cull")
        result = self._store.collect()
        return int(result.expired + result.displaced + result.dangling)

    def clear(self) -> int:
        """Removes every entry; how many there were."""
        self._refuse_in_transaction("clear")
        return self._store.clear()

    # The whole cache

    def __len__(self) -> int:
        statistics = self._store.statistics()
        return int(statistics.entries + statistics.memory_entries)

    def __iter__(self) -> Iterator[Key]:
        """The keys, in the order of their bytes. All of them are in memory at once."""
        return self.iterkeys()

    def __reversed__(self) -> Iterator[Key]:
        return self.iterkeys(reverse=True)

    def iterkeys(self, reverse: bool = False) -> Iterator[Key]:
        """The keys in the order of their bytes, or backwards. Those of other programs are left out."""
        items = self._store.items()
        for item in reversed(items) if reverse else items:
            try:
                key = decode(item.key)
                if encode(key) == item.key:
                    yield key
            except (ValueError, RecursionError):
                continue

    def describe(self, key: Key) -> Optional[Item]:
        """What is known of an entry, expired or not: length, hits, tags, expiry. None without one."""
        return self._store.describe(encode(key))

    def volume(self) -> int:
        """Bytes that the cache takes on disk, index included."""
        return int(self._store.statistics().allocated_bytes)

    def check(self, fix: bool = False) -> List[str]:
        """Compares every value with its digest, and the index with the files; what does not hold, as text."""
        return self._store.check(fix)

    def stats(self, enable: bool = True, reset: bool = False) -> Tuple[int, int]:
        """Hits and misses of all processes, or since the latest `reset` of this object. `enable` has no effect."""
        statistics = self._store.statistics()
        hits, misses = self._baseline
        result = (statistics.hits - hits, statistics.misses - misses)
        if reset:
            self._baseline = (statistics.hits, statistics.misses)
        return result


_MISSING = object()
