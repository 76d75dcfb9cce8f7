"""One run of wrk, and the processor time that it and the server took meanwhile."""

from __future__ import annotations

import json
import pathlib
import re
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from servers.bodies import Body
from servers.server import Server
from system.cores import Cores, pinned
from system.cpu_time import cpu_seconds
from system.failure import Failure


@dataclass(frozen=True)
class WrkResult:
    requests: int
    bytes: int
    seconds: float
    p50_us: int
    p99_us: int
    server_cpu_seconds: float
    wrk_cpu_seconds: float
    wall_seconds: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us_per_request(self) -> float:
        return self.server_cpu_seconds / self.requests * 1e6

    @property
    def server_busy(self) -> float:
        """How much of one core the server used: well under 1, it was not the limit."""
        return self.server_cpu_seconds / self.wall_seconds

    @property
    def wrk_busy(self) -> float:
        return self.wrk_cpu_seconds / self.wall_seconds


def wrk_command(url: str, connections: int, seconds: float, script: str, fields: Sequence[str] = ()) -> list[str]:
    path = pathlib.Path(__file__).with_name(script)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(path)]
    return [*command, *(argument for field in fields for argument in ("-H", field)), url]


def run_wrk(
    server: Server, body: Body, connections: int, seconds: int, *, cores: Cores | None, script: str
) -> WrkResult:
    """Any answer that is not a whole 2xx one makes the run worthless: Failure."""
    command = wrk_command(server.url(body.path), connections, seconds, script, body.fields)
    command = pinned(command, cores.load if cores else None)
    cpu_before, wrk_before, start = cpu_seconds(server.process.pid), _ended_children_cpu_seconds(), time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds + 60, check=False
    )
    cpu, wall = cpu_seconds(server.process.pid) - cpu_before, time.monotonic() - start
    server.process.expect_running()
    match = re.search(r"^COUNTS (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not match:
        raise Failure(f"wrk failed against {server.name}: {' '.join(command)}\n{done.stdout}")
    counts = json.loads(match.group(1))
    if counts["requests"] == 0 or counts["status"] or counts["socket"]:
        raise Failure(f"{server.name}: errors under load: {' '.join(command)}\n{done.stdout}")
    if counts["bytes"] < counts["requests"] * body.least_bytes:
        raise Failure(f"{server.name}: answers shorter than {body.label}\n{done.stdout}")
    return WrkResult(
        requests=counts["requests"],
        bytes=counts["bytes"],
        seconds=counts["microseconds"] / 1e6,
        p50_us=counts["p50"],
        p99_us=counts["p99"],
        server_cpu_seconds=cpu,
        wrk_cpu_seconds=_ended_children_cpu_seconds() - wrk_before,
        wall_seconds=wall,
    )


def _ended_children_cpu_seconds() -> float:
    """wrk is the only child that ends while it runs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
