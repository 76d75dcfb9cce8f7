"""nginx that sends files, with their gzip members beside them: the fastest that it serves compressed text."""

from __future__ import annotations

import gzip
import pathlib

from servers.bodies import TEXTS
from servers.nginx_basics import FOR_HITS, start_nginx
from servers.server import Kind, Server
from system.cores import Cores, pinned

_HTTP = FOR_HITS + """\
    types { text/html html; }
    gzip_static on;
    gzip_vary on;
    server {
        listen 127.0.0.1:PORT backlog=4096;
        root ROOT;
    }"""


def _start(directory: pathlib.Path, _origin_port: int, cores: Cores | None) -> Server:
    root = directory / "root"
    for body in TEXTS:
        file = root / body.path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.content())
        # Larder's level: members of about the same length.
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(body.content(), LEVEL))
    process, port, text = start_nginx(
        "nginx-static",
        directory,
        _HTTP.replace("ROOT", str(root)),
        lambda command: pinned(command, cores.server if cores else None),
    )
    described = " ".join(process.command) + "\n\n" + text
    return Server(name=NAME, process=process, port=port, is_hit=lambda _: True, described=described)


NAME = "nginx gzip_static"
LEVEL = 4
NGINX_STATIC = Kind(NAME, _start)
