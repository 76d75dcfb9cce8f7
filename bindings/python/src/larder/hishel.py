"""Storages for hishel 2, the HTTP cache for httpx and requests.

    from larder import Cache
    from larder.hishel import LarderStorage

    storage = LarderStorage(Cache("/var/cache/http"))

An entry is a value of the cache: its body is streamed in both directions, and the rest is its metadata. hishel finds
entries by a cache key, which is a tag here, and by an id, which is the key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from dataclasses import replace
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Set, Tuple, TypeVar, Union, cast

import hishel
from hishel import Entry, Headers, Request, Response

from ._errors import ClosedError, Error
from ._store import Body, Options, Writer
from .cache import Cache

logger = logging.getLogger(__name__)
T = TypeVar("T")
#: Bytes of a body that are read at a time.
_PIECE = 1 << 16


def _key(identifier: uuid.UUID) -> bytes:
    # Not the encoding of a key of the caller.
    return b"H" + identifier.bytes


def _tag(key: str) -> str:
    # A tag has at most 200 bytes, and a URL may have more.
    return "hishel:" + hashlib.sha256(key.encode("utf-8")).hexdigest()


def _headers(headers: Any) -> List[Tuple[str, str]]:
    return [(name, value) for name, values in headers._headers.items() for value in _values(values)]


def _values(values: Union[str, List[str]]) -> List[str]:
    return [values] if isinstance(values, str) else list(values)


def _parse_headers(pairs: List[Tuple[str, str]]) -> Headers:
    found: Dict[str, List[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return Headers(cast(Any, {name: values[0] if len(values) == 1 else values for name, values in found.items()}))


class _Record:
    """What is stored with a body."""

    def __init__(
        self, request: Request, response: Response, key: str, deadline: Optional[float], tti: Optional[float]
    ) -> None:
        self.request, self.response, self.key, self.deadline, self.tti = request, response, key, deadline, tti

    def pack(self) -> bytes:
        value = {
            "request": [self.request.method, self.request.url, _headers(self.request.headers)],
            "response": [self.response.status_code, _headers(self.response.headers)],
            "key": self.key, "deadline": self.deadline, "tti": self.tti,
        }
        return b"c" + json.dumps(value, separators=(",", ":")).encode("utf-8")

    @classmethod
    def unpack(cls, data: bytes) -> "_Record":
        value = json.loads(data[1:])
        method, url, headers = value["request"]
        status, fields = value["response"]
        return cls(
            Request(method=method, url=url, headers=_parse_headers(headers)),
            Response(status_code=status, headers=_parse_headers(fields)), value["key"], value["deadline"], value["tti"],
        )


class _Saving:
    """A body on its way into the cache. A failure ends the saving, never the reading."""

    def __init__(self, storage: "_Core", entry: Entry, record: _Record, expire: Optional[float]) -> None:
        self._storage, self._id, self._length = storage, entry.id, 0
        self._writer: Optional[Writer] = None
        options = Options(record.pack(), expire, (_tag(record.key), "hishel"))
        self._writer = Writer(storage.cache._store, _key(entry.id), options)
        storage.pending.add(entry.id)

    def _attempt(self, step: Callable[[Writer], None]) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            step(writer)
        except Error:
            logger.exception("could not store a response; it is delivered all the same")
            self.drop()

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        most = self._storage.max_stream_size
        if most is not None and self._length > most:
            self.drop()
        self._attempt(lambda writer: writer.write(piece))

    def finish(self) -> None:
        # Removed while it was written: then it stays removed.
        if self._id not in self._storage.pending:
            self.drop()
        self._attempt(lambda writer: writer.commit())
        self._writer = None
        self._storage.pending.discard(self._id)

    def drop(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.cancel()
        self._storage.pending.discard(self._id)


class _Core:
    """What both storages do with the cache."""

    cache: Cache
    max_stream_size: Optional[int]

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        #: Entries whose body is on its way.
        self.pending: Set[uuid.UUID] = set()

    def begin(
        self, request: Request, response: Response, key: str, deadline: Optional[float], tti: Optional[float],
        expires: Optional[float],
    ) -> Tuple[Entry, Optional[_Saving]]:
        entry = Entry(id=uuid.uuid4(), request=request, response=response)
        record = _Record(request, response, key, deadline, tti)
        try:
            return entry, _Saving(self, entry, record, None if expires is None else expires - time.time())
        except ClosedError:
            raise
        except Error:
            logger.exception("could not store a response; it is delivered all the same")
            return entry, None

    def find(
        self, key: str, expires_at: Callable[[Optional[float], Optional[float], float], Optional[float]]
    ) -> List[Tuple[uuid.UUID, _Record, Body]]:
        found = []
        try:
            store = self.cache._store
            for item in store.items(tag=_tag(key)):
                body = store.get(item.key)
                if body is None:
                    continue
                record = _Record.unpack(body.metadata())
                now = time.time()
                if record.key != key:
                    continue
                if record.tti is not None:
                    new = expires_at(record.deadline, record.tti, now)
                    # Most hits write nothing: a change is due once half of the time is over.
                    if new is not None and item.expires is not None and new - item.expires >= record.tti / 2:
                        store.touch(item.key, new - now)
                found.append((uuid.UUID(bytes=item.key[1:]), record, body))
        except ClosedError:
            raise
        except (Error, ValueError, KeyError, TypeError):
            logger.exception("could not read stored responses; the request is answered by the server")
            return []
        return found

    def change_headers(self, identifier: uuid.UUID, headers: Headers) -> None:
        try:
            body = self.cache._store.get(_key(identifier))
            if body is None:
                return
            record = _Record.unpack(body.metadata())
            record.response = replace(record.response, headers=headers)
            self.cache._store.change_metadata(_key(identifier), record.pack())
        except Error:
            logger.exception("could not change the fields of a stored response")

    def drop(self, identifier: uuid.UUID) -> None:
        self.pending.discard(identifier)
        try:
            self.cache._store.remove(_key(identifier))
        except Error:
            logger.exception("could not remove a stored response")


def _pieces(body: Body) -> Iterator[bytes]:
    view = body.view()
    for start in range(0, len(view), _PIECE):
        yield bytes(view[start : start + _PIECE])


class LarderStorage(_Core, hishel.BaseStorage):
    """hishel's storage, for synchronous clients.

    :param cache: where to store; a temporary one if None. `close` closes it only in that case.
    :param default_ttl: seconds that an entry lives. None: without end.
    :param default_tti: seconds that an entry lives after its last use. None: without end.
    :param max_stream_size: the longest body that is stored, in bytes. None: as the cache allows.
    """

    def __init__(
        self, cache: Optional[Cache] = None, *, default_ttl: Optional[float] = None,
        default_tti: Optional[float] = None, max_stream_size: Optional[int] = None,
    ) -> None:
        self._owns = cache is None
        _Core.__init__(self, Cache() if cache is None else cache)
        hishel.BaseStorage.__init__(
            self, default_ttl=default_ttl, default_tti=default_tti, max_stream_size=max_stream_size)

    def create_entry(
        self, request: Request, response: Response, key: str, *, ttl: Optional[float] = None,
        tti: Optional[float] = None,
    ) -> Entry:
        now = time.time()
        deadline, tti = self._limits(ttl, tti, now)
        entry, saving = self.begin(request, response, key, deadline, tti, self._expires_at(deadline, tti, now))
        source = cast(Iterator[bytes], response.stream if response.stream is not None else iter(()))
        stream = source if saving is None else self._save(source, saving)
        return replace(entry, response=replace(response, stream=stream))

    @staticmethod
    def _save(source: Iterator[bytes], saving: _Saving) -> Iterator[bytes]:
        try:
            for piece in source:
                saving.add(piece)
                yield piece
            saving.finish()
        finally:
            saving.drop()

    def get_entries(self, key: str) -> List[Entry]:
        return [
            Entry(id=identifier, request=record.request, response=replace(record.response, stream=_pieces(body)))
            for identifier, record, body in self.find(key, self._expires_at)
        ]

    def update_headers(self, id: uuid.UUID, headers: Headers) -> None:
        self.change_headers(id, headers)

    def remove_entry(self, id: uuid.UUID) -> None:
        self.drop(id)

    def close(self) -> None:
        if self._owns:
            self.cache.close()


class AsyncLarderStorage(_Core, hishel.AsyncBaseStorage):
    """hishel's storage, for asynchronous clients. Each call runs in a thread (asyncio.to_thread); takes what
    ``LarderStorage`` takes."""

    def __init__(
        self, cache: Optional[Cache] = None, *, default_ttl: Optional[float] = None,
        default_tti: Optional[float] = None, max_stream_size: Optional[int] = None,
    ) -> None:
        self._owns = cache is None
        _Core.__init__(self, Cache() if cache is None else cache)
        hishel.AsyncBaseStorage.__init__(
            self, default_ttl=default_ttl, default_tti=default_tti, max_stream_size=max_stream_size)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        import anyio.to_thread

        return await anyio.to_thread.run_sync(lambda: function(*args))

    async def create_entry(
        self, request: Request, response: Response, key: str, *, ttl: Optional[float] = None,
        tti: Optional[float] = None,
    ) -> Entry:
        now = time.time()
        deadline, tti = self._limits(ttl, tti, now)
        entry, saving = await self._run(
            self.begin, request, response, key, deadline, tti, self._expires_at(deadline, tti, now))
        source = cast(AsyncIterator[bytes], response.stream)
        stream = source if saving is None else self._save(source, saving)
        return replace(entry, response=replace(response, stream=stream))

    async def _save(self, source: Optional[AsyncIterator[bytes]], saving: _Saving) -> AsyncIterator[bytes]:
        try:
            if source is not None:
                async for piece in source:
                    await self._run(saving.add, piece)
                    yield piece
            await self._run(saving.finish)
        finally:
            saving.drop()

    async def _stream(self, body: Body) -> AsyncIterator[bytes]:
        pieces = _pieces(body)
        while True:
            piece = await self._run(next, pieces, None)
            if piece is None:
                return
            yield piece

    async def get_entries(self, key: str) -> List[Entry]:
        found = await self._run(self.find, key, self._expires_at)
        return [
            Entry(id=identifier, request=record.request, response=replace(record.response, stream=self._stream(body)))
            for identifier, record, body in found
        ]

    async def update_headers(self, id: uuid.UUID, headers: Headers) -> None:
        await self._run(self.change_headers, id, headers)

    async def remove_entry(self, id: uuid.UUID) -> None:
        await self._run(self.drop, id)

    async def close(self) -> None:
        if self._owns:
            await self._run(self.cache.close)
