"""What every nginx here needs to run from a directory of its own, beside one of the system, and without being root."""

from __future__ import annotations

import os
import pathlib
import subprocess

from system.ports import free_port, wait_until_listening
from system.processes import Process


# open_file_cache spares nginx an open() and a close() for each hit. keepalive_requests is 1,000 by default, after which a
# client has to connect again; the other servers set no such limit.
FOR_HITS = """\
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 300s;
    keepalive_requests 100000000;
    open_file_cache max=10000 inactive=300s;
    open_file_cache_valid 300s;
"""


def frame(directory: pathlib.Path, http: str, workers: int = 1) -> str:
    """A whole nginx.conf around the contents of `http { }`."""
    # As root, workers would change to a user who cannot enter a temporary directory.
    user = "user root;\n" if os.geteuid() == 0 else ""
    return f"""{user}daemon off;
worker_processes {workers};
worker_rlimit_nofile 32768;
pid {directory}/nginx.pid;
events {{ worker_connections 16384; }}
http {{
{_temporary_paths(directory)}
{http}
}}
"""


def start_nginx(
    name: str, directory: pathlib.Path, http: str, command_prefix, workers: int = 1
) -> tuple[Process, int, str]:
    """`http` holds PORT where the port goes, and `command_prefix` puts the pinning before a command.

    Returns the process, the port and the configuration.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    text = frame(directory, http.replace("PORT", str(port)), workers)
    configuration = directory / "nginx.conf"
    configuration.write_text(text)
    command = ["nginx", "-e", "stderr", "-p", str(directory), "-c", str(configuration)]
    process = Process(name, command_prefix(command), directory)
    wait_until_listening(port, process)
    return process, port, text


def _temporary_paths(directory: pathlib.Path) -> str:
    """nginx makes these directories at its start, used or not; those of the package belong to root."""
    built = subprocess.run(
        ["nginx", "-V"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    ).stdout
    lines = [f"    client_body_temp_path {directory}/body;"]
    for module in ("proxy", "fastcgi", "uwsgi", "scgi"):
        if f"--without-http_{module}_module" not in built:
            lines.append(f"    {module}_temp_path {directory}/{module};")
    return "\n".join(lines)
