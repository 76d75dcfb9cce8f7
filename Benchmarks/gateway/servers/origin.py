"""The origin behind every server under test: nginx with files, and answers that take two seconds under /slow/."""

from __future__ import annotations

import contextlib
import pathlib
import sys

from servers.bodies import FILLER, NUMBERED_SIZES, WEB_SIZES, write_bodies
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
        location /vary/ {
            alias ROOT/files/;
            add_header Vary "Accept-Encoding";
            add_header Cache-Control "public, max-age=3600";
            access_log LOG paths;
        }
        location /pass/ {
            alias ROOT/files/;
            add_header Cache-Control "no-store";
        }
        location = /pass-gibibyte {
            alias ROOT/gibibyte;
            add_header Cache-Control "no-store";
        }
        location /many-gibibytes/ {
            try_files /gibibyte =404;
            add_header Cache-Control "public, max-age=3600";
        }
        NUMBERED
        location /slow/ {
            proxy_pass http://slow;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }
    }"""


_NUMBERED = """\
        location ^~ /KIND/SIZE/ {
            add_header Cache-Control "public, max-age=LIFETIME";
            add_header ETag '"$uri"';
            add_header Accept-Ranges bytes;
            return 200 "$uriCONTENT";
        }
"""


def _numbered() -> str:
    """Any number of URLs, each with content of its own: see `Numbered`."""
    lines = [f'        set $filler100 "{FILLER}";\n']
    for length in (1000, 10000, 100000):
        lines.append(f'        set $filler{length} "{f"$filler{length // 10}" * 10}";\n')
    for size in WEB_SIZES + NUMBERED_SIZES:
        content, left = "", size
        for length in (100000, 10000, 1000, 100):
            content += f"$filler{length}" * (left // length)
            left %= length
        for kind, lifetime in (("many", 3600), ("changing", 1)):
            location = _NUMBERED.replace("KIND", kind).replace("SIZE", str(size))
            lines.append(location.replace("LIFETIME", str(lifetime)).replace("CONTENT", content))
    return "".join(lines).strip()


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
    # Without blocks on the disk.
    with open(root / "gibibyte", "wb") as file:
        file.truncate(1 << 30)
    def prefix(command: list[str]) -> list[str]:
        return pinned(command, cores.origin if cores else None)

    script = pathlib.Path(__file__).with_name("slow_origin.py")
    # Only this one yields: where all cores are busy, one that does gets no time, and requests to it time out.
    with Process("slow origin", prefix(yielding([sys.executable, str(script)])), directory) as slow:
        slow_port = slow.wait_for(r"listening on (\d+)\s")
        log = directory / "access.log"
        http = _HTTP.replace("NUMBERED", _numbered()).replace("ROOT", str(root)).replace("SLOW", slow_port).replace("LOG", str(log))
        process, port, _ = start_nginx("origin", directory / "nginx", http, prefix)
        with process:
            yield Origin(port, log)
