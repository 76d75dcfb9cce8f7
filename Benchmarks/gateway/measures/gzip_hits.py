"""S22: hits a second of text that is stored as gzip members, sent to clients that accept gzip."""

from __future__ import annotations

from load.verification import verify_gzip
from load.wrk import LoadResult
from measures.bench import Bench, say, turned
from measures.hit_rates import CONNECTIONS
from report.numbers import median, significant
from report.row import Row, Table
from servers.bodies import TEXTS
from servers.nginx_static import NAME as NGINX

LARDER = "Larder --compress"


def measure_gzip_hits(bench: Bench) -> tuple[list[Row], list[Table]]:
    results: dict[tuple[str, str], list[LoadResult]] = {}
    with bench.running(bench.kinds_named(LARDER, NGINX)) as servers:
        for server in servers:
            verify_gzip(server)
        for number in range(bench.rounds):
            for body in TEXTS:
                for server in turned(servers, number):
                    result = bench.hits(server, body, CONNECTIONS, bench.seconds)
                    results.setdefault((server.name, body.label), []).append(result)
                    say(f"round {number + 1}, {body.label} of text, {server.name}: {significant(result.rate)} hits/s")
    rows = []
    for body in TEXTS:
        ours, theirs = results.get((LARDER, body.label), []), results[NGINX, body.label]
        rows.append(
            Row(
                target_id="S22",
                measure=f"gzip hits/s, {body.label} of text",
                against=NGINX,
                bound=">=",
                target=1.0,
                ratios=[our.rate / their.rate for our, their in zip(ours, theirs)],
                figures=" to ".join(significant(median(side, lambda run: run.rate)) for side in (ours, theirs) if side),
            )
        )
    return rows, []
