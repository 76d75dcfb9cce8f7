"""Free TCP ports on 127.0.0.1."""

from __future__ import annotations

import socket
import time

from system.failure import Failure

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def wait_until_listening(port: int, process, timeout: float = 20.0) -> None:
    """`process` is a system.processes.Process: one that has ended will never listen."""
    deadline = time.monotonic() + timeout
    while True:
        process.expect_running()
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise Failure(
                    f"{process.name} does not listen on port {port} after {timeout:.0f} s\n{process.log_tail()}"
                ) from error
            time.sleep(0.02)
