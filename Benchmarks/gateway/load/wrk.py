"""One run of wrk or h2load, and the processor time that it and the server took meanwhile."""

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
class LoadResult:
    requests: int
    bytes: int
    seconds: float
    p50_us: int | None
    """None with h2load, which does not say."""
    p99_us: int | None
    server_cpu_seconds: float
    load_cpu_seconds: float
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
    def load_busy(self) -> float:
        return self.load_cpu_seconds / self.wall_seconds


def wrk_command(
    url: str,
    connections: int,
    seconds: float,
    script: str,
    fields: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> list[str]:
    path = pathlib.Path(__file__).with_name(script)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(path)]
    command += [argument for field in fields for argument in ("-H", field)]
    return [*command, url, *(["--", *arguments] if arguments else [])]


def h2load_command(
    url: str, seconds: float, fields: Sequence[str] = (), clients: int = 8, streams: int = 16
) -> list[str]:
    command = ["h2load", f"-c{clients}", f"-m{streams}", "-D", f"{seconds:g}"]
    return [*command, *(argument for field in fields for argument in ("-H", field)), url]


def h2load_list_command(urls: pathlib.Path, streams: int, seconds: float) -> list[str]:
    return [*h2load_command("", seconds, clients=1, streams=streams)[:-1], "-i", str(urls)]


def run_wrk(
    server: Server,
    body: Body,
    connections: int,
    seconds: int,
    *,
    cores: Cores | None,
    script: str = "counts.lua",
    path: str | None = None,
    is_secure: bool = False,
    arguments: Sequence[str] = (),
    is_checked: bool = True,
) -> LoadResult:
    """Any answer that is not a whole 2xx or 3xx one makes the run worthless: Failure.

    `path` and `arguments` are for scripts that ask for other URLs than that of `body`, `is_checked` whether the answers
    are as long as its.
    """
    url = server.url(path or body.path, is_secure)
    command = wrk_command(url, connections, seconds, script, body.fields, arguments)
    printed, measured = _run(server, command, seconds, cores)
    match = re.search(r"^COUNTS (.*)$", printed, re.MULTILINE)
    if not match:
        raise Failure(f"wrk failed against {server.name}: {' '.join(command)}\n{printed}")
    counts = json.loads(match.group(1))
    if counts["requests"] == 0 or counts["status"] or counts["socket"]:
        raise Failure(f"{server.name}: errors under load: {' '.join(command)}\n{printed}")
    if is_checked:
        _expect_bytes(server, body, counts["bytes"], counts["requests"], printed)
    return LoadResult(
        requests=counts["requests"],
        bytes=counts["bytes"],
        seconds=counts["microseconds"] / 1e6,
        p50_us=counts["p50"],
        p99_us=counts["p99"],
        **measured,
    )


def run_h2load(server: Server, body: Body, seconds: int, *, cores: Cores | None) -> LoadResult:
    """HTTP/2 over TLS, 8 connections with 16 streams each."""
    return _h2load(server, h2load_command(server.url(body.path, True), seconds, body.fields), body, seconds, cores)


def run_h2load_list(
    server: Server, urls: pathlib.Path, streams: int, seconds: int, *, cores: Cores | None
) -> LoadResult:
    """One client, for the URLs in a file, in order."""
    return _h2load(server, h2load_list_command(urls, streams, seconds), None, seconds, cores)


def _h2load(
    server: Server, command: list[str], body: Body | None, seconds: int, cores: Cores | None
) -> LoadResult:
    printed, measured = _run(server, command, seconds, cores)
    took = re.search(r"^finished in ([\d.]+)(s|ms),", printed, re.MULTILINE)
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", printed)
    traffic = re.search(r"^traffic: \S+ \((\d+)\) total", printed, re.MULTILINE)
    if not (took and counts and traffic) or "Application protocol: h2" not in printed:
        raise Failure(f"h2load failed against {server.name}: {' '.join(command)}\n{printed}")
    requests, *failures = (int(number) for number in counts.groups())
    if requests == 0 or any(failures) or re.search(r" [1-9]\d* [45]xx", printed):
        raise Failure(f"{server.name}: errors under load: {' '.join(command)}\n{printed}")
    if body:
        _expect_bytes(server, body, int(traffic.group(1)), requests, printed)
    return LoadResult(
        requests=requests,
        bytes=int(traffic.group(1)),
        seconds=float(took.group(1)) / (1000 if took.group(2) == "ms" else 1),
        p50_us=None,
        p99_us=None,
        **measured,
    )


def _run(server: Server, command: list[str], seconds: float, cores: Cores | None) -> tuple[str, dict[str, float]]:
    """What it printed, and times of the processor and the clock. Those of the processor are wrong where other runs
    end meanwhile, as in the mixed load."""
    command = pinned(command, cores.load if cores else None)
    cpu_before, load_before, start = cpu_seconds(server.process.pid), _ended_children_cpu_seconds(), time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds + 60, check=False
    )
    cpu, wall = cpu_seconds(server.process.pid) - cpu_before, time.monotonic() - start
    server.process.expect_running()
    if done.returncode != 0:
        raise Failure(f"{command[0]} failed against {server.name}: {' '.join(command)}\n{done.stdout}")
    return done.stdout, {
        "server_cpu_seconds": cpu,
        "load_cpu_seconds": _ended_children_cpu_seconds() - load_before,
        "wall_seconds": wall,
    }


def _expect_bytes(server: Server, body: Body, count: int, requests: int, printed: str) -> None:
    # Requests whose answers had begun at the end count as bytes only.
    if not requests * body.least_bytes <= count <= (requests + 256) * body.most_bytes:
        raise Failure(f"{server.name}: {count} bytes in {requests} answers for {body.label}\n{printed}")


def _ended_children_cpu_seconds() -> float:
    """The load is the only child that ends while it runs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
