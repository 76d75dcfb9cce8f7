"""Larder: `cachectl serve` with one event loop."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from servers.server import Kind, Server
from system.certificate import certificate
from system.cores import Cores, pinned
from system.ports import HOST
from system.processes import Process


def larder(
    cachectl: pathlib.Path, name: str = "Larder", options: Sequence[str] = (), *, threads: int = 1
) -> Kind:
    """With several threads it is not pinned to a core."""

    def start(directory: pathlib.Path, origin_port: int, cores: Cores | None) -> Server:
        directory.mkdir(parents=True, exist_ok=True)
        command = [str(cachectl), "serve", "--origin", f"http://{HOST}:{origin_port}", "--listen", f"{HOST}:0"]
        chain, key = certificate(directory.parent)
        command += ["--tls-listen", f"{HOST}:0", "--certificate", str(chain), "--key", str(key)]
        command += ["--store", str(directory / "store"), "--threads", str(threads), *options]
        process = Process("larder", pinned(command, cores.server if cores and threads == 1 else None), directory)
        port = int(process.wait_for(r"listening on http://127\.0\.0\.1:(\d+)\s"))
        secure_port = int(process.wait_for(r"https://127\.0\.0\.1:(\d+)\s"))
        described = " ".join(process.command).replace(str(cachectl), "cachectl") + "\n"
        return Server(
            name=name,
            process=process,
            port=port,
            is_hit=_is_hit,
            described=described,
            secure_port=secure_port,
            store=directory / "store",
        )

    return Kind(name, start)


def _is_hit(fields) -> bool:
    """RFC 9211: the last member of Cache-Status is the cache next to the client; `hit` is one of its parameters."""
    nearest = fields.get("cache-status", "").split(",")[-1]
    return "hit" in [parameter.strip() for parameter in nearest.split(";")[1:]]
