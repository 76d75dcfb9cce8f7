"""Varnish with its default VCL and bodies in memory.

Varnish runs threads, one for each busy client, and cannot be limited to one event loop: its core is its limit.
"""

from __future__ import annotations

import pathlib

from servers.server import Kind, Server
from system.cores import Cores, pinned
from system.ports import HOST, free_port, wait_until_listening
from system.processes import Process

_VCL = """vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "ORIGIN"; }
"""


def varnish(log_directory: pathlib.Path) -> Kind:
    """Varnish's own advice: its log, which gets some lines for every request, belongs on a tmpfs."""

    def start(directory: pathlib.Path, origin_port: int, cores: Cores | None) -> Server:
        directory.mkdir(parents=True, exist_ok=True)
        configuration = directory / "default.vcl"
        configuration.write_text(_VCL.replace("ORIGIN", str(origin_port)))
        port = free_port()
        # -j none: no change of user, who could not enter a temporary directory. -T none: no port for commands.
        command = ["varnishd", "-F", "-j", "none", "-T", "none", "-n", str(log_directory / directory.name)]
        command += ["-f", str(configuration), "-a", f"{HOST}:{port}", "-s", "malloc,256m"]
        command += ["-p", "thread_pools=1", "-p", "timeout_idle=300"]
        process = Process("varnish", pinned(command, cores.server if cores else None), directory)
        # It compiles its VCL with a C compiler first.
        wait_until_listening(port, process, timeout=60)
        return Server(
            name="Varnish",
            process=process,
            port=port,
            # Two numbers: this request's, and that of the request which filled the cache.
            is_hit=lambda fields: len(fields.get("x-varnish", "").split()) == 2,
            described=" ".join(process.command) + "\n\n" + configuration.read_text(),
        )

    return Kind("Varnish", start)
