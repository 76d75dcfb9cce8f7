"""G1, G2: hits a second over keep-alive connections, by body size. Servers in turn, in every round."""

from __future__ import annotations

import statistics

from load.verification import verify
from load.wrk import WrkResult
from measures.bench import Bench, say, turned
from report.numbers import duration, median, significant
from report.row import Row, Table
from servers.bodies import BODIES, Body

CONNECTIONS = 32
TARGETS = {"G1": ("nginx", [1.5, 1.2, 2.0]), "G2": ("Varnish", [1.2, 1.1, 1.0])}

Results = dict[tuple[str, str], list[WrkResult]]
"""Name of a server and label of a body to one result for each round."""


def measure_hit_rates(bench: Bench, target_ids: list[str]) -> tuple[list[Row], list[Table]]:
    kinds = bench.kinds_named("Larder", *(TARGETS[target_id][0] for target_id in target_ids))
    results: Results = {}
    with bench.running(kinds) as servers:
        for server in servers:
            verify(server)
            for body in BODIES:
                bench.hits(server, body, CONNECTIONS, 1)
        for number in range(bench.rounds):
            for body in BODIES:
                for server in turned(servers, number):
                    result = bench.hits(server, body, CONNECTIONS, bench.seconds)
                    results.setdefault((server.name, body.label), []).append(result)
                    say(f"round {number + 1}, {body.label}, {server.name}: {significant(result.rate)} hits/s")
    rows = [
        _row(results, target_id, body, target)
        for target_id in target_ids
        for body, target in zip(BODIES, TARGETS[target_id][1])
    ]
    return rows, [_table(results)]


def _row(results: Results, target_id: str, body: Body, target: float) -> Row:
    other = TARGETS[target_id][0]
    theirs = [result.rate for result in results[other, body.label]]
    ours = [result.rate for result in results.get(("Larder", body.label), [])]
    figures = significant(statistics.median(theirs))
    if ours:
        figures = f"{significant(statistics.median(ours))} to {figures}"
    return Row(
        target_id=target_id,
        measure=f"hits/s, {body.label}",
        against=other,
        bound=">=",
        target=target,
        ratios=[our / their for our, their in zip(ours, theirs)],
        figures=figures,
    )


def _table(results: Results) -> Table:
    lines = []
    for (server, body), rounds in results.items():
        lines.append(
            [
                f"{server}, {body}",
                significant(median(rounds, lambda result: result.rate)),
                significant(median(rounds, lambda result: result.bytes / result.seconds / (1 << 20))),
                duration(median(rounds, lambda result: result.p50_us)),
                duration(median(rounds, lambda result: result.p99_us)),
                f"{median(rounds, lambda result: result.cpu_us_per_request):.1f} us",
                f"{median(rounds, lambda result: result.server_busy) * 100:.0f} %",
                f"{median(rounds, lambda result: result.wrk_busy) * 100:.0f} %",
            ]
        )
    return Table(
        title="Hits a second",
        text=(
            f"{CONNECTIONS} connections, as fast as they can; medians. Where a server is busy for much less than 100 % of"
            " its core, wrk or another process was the limit, and the processor time of a hit says more than the rate."
        ),
        header=["", "hits/s", "MiB/s", "p50", "p99", "processor time of a hit", "server busy", "wrk busy"],
        lines=lines,
    )
