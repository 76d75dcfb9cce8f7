"""Clients that asked once, got a hit, and keep their connection."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl

from load.connection import connect
from servers.bodies import SMALL
from servers.server import Server
from system.failure import Failure


@contextlib.contextmanager
def idle_clients(server: Server, count: int, is_secure: bool = False):
    """Yields a function that fails unless every one of them is still connected."""
    connections: list[http.client.HTTPConnection] = []

    def expect_connected() -> None:
        for index, connection in enumerate(connections):
            if not _is_open(connection.sock):
                raise Failure(f"{server.name} closed the connection of idle client {index + 1} of {count}")

    try:
        for _ in range(count):
            connection = connect(server, is_secure)
            connections.append(connection)
            _ask(server, connection)
        yield expect_connected
    finally:
        for connection in connections:
            connection.close()


def _ask(server: Server, connection: http.client.HTTPConnection) -> None:
    try:
        connection.request("GET", SMALL.path)
        answer = connection.getresponse()
        received = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{server.name}: an idle client got {error!r}\n{server.process.log_tail()}") from error
    fields = {name.lower(): value for name, value in answer.getheaders()}
    if answer.status != 200 or len(received) != SMALL.size_bytes or not server.is_hit(fields):
        raise Failure(f"{server.name}: an idle client got status {answer.status}, {len(received)} bytes, {fields}")


def _is_open(connected: socket.socket | None) -> bool:
    # http.client lets go of a socket that the server is about to close.
    if connected is None:
        return False
    connected.setblocking(False)
    try:
        if isinstance(connected, ssl.SSLSocket):
            connected.recv(1)
        else:
            connected.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
    return False
