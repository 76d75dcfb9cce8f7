"""G1, G2: hits a second over keep-alive connections, by body size. Servers in turn, in every round."""

from __future__ import annotations

from load.verification import verify
from measures.bench import Bench, say, turned
from measures.rates import Results, load_table, ratio_row
from report.numbers import significant
from report.row import Row, Table
from servers.bodies import BODIES

CONNECTIONS = 32
TARGETS = {"G1": ("nginx", [1.5, 1.2, 2.0]), "G2": ("Varnish", [1.5, 1.2, 1.0])}


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
        ratio_row(
            target_id, f"hits/s, {body.label}", body.label, target, results, theirs=TARGETS[target_id][0]
        )
        for target_id in target_ids
        for body, target in zip(BODIES, TARGETS[target_id][1])
    ]
    return rows, [load_table("Hits a second", f"{CONNECTIONS} connections, as fast as they can; medians.", results)]
