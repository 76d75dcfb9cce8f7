"""Before anything is measured: every server gives the origin's bytes, from its cache from the second time on."""

from __future__ import annotations

import gzip
import http.client
import time
from collections.abc import Sequence

from load.connection import connect
from servers.bodies import BODIES, TEXTS, Body
from servers.server import Server
from system.failure import Failure

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


def verify(server: Server, bodies: Sequence[Body] = BODIES) -> None:
    for body in bodies:
        if get(server, body, body.answer()):
            raise Failure(f"{server.name}: the first answer for {body.path} is called a hit, in a new store")
    verify_stored(server, bodies)


def verify_passing(server: Server, body: Body) -> None:
    for _ in range(3):
        if get(server, body, body.answer()):
            raise Failure(f"{server.name}: the answer for {body.path} is called a hit, and may not be stored")


def verify_stored(server: Server, bodies: Sequence[Body], is_secure: bool = False) -> None:
    """For other ways to ask for what is stored, too: conditions and ranges, TLS."""
    for body in bodies:
        expected = body.answer()
        # A body is stored when its last byte has passed; the client may ask again before that.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not get(server, body, expected, is_secure):
            if time.monotonic() > deadline:
                raise Failure(f"{server.name}: {body.path} never becomes a hit\n{server.process.log_tail()}")
            time.sleep(0.01)


def exchange(server: Server, body: Body, is_secure: bool = False) -> tuple[http.client.HTTPResponse, bytes]:
    connection = connect(server, is_secure)
    try:
        connection.request("GET", body.path, headers=dict(field.split(": ") for field in body.fields))
        answer = connection.getresponse()
        return answer, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{server.name}: GET {body.path}: {error!r}\n{server.process.log_tail()}") from error
    finally:
        connection.close()


def get(server: Server, body: Body, expected: bytes, is_secure: bool = False) -> bool:
    """Whether it was a hit. Bytes other than the origin's: Failure."""
    answer, received = exchange(server, body, is_secure)
    if answer.status != body.status or received != expected:
        raise Failure(
            f"{server.name}: {body.path} came back with status {answer.status} and {len(received)} bytes"
            f" ({'the same' if received == expected else 'other'} than the origin's {len(expected)})"
        )
    return server.is_hit({name.lower(): value for name, value in answer.getheaders()})
