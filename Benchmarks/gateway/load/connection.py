"""A client of a server, over HTTP/1.1."""

from __future__ import annotations

import http.client
import ssl

from servers.server import Server
from system.ports import HOST


def connect(server: Server, is_secure: bool) -> http.client.HTTPConnection:
    if not is_secure:
        return http.client.HTTPConnection(HOST, server.port, timeout=10)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(HOST, server.secure_port, timeout=10, context=context)
