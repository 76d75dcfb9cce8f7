"""nginx with proxy_cache, one worker, set up for hits as well as its documentation allows."""

from __future__ import annotations

import pathlib

from servers.nginx_basics import FOR_HITS, start_nginx
from servers.server import Kind, Server
from system.cores import Cores, pinned

_HTTP = FOR_HITS + """\
    proxy_cache_path STORE levels=1:2 keys_zone=bench:16m max_size=4g inactive=1h use_temp_path=off;
    upstream origin { server 127.0.0.1:ORIGIN; keepalive 128; }
    server {
        listen 127.0.0.1:PORT backlog=4096;
        location / {
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_cache bench;
            proxy_cache_lock on;
            add_header X-Cache-Status $upstream_cache_status;
        }
    }"""


def _start(directory: pathlib.Path, origin_port: int, cores: Cores | None) -> Server:
    http = _HTTP.replace("STORE", str(directory / "store")).replace("ORIGIN", str(origin_port))
    process, port, text = start_nginx(
        "nginx", directory, http, lambda command: pinned(command, cores.server if cores else None)
    )
    return Server(
        name="nginx",
        process=process,
        port=port,
        is_hit=lambda fields: fields.get("x-cache-status") == "HIT",
        described=" ".join(process.command) + "\n\n" + text,
        serves=_is_master_or_worker,
    )


def _is_master_or_worker(pid: int) -> bool:
    """Not the cache manager, and not the cache loader, which ends a minute after the start."""
    title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return title.startswith((b"nginx: master process", b"nginx: worker process"))


NGINX = Kind("nginx", _start)
