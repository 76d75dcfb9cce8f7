"""G8, G9: answers a second that come from the origin: those that may not be stored, and misses, each for a new URL."""

from __future__ import annotations

import itertools
import socket
import time
from dataclasses import dataclass

from load.verification import verify_passing
from load.wrk import run_wrk
from measures.bench import Bench, say, turned
from measures.hit_rates import CONNECTIONS
from measures.rates import Results, load_table, ratio_row
from report.numbers import median, significant
from report.row import Row, Table
from servers.bodies import NUMBERED_SIZES, SMALL, Body, Numbered, Passing
from servers.server import Server
from system.failure import Failure
from system.ports import HOST

PEERS = ("nginx", "Varnish")
PASSING = Passing("no-store, 1 KiB", SMALL.size_bytes)
GIBIBYTE = 1 << 30
_prefixes = itertools.count()


@dataclass(frozen=True)
class Transfer:
    """One answer of a gibibyte, as a rate of answers."""

    rate: float


def measure_origin_rates(bench: Bench, target_ids: list[str]) -> tuple[list[Row], list[Table]]:
    rates: Results = {}
    long: dict[tuple[str, str], list[Transfer]] = {}
    cases: list[tuple[str, Body]] = []
    if "G8" in target_ids:
        cases.append((PASSING.label, PASSING))
    if "G9" in target_ids:
        cases += [(f"misses, {size // 1000} kB", Numbered("misses", size)) for size in NUMBERED_SIZES]
    with bench.running(bench.kinds_named("Larder", *PEERS)) as servers:
        for server in servers:
            verify_passing(server, PASSING)
        for number in range(bench.rounds):
            for label, body in cases:
                for server in turned(servers, number):
                    result = _run(bench, server, body)
                    rates.setdefault((server.name, label), []).append(result)
                    say(f"round {number + 1}, {label}, {server.name}: {significant(result.rate)}/s")
            if "G8" not in target_ids:
                continue
            for label, path in [("1 GiB, no-store", "/pass-gibibyte"), ("1 GiB, stored", "/many-gibibytes/")]:
                for server in turned([server for server in servers if server.name != "Varnish"], number):
                    seconds = _transfer(server, path + (str(next(_prefixes)) if path.endswith("/") else ""))
                    long.setdefault((server.name, label), []).append(Transfer(1 / seconds))
                    say(f"round {number + 1}, {label}, {server.name}: {1024 / seconds:.0f} MiB/s")
    rows = [
        ratio_row("G8" if body is PASSING else "G9", f"answers/s, {label}", label, 1.0, rates) for label, body in cases
    ]
    for label in dict.fromkeys(label for _, label in long):
        ours, theirs = long.get(("Larder", label), []), long["nginx", label]
        figures = [f"{median(side, lambda run: run.rate) * 1024:.0f} MiB/s" for side in (ours, theirs) if side]
        rows.append(
            Row(
                target_id="G8",
                measure=label,
                against="nginx",
                bound=">=",
                target=1.0,
                ratios=[our.rate / their.rate for our, their in zip(ours, theirs)],
                figures=" to ".join(figures),
            )
        )
    text = f"{CONNECTIONS} connections; the origin shares its core with wrk. Medians."
    return rows, [load_table("Answers of the origin", text, rates, "answers/s")]


def _run(bench: Bench, server: Server, body: Body):
    if body is PASSING:
        return run_wrk(server, body, CONNECTIONS, bench.seconds, cores=bench.cores)
    prefix = f"{body.path}{next(_prefixes)}-"
    return run_wrk(
        server, body, CONNECTIONS, bench.seconds, cores=bench.cores, script="numbered.lua", arguments=[prefix]
    )


def _transfer(server: Server, path: str) -> float:
    """Seconds that a gibibyte takes."""
    start = time.monotonic()
    with socket.create_connection((HOST, server.port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nConnection: close\r\n\r\n".encode())
        buffer = bytearray(1 << 20)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(4096)
            if not piece:
                raise Failure(f"{server.name}: no answer for {path}")
            head += piece
        count = len(head.partition(b"\r\n\r\n")[2])
        while True:
            read = connection.recv_into(buffer)
            if read == 0:
                break
            count += read
    if not head.startswith(b"HTTP/1.1 200") or count != GIBIBYTE:
        raise Failure(f"{server.name}: {count} bytes of a gibibyte for {path}")
    return time.monotonic() - start
