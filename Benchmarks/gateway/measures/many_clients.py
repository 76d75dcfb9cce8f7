"""G4: hits a second of 100 busy clients among 10,000."""

from __future__ import annotations

from load.idle_clients import idle_clients
from load.verification import verify
from measures.bench import Bench, say, turned
from measures.rates import Results, load_table, ratio_row
from report.numbers import significant
from report.row import Row, Table
from servers.bodies import SMALL

BUSY = 100
IDLE = 9_900
LABEL = f"{IDLE + BUSY:,} clients, {BUSY} of them busy"


def measure_many_clients(bench: Bench) -> tuple[list[Row], list[Table]]:
    results: Results = {}
    with bench.running(bench.kinds_named("Larder", "nginx")) as servers:
        for server in servers:
            verify(server, [SMALL])
        for number in range(bench.rounds):
            for server in turned(servers, number):
                with idle_clients(server, IDLE) as expect_connected:
                    result = bench.hits(server, SMALL, BUSY, bench.seconds)
                    expect_connected()
                results.setdefault((server.name, LABEL), []).append(result)
                say(f"round {number + 1}, {LABEL}, {server.name}: {significant(result.rate)} hits/s")
    row = ratio_row("G4", f"hits/s, {LABEL}", LABEL, 1.0, results)
    return [row], [load_table("Many clients", "Medians.", results)]
