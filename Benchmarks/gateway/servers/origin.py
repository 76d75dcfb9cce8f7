"""The origin behind every server under test: nginx with files, and answers that take two seconds under /slow/."""

from __future__ import annotations

import contextlib
import pathlib
import sys

from servers.bodies import write_bodies
from servers.nginx_basics import start_nginx
from system.cores import Cores, pinned, yielding
from system.processes import Process

_HTTP = """\
    default_type application/octet-stream;
    types { text/html html; }
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    log_format paths "$request_uri";
    upstream slow { server 127.0.0.1:SLOW; keepalive 128; }
    server {
        listen 127.0.0.1:PORT backlog=4096;
        root ROOT;
        location /files/ {
            add_header Cache-Control "public, max-age=3600";
            access_log LOG paths;
        }
        location /slow/ {
            proxy_pass http://slow;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }
    }"""


class Origin:
    def __init__(self, port: int, access_log: pathlib.Path):
        self.port = port
        self.access_log = access_log

    def file_requests(self) -> int:
        """How many requests for files came here so far. A server whose answers are hits adds none."""
        return len(self.access_log.read_bytes().splitlines())


@contextlib.contextmanager
def running_origin(directory: pathlib.Path, cores: Cores | None):
    directory.mkdir()
    root = directory / "root"
    write_bodies(root)
    shares_core = cores is None or cores.origin == cores.load

    def prefix(command: list[str]) -> list[str]:
        return pinned(yielding(command) if shares_core else command, cores.origin if cores else None)

    script = pathlib.Path(__file__).with_name("slow_origin.py")
    with Process("slow origin", prefix([sys.executable, str(script)]), directory) as slow:
        slow_port = slow.wait_for(r"listening on (\d+)\s")
        log = directory / "access.log"
        http = _HTTP.replace("ROOT", str(root)).replace("SLOW", slow_port).replace("LOG", str(log))
        process, port, _ = start_nginx("origin", directory / "nginx", http, prefix)
        with process:
            yield Origin(port, log)
