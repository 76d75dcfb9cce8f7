"""A backend for requests-cache.

    from requests_cache import CachedSession
    from larder.requests_cache import LarderBackend

    session = CachedSession(backend=LarderBackend("/var/cache/http", size_limit=1 << 30))

Responses are stored as JSON unless another serializer of requests-cache is named; "pickle" only where no one else can
write to the directory.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Iterator, Optional, Union

from requests_cache.backends.base import BaseCache, BaseStorage
from requests_cache.serializers import json_serializer

from ._errors import Error
from ._keys import decode
from .cache import DEFAULT, Cache

_logger = logging.getLogger("larder")


class LarderDict(BaseStorage[str, Any]):
    """A mapping of requests-cache in a part of a cache."""

    def __init__(self, cache: Cache, name: str, serializer: Any = None, **kwargs: Any) -> None:
        super().__init__(serializer=serializer, **kwargs)
        self._cache = cache
        self._name = name
        self._tag = "requests-cache:" + name

    def _key(self, key: str) -> Any:
        return (self._name, key)

    def __getitem__(self, key: str) -> Any:
        return self.deserialize(key, self._cache[self._key(key)])

    def __setitem__(self, key: str, value: Any) -> None:
        try:
            self._cache.set(self._key(key), self.serialize(value), tag=self._tag)
        except Error as failure:
            # The caller has its response, whether there is room for it here or not.
            _logger.warning("%s was not stored: %s", key, failure)

    def __delitem__(self, key: str) -> None:
        del self._cache[self._key(key)]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._key(key) in self._cache

    def __iter__(self) -> Iterator[str]:
        for item in self._cache._store.items(tag=self._tag):
            parts: Any = decode(item.key)
            yield parts[1]

    def __len__(self) -> int:
        return len(self._cache._store.items(tag=self._tag))

    def clear(self) -> None:
        """Removes every entry of this part."""
        self._cache.evict(self._tag)


class LarderBackend(BaseCache):
    """requests-cache's backend.

    :param cache_name: the directory, unless `cache` is given.
    :param cache: a cache to store in, which the caller closes.
    :param size_limit: as of ``Cache``, of a cache that is made here.
    :param serializer: one of requests-cache. Default: JSON.
    """

    def __init__(
        self, cache_name: Union[str, "os.PathLike[str]"] = "http_cache", *, cache: Optional[Cache] = None,
        size_limit: Any = DEFAULT, serializer: Any = None, **kwargs: Any,
    ) -> None:
        super().__init__(cache_name=str(cache_name))
        self._owns = cache is None
        self.cache = Cache(cache_name, size_limit=size_limit) if cache is None else cache
        chosen = json_serializer if serializer is None else serializer
        self.responses = LarderDict(self.cache, "responses", serializer=chosen, **kwargs)
        self.redirects = LarderDict(self.cache, "redirects")

    def close(self) -> None:
        """Closes the cache, unless it was given."""
        if self._owns:
            self.cache.close()
