"""Clients that asked once over HTTP/2, and keep their connection: as much of RFC 9113 as one request takes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct

from servers.bodies import SMALL
from servers.server import Server
from system.failure import Failure
from system.ports import HOST

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _GOAWAY = 0, 1, 4, 7
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1


@contextlib.contextmanager
def idle_http2_clients(server: Server, count: int):
    """Yields a function that fails unless every one of them is still connected."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    connections: list[ssl.SSLSocket] = []

    def expect_connected() -> None:
        for number, connection in enumerate(connections):
            connection.setblocking(False)
            try:
                if not connection.recv(1):
                    raise Failure(f"{server.name} closed the connection of idle HTTP/2 client {number + 1} of {count}")
            except ssl.SSLWantReadError:
                pass

    try:
        for _ in range(count):
            plain = socket.create_connection((HOST, server.secure_port), timeout=10)
            connections.append(context.wrap_socket(plain, server_hostname=HOST))
            _ask(server, connections[-1])
        yield expect_connected
    finally:
        for connection in connections:
            connection.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _ask(server: Server, connection: ssl.SSLSocket) -> None:
    path, host = SMALL.path.encode(), f"{HOST}:{server.secure_port}".encode()
    # RFC 7541: GET and https are entries of the static table, path and authority literals with names from it.
    block = b"\x82\x87\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(host)]) + host
    connection.sendall(
        _PREFACE + _frame(_SETTINGS, 0, 0) + _frame(_HEADERS, _END_STREAM | _END_HEADERS, 1, block)
    )
    received, rest = b"", b""
    while True:
        piece = connection.recv(1 << 16)
        if not piece:
            raise Failure(f"{server.name} closed an HTTP/2 connection")
        rest += piece
        while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
            length = int.from_bytes(rest[:3], "big")
            kind, flags, payload, rest = rest[3], rest[4], rest[9 : 9 + length], rest[9 + length :]
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0))
            elif kind == _GOAWAY:
                raise Failure(f"{server.name} ended an HTTP/2 connection: {payload!r}")
            elif kind == _DATA:
                received += payload
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                if received != SMALL.content():
                    raise Failure(f"{server.name}: an idle HTTP/2 client got {len(received)} bytes")
                return
