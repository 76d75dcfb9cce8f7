"""G3: p99 of hits while 100 misses wait for a slow origin, at the same moderate load for every server."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass

from load import slow_misses
from load.verification import verify
from load.wrk import LoadResult
from measures.bench import Bench, say, turned
from report.numbers import duration, median, significant
from report.row import Row, Table
from servers.bodies import SMALL
from servers.server import Server
from system.cores import pinned, yielding
from system.failure import Failure
from system.processes import Process

CONNECTIONS = 8
IN_FLIGHT = 100
TARGET = 0.5
SCRIPT = "paced.lua"


@dataclass(frozen=True)
class Round:
    quiet: LoadResult
    """Without misses."""
    slow: LoadResult
    misses: int
    miss_seconds: float
    """Median. Well over the two seconds of the origin, the server made misses wait for each other."""


def measure_slow_miss_latency(bench: Bench) -> tuple[list[Row], list[Table]]:
    results: dict[str, list[Round]] = {}
    with bench.running(bench.kinds_named("Larder", "nginx")) as servers:
        for server in servers:
            verify(server, [SMALL])
            bench.hits(server, SMALL, CONNECTIONS, 1, SCRIPT)
        for number in range(bench.rounds):
            for server in turned(servers, number):
                result = _round(bench, server, f"{server.name}-{number}")
                results.setdefault(server.name, []).append(result)
                say(
                    f"round {number + 1}, p99 of hits, {server.name}: {duration(result.slow.p99_us)} beside slow misses,"
                    f" {duration(result.quiet.p99_us)} without"
                )
    return [_row(results)], [_table(results)]


def _round(bench: Bench, server: Server, prefix: str) -> Round:
    quiet = bench.hits(server, SMALL, CONNECTIONS, bench.seconds, SCRIPT)
    # The clients share wrk's core, and must not be what its hits wait for.
    command = yielding([sys.executable, slow_misses.__file__, str(server.port), str(IN_FLIGHT), prefix])
    directory = bench.directory / f"slow-misses-{prefix}"
    directory.mkdir()
    with Process("slow misses", pinned(command, bench.cores.load if bench.cores else None), directory) as clients:
        clients.wait_for("(in flight)", 60)
        slow = bench.hits(server, SMALL, CONNECTIONS, bench.seconds, SCRIPT)
        clients.expect_running()
        clients.stop()
        done = json.loads(clients.wait_for("DONE (.*)"))
    if done["failure"]:
        raise Failure(f"{server.name}: a slow miss failed: {done['failure']}")
    return Round(quiet, slow, done["answers"], done["median_seconds"])


def _row(results: dict[str, list[Round]]) -> Row:
    theirs = [result.slow.p99_us for result in results["nginx"]]
    ours = [result.slow.p99_us for result in results.get("Larder", [])]
    figures = duration(statistics.median(theirs))
    if ours:
        figures = f"{duration(statistics.median(ours))} to {figures}"
    return Row(
        target_id="G3",
        measure=f"p99 of hits beside {IN_FLIGHT} slow misses, {SMALL.label}",
        against="nginx",
        bound="<=",
        target=TARGET,
        ratios=[our / their for our, their in zip(ours, theirs)],
        figures=figures,
    )


def _table(results: dict[str, list[Round]]) -> Table:
    lines = []
    for server, rounds in results.items():
        lines.append(
            [
                server,
                significant(median(rounds, lambda result: result.slow.rate)),
                duration(median(rounds, lambda result: result.slow.p50_us)),
                duration(median(rounds, lambda result: result.slow.p99_us)),
                duration(median(rounds, lambda result: result.quiet.p50_us)),
                duration(median(rounds, lambda result: result.quiet.p99_us)),
                f"{median(rounds, lambda result: result.misses):.0f}",
                f"{median(rounds, lambda result: result.miss_seconds):.2f} s",
            ]
        )
    return Table(
        title="Hits beside slow misses",
        text=(
            f"{CONNECTIONS} connections, each of which waits 1 to 3 ms after an answer; {IN_FLIGHT} other clients ask for"
            " URLs that no client asked for before, which the origin answers after 2 s. Medians."
        ),
        header=[
            "",
            "hits/s",
            "p50",
            "p99",
            "p50 without misses",
            "p99 without misses",
            "misses answered",
            "time of a miss",
        ],
        lines=lines,
    )
