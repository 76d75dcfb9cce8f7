"""nginx with proxy_cache, one worker, set up for hits as well as its documentation allows."""

from __future__ import annotations

import pathlib

from servers.nginx_basics import FOR_HITS, start_nginx
from servers.server import Kind, Server
from system.certificate import certificate
from system.cores import Cores, pinned
from system.ports import free_port

_HTTP = FOR_HITS + """\
    proxy_cache_path STORE levels=1:2 keys_zone=bench:16m max_size=BUDGET inactive=1h use_temp_path=off;
    upstream origin { server 127.0.0.1:ORIGIN; keepalive 128; }
    server {
        listen 127.0.0.1:PORT backlog=4096;
        listen 127.0.0.1:SECURE backlog=4096 ssl http2;
        ssl_certificate CHAIN;
        ssl_certificate_key KEY;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_cache bench;
        proxy_cache_lock on;
        add_header X-Cache-Status $upstream_cache_status;
        location / {
            proxy_pass http://origin;
        }
        # Clients would wait for each other, and what they wait for may not be stored.
        location /pass {
            proxy_pass http://origin;
            proxy_cache_lock off;
        }
    }"""


def nginx(name: str = "nginx", *, budget: str = "4g", workers: int = 1) -> Kind:
    """With several workers it is not pinned to a core."""

    def start(directory: pathlib.Path, origin_port: int, cores: Cores | None) -> Server:
        secure_port = free_port()
        chain, key = certificate(directory.parent)
        http = _HTTP
        for word, value in [
            ("STORE", directory / "store"),
            ("ORIGIN", origin_port),
            ("SECURE", secure_port),
            ("CHAIN", chain),
            ("KEY", key),
            ("BUDGET", budget),
        ]:
            http = http.replace(word, str(value))
        core = cores.server if cores and workers == 1 else None
        process, port, text = start_nginx(
            "nginx", directory, http, lambda command: pinned(command, core), workers=workers
        )
        return Server(
            name=name,
            process=process,
            port=port,
            is_hit=lambda fields: fields.get("x-cache-status") == "HIT",
            described=" ".join(process.command) + "\n\n" + text,
            secure_port=secure_port,
            store=directory / "store",
            serves=_is_master_or_worker,
        )

    return Kind(name, start)


def _is_master_or_worker(pid: int) -> bool:
    """Not the cache manager, and not the cache loader, which ends a minute after the start."""
    title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return title.startswith((b"nginx: master process", b"nginx: worker process"))


NGINX = nginx()
