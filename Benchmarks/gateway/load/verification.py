"""Before anything is measured: every server gives the origin's bytes, from its cache from the second time on."""

from __future__ import annotations

import gzip
import http.client
import time
from collections.abc import Sequence

from servers.bodies import BODIES, TEXTS, Body
from servers.server import Server
from system.failure import Failure
from system.ports import HOST

PATIENCE_SECONDS = 2.0


def verify_gzip(server: Server, bodies: Sequence[Body] = TEXTS) -> None:
    """Every server gives the origin's bytes as a gzip member."""
    for body in bodies:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer, received = exchange(server, body)
            if answer.getheader("Content-Encoding") == "gzip":
                break
            if time.monotonic() > deadline:
                raise Failure(f"{server.name}: {body.path} is never sent as gzip\n{server.process.log_tail()}")
            time.sleep(0.01)
        if gzip.decompress(received) != body.content():
            raise Failure(f"{server.name}: the gzip member of {body.path} has other bytes than the origin's")


def verify(server: Server, bodies: list[Body] = BODIES) -> None:
    for body in bodies:
        expected = body.content()
        if get(server, body, expected):
            raise Failure(f"{server.name}: the first answer for {body.path} is called a hit, in a new store")
        # A body is stored when its last byte has passed; the client may ask again before that.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not get(server, body, expected):
            if time.monotonic() > deadline:
                raise Failure(f"{server.name}: {body.path} never becomes a hit\n{server.process.log_tail()}")
            time.sleep(0.01)


def exchange(server: Server, body: Body) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=10)
    try:
        connection.request("GET", body.path, headers=dict(field.split(": ") for field in body.fields))
        answer = connection.getresponse()
        return answer, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{server.name}: GET {body.path}: {error!r}\n{server.process.log_tail()}") from error
    finally:
        connection.close()


def get(server: Server, body: Body, expected: bytes) -> bool:
    """Whether it was a hit. Bytes other than the origin's: Failure."""
    answer, received = exchange(server, body)
    if answer.status != 200 or received != expected:
        raise Failure(
            f"{server.name}: {body.path} came back with status {answer.status} and {len(received)} bytes"
            f" ({'the same' if received == expected else 'other'} than the origin's {len(expected)})"
        )
    return server.is_hit({name.lower(): value for name, value in answer.getheaders()})
