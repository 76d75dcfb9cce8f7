"""Before anything is measured: every server gives the origin's bytes, from its cache from the second time on."""

from __future__ import annotations

import http.client
import time

from servers.bodies import BODIES, Body
from servers.server import Server
from system.failure import Failure
from system.ports import HOST

PATIENCE_SECONDS = 2.0


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


def get(server: Server, body: Body, expected: bytes) -> bool:
    """Whether it was a hit. Bytes other than the origin's: Failure."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=10)
    try:
        connection.request("GET", body.path)
        answer = connection.getresponse()
        received = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{server.name}: GET {body.path}: {error!r}\n{server.process.log_tail()}") from error
    finally:
        connection.close()
    if answer.status != 200 or received != expected:
        raise Failure(
            f"{server.name}: {body.path} came back with status {answer.status} and {len(received)} bytes"
            f" ({'the same' if received == expected else 'other'} than the origin's {len(expected)})"
        )
    return server.is_hit({name.lower(): value for name, value in answer.getheaders()})
