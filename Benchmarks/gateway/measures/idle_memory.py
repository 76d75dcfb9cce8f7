"""G4: resident memory with 1,000 idle keep-alive clients over HTTP/1.1, TLS and HTTP/2, each of which got a hit before. A new
process in every round."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from load.idle_clients import idle_clients
from load.idle_http2 import idle_http2_clients
from load.verification import verify, verify_stored
from measures.bench import Bench, say, turned
from report.numbers import mebibytes, median
from report.row import Row, Table
from servers.bodies import SMALL
from servers.server import Kind, Server
from system.memory import Memory

CLIENTS = 1000
TARGET = 1.5
PROTOCOLS = ["HTTP/1.1", "TLS", "HTTP/2"]
SETTLE_SECONDS = 0.5


@dataclass(frozen=True)
class Round:
    alone: Memory
    """After a miss and a hit, without clients."""
    idle: Memory


Results = dict[tuple[str, str], list[Round]]
"""Name of a server and protocol to one result for each round."""


def measure_idle_memory(bench: Bench) -> tuple[list[Row], list[Table]]:
    kinds = bench.kinds_named("Larder", "nginx")
    results: Results = {}
    for number in range(bench.rounds):
        for protocol in PROTOCOLS:
            for kind in turned(kinds, number):
                result = _round(bench, kind, protocol)
                results.setdefault((kind.name, protocol), []).append(result)
                say(
                    f"round {number + 1}, memory, {kind.name}, {protocol}: {mebibytes(result.idle.resident)} with {CLIENTS}"
                    f" clients, {mebibytes(result.alone.resident)} without"
                )
    rows = []
    for protocol in PROTOCOLS:
        rows.append(_row(results, protocol, "resident memory (VmRSS)", lambda memory: memory.resident))
        rows.append(_row(results, protocol, "anonymous memory (RssAnon)", lambda memory: memory.anonymous))
    return rows, [_table(results)]


def _clients(server: Server, protocol: str):
    if protocol == "HTTP/2":
        return idle_http2_clients(server, CLIENTS)
    return idle_clients(server, CLIENTS, is_secure=protocol == "TLS")


def _round(bench: Bench, kind: Kind, protocol: str) -> Round:
    with bench.running([kind]) as (server,):
        verify(server, [SMALL])
        if protocol != "HTTP/1.1":
            verify_stored(server, [SMALL], is_secure=True)
        time.sleep(SETTLE_SECONDS)
        alone = Memory.of(server.serving_processes())
        with _clients(server, protocol) as expect_connected:
            time.sleep(SETTLE_SECONDS)
            idle = Memory.of(server.serving_processes())
            expect_connected()
    return Round(alone, idle)


def _row(results: Results, protocol: str, name: str, value) -> Row:
    theirs = [value(result.idle) for result in results["nginx", protocol]]
    ours = [value(result.idle) for result in results.get(("Larder", protocol), [])]
    figures = mebibytes(statistics.median(theirs))
    if ours:
        figures = f"{mebibytes(statistics.median(ours))} to {figures}"
    return Row(
        target_id="G4",
        measure=f"{name}, {CLIENTS:,} idle clients, {protocol}",
        against="nginx",
        bound="<=",
        target=TARGET,
        ratios=[our / their for our, their in zip(ours, theirs)],
        figures=figures,
    )


def _table(results: Results) -> Table:
    lines = []
    for (server, protocol), rounds in results.items():
        states = [(f"{CLIENTS:,} clients", lambda result: result.idle), ("no clients", lambda result: result.alone)]
        for state, memory in states:
            values = [memory(result) for result in rounds]
            lines.append(
                [
                    f"{server}, {protocol}, {state}",
                    mebibytes(median(values, lambda value: value.resident)),
                    mebibytes(median(values, lambda value: value.anonymous)),
                    mebibytes(median(values, lambda value: value.proportional)),
                    str(max(value.processes for value in values)),
                ]
            )
    return Table(
        title="Memory of idle clients",
        text=(
            "Summed over the processes of a server: of nginx its master and its worker, without cache manager and cache"
            " loader. VmRSS counts pages that those two share twice, and with Larder the mapped pages of the store; RssAnon"
            " counts neither; Pss counts every page once. Medians."
        ),
        header=["", "VmRSS", "RssAnon", "Pss", "processes"],
        lines=lines,
    )
