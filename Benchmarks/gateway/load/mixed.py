"""The requests of the mixed load, the same in every run: files for wrk and h2load."""

from __future__ import annotations

import bisect
import itertools
import pathlib
import random
from dataclasses import dataclass

from servers.bodies import WEB_SIZES, Numbered

URLS = 100_000
REQUESTS = 200_000
EXPONENT = 0.9


@dataclass(frozen=True)
class Request:
    body: Numbered
    field: str | None

    @property
    def path(self) -> str:
        return self.body.path


def requests(seed: int) -> list[Request]:
    """Zipf over the URLs. A tenth of them may be stored for a second only; a tenth of the requests has a condition, a
    tenth a range: HTTP/1.1 is one half of the load, and the other half has none."""
    chance = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 1) ** EXPONENT for rank in range(URLS)))
    result = []
    for _ in range(REQUESTS):
        number = min(URLS - 1, bisect.bisect(weights, chance.random() * weights[-1]))
        size = random.Random(number).choice(WEB_SIZES)
        body = Numbered("mixed", size, str(number), "changing" if number % 10 == 9 else "many")
        field = None
        draw = chance.random()
        if draw < 0.1:
            field = f"If-None-Match: {body.tag}"
        elif draw < 0.2:
            field = "Range: bytes=100-199"
        result.append(Request(body, field))
    return result


def write_for_wrk(file: pathlib.Path, asked: list[Request]) -> None:
    file.write_text("".join(f"{one.path} {one.field}\n" if one.field else f"{one.path}\n" for one in asked))


def write_for_h2load(file: pathlib.Path, asked: list[Request], url: str) -> None:
    file.write_text("".join(f"{url}{one.path}\n" for one in asked))
