"""hishel and requests-cache, with real clients and a real server."""

import asyncio

import pytest

from larder import Cache


def test_hishel_with_httpx(cache, server):
    hishel_httpx = pytest.importorskip("hishel.httpx")
    from larder.hishel import LarderStorage

    storage = LarderStorage(cache)
    with hishel_httpx.CacheClient(storage=storage, rfc=True) as client:
        first = client.get(server.url + "/a")
        second = client.get(server.url + "/a")
        assert first.text == second.text == "answer 1" and server.handler.requests == 1
        assert second.headers["content-type"] == "text/plain" and second.extensions["caching"]["from_cache"]
        assert client.get(server.url + "/large").content == client.get(server.url + "/large").content == b"x" * 200_000
        assert server.handler.requests == 2
    assert len(cache) == 2
    storage.close()
    assert cache.evict("hishel") == 2


def test_hishel_async(cache, server):
    hishel_httpx = pytest.importorskip("hishel.httpx")
    from larder.hishel import AsyncLarderStorage

    async def work():
        async with hishel_httpx.AsyncCacheClient(storage=AsyncLarderStorage(cache), rfc=True) as client:
            for path in ("/a", "/a", "/large", "/large"):
                answer = await client.get(server.url + path)
                assert answer.status_code == 200
            return answer.content

    assert asyncio.run(work()) == b"x" * 200_000 and server.handler.requests == 2


def test_hishel_storage_keeps_its_rules(cache):
    hishel = pytest.importorskip("hishel")
    from larder.hishel import LarderStorage

    storage = LarderStorage(cache, max_stream_size=10)
    request = hishel.Request("GET", "http://h/", hishel.Headers({"A": "1"}))

    def create(body, **options):
        response = hishel.Response(200, hishel.Headers({"B": "2"}), iter(body))
        return storage.create_entry(request, response, "key", **options)

    entry = create([b"1234", b"5678"])
    assert storage.get_entries("key") == []
    assert b"".join(entry.response.stream) == b"12345678"
    (found,) = storage.get_entries("key")
    assert found.id == entry.id and found.request == request and b"".join(found.response.stream) == b"12345678"
    assert found.response.headers == hishel.Headers({"B": "2"}) and storage.get_entries("other") == []
    storage.update_headers(entry.id, hishel.Headers({"C": "3"}))
    assert storage.get_entries("key")[0].response.headers == hishel.Headers({"C": "3"})
    # A reader finishes what was removed.
    stream = storage.get_entries("key")[0].response.stream
    storage.remove_entry(entry.id)
    storage.remove_entry(entry.id)
    storage.update_headers(entry.id, hishel.Headers({}))
    assert b"".join(stream) == b"12345678" and storage.get_entries("key") == []
    # Too long, given up, removed while it is written, expired: not stored, and delivered.
    assert b"".join(create([b"x" * 8, b"y" * 8]).response.stream) == b"x" * 8 + b"y" * 8
    assert next(create([b"1", b"2"]).response.stream) == b"1"
    removed = create([b"1", b"2"])
    assert next(removed.response.stream) == b"1"
    storage.remove_entry(removed.id)
    assert b"".join(removed.response.stream) == b"2"
    assert b"".join(create([b"1"], ttl=-1).response.stream) == b"1"
    assert storage.get_entries("key") == []
    assert b"".join(create([b"1"], ttl=100, tti=50).response.stream) == b"1" and len(storage.get_entries("key")) == 1


def test_requests_cache(tmp_path, server):
    requests_cache = pytest.importorskip("requests_cache")
    from larder.requests_cache import LarderBackend

    backend = LarderBackend(tmp_path / "c")
    with requests_cache.CachedSession(backend=backend, expire_after=60) as session:
        first = session.get(server.url + "/a")
        second = session.get(server.url + "/a")
        assert not first.from_cache and second.from_cache and second.text == "answer 1"
        assert session.get(server.url + "/large").content == session.get(server.url + "/large").content
        assert server.handler.requests == 2 and len(backend.responses) == 2
        assert all(value for value in backend.responses.values())
        assert backend.contains(url=server.url + "/a")
        backend.delete(urls=[server.url + "/a"])
        assert not backend.contains(url=server.url + "/a") and len(backend.responses) == 1
        backend.redirects["r"] = "target"
        assert backend.redirects["r"] == "target" and list(backend.redirects) == ["r"]
        session.cache.clear()
        assert len(backend.responses) == len(backend.redirects) == 0
    backend.close()
    with Cache(tmp_path / "c", serializer="json") as cache:
        assert cache.check() == []
