"""The requests of the mixed load, the same for every server: files for wrk and h2load."""

from __future__ import annotations

import bisect
import functools
import itertools
import pathlib
import random
from dataclasses import dataclass

from servers.bodies import WEB_SIZES, Numbered

URLS = 100_000
EXPONENT = 0.9
HTTP2_CLIENTS = 4
"""Each a process with a list of its own: all clients of one h2load walk through the same one, and ask for what another
got. Few, as they share a core with wrk and the origin."""
HTTP2_STREAMS = 32
"""Of each client."""
HTTP1_RATE = 20_000
"""Requests in a list for each second: more than any server answers, as one that comes to the end begins again."""
HTTP2_RATE = 10_000
"""As above, of each client."""


@dataclass(frozen=True)
class Request:
    body: Numbered
    field: str | None

    @property
    def path(self) -> str:
        return self.body.path


@dataclass(frozen=True)
class Requests:
    """Those of one run. Each run draws its own: with the same ones again, a cache that has room for those of one run gets
    no misses."""

    http1: list[Request]
    http2: list[list[Request]]

    @staticmethod
    def of_run(number: int, seconds: int) -> Requests:
        return Requests(
            http1=_requests(f"{number} HTTP/1.1", HTTP1_RATE * seconds, has_fields=True),
            http2=[
                _requests(f"{number} HTTP/2 {client}", HTTP2_RATE * seconds, has_fields=False)
                for client in range(HTTP2_CLIENTS)
            ],
        )


def _requests(seed: str, count: int, has_fields: bool) -> list[Request]:
    """Zipf over the URLs. A tenth of them may be stored for a second only; with fields a tenth of the requests has a
    condition, a tenth a range."""
    chance = random.Random(seed)
    weights = _weights()
    result = []
    for _ in range(count):
        body = _body(min(URLS - 1, bisect.bisect(weights, chance.random() * weights[-1])))
        field = None
        draw = chance.random() if has_fields else 1
        if draw < 0.1:
            field = f"If-None-Match: {body.tag}"
        elif draw < 0.2:
            field = "Range: bytes=100-199"
        result.append(Request(body, field))
    return result


@functools.cache
def _weights() -> list[float]:
    return list(itertools.accumulate(1 / (rank + 1) ** EXPONENT for rank in range(URLS)))


@functools.cache
def _body(number: int) -> Numbered:
    size = random.Random(number).choice(WEB_SIZES)
    return Numbered("mixed", size, str(number), "changing" if number % 10 == 9 else "many")


def write_for_wrk(file: pathlib.Path, asked: list[Request]) -> None:
    file.write_text("".join(f"{one.path} {one.field}\n" if one.field else f"{one.path}\n" for one in asked))


def write_for_h2load(file: pathlib.Path, asked: list[Request], url: str) -> None:
    file.write_text("".join(f"{url}{one.path}\n" for one in asked))
