"""G5, G6, G7: hits a second over TLS and HTTP/2, and of answers that are not simply the whole body."""

from __future__ import annotations

from dataclasses import dataclass

from load.verification import verify, verify_stored
from load.wrk import LoadResult
from measures.bench import Bench, say, turned
from measures.hit_rates import CONNECTIONS
from measures.rates import load_table, ratio_row
from report.numbers import significant
from report.row import Row, Table
from servers.bodies import BODIES, LARGE, MIDDLE, SMALL, Body, Part, Unchanged, Varying


@dataclass(frozen=True)
class Case:
    target_id: str
    label: str
    body: Body
    target: float
    protocol: str = "HTTP/1.1"
    peers: tuple[str, ...] = ("nginx",)


CASES = [
    *(
        Case("G5", f"TLS, {body.label}", body, target, "TLS")
        for body, target in [(SMALL, 1.2), (MIDDLE, 1.3), (LARGE, 1.0)]
    ),
    *(
        Case("G6", f"HTTP/2, {body.label}", body, target, "HTTP/2")
        for body, target in [(SMALL, 0.9), (MIDDLE, 1.0), (LARGE, 1.0)]
    ),
    Case("G7", "304 to If-None-Match", Unchanged("304", SMALL.size_bytes), 1.2, peers=("nginx", "Varnish")),
    Case("G7", "206, 200 bytes of 1 MiB", Part("206", LARGE.size_bytes), 1.2, peers=("nginx", "Varnish")),
    Case("G7", "Vary: Accept-Encoding, 1 KiB", Varying("Vary", SMALL.size_bytes), 1.2, peers=("nginx", "Varnish")),
]


def measure_hit_kinds(bench: Bench, target_ids: list[str]) -> tuple[list[Row], list[Table]]:
    cases = [case for case in CASES if case.target_id in target_ids]
    names = {"Larder", *(peer for case in cases for peer in case.peers)}
    results: dict[tuple[str, str], list[LoadResult]] = {}
    with bench.running(bench.kinds_named(*names)) as servers:
        for server in servers:
            verify(server, BODIES)
            for case in cases:
                if server.name in ("Larder", *case.peers):
                    verify_stored(server, [case.body], is_secure=case.protocol != "HTTP/1.1")
        for number in range(bench.rounds):
            for case in cases:
                for server in turned([server for server in servers if server.name in ("Larder", *case.peers)], number):
                    result = bench.hits(server, case.body, CONNECTIONS, bench.seconds, protocol=case.protocol)
                    results.setdefault((server.name, case.label), []).append(result)
                    say(f"round {number + 1}, {case.label}, {server.name}: {significant(result.rate)} hits/s")
    rows = [ratio_row(case.target_id, f"hits/s, {case.label}", case.label, case.target, results) for case in cases]
    text = f"{CONNECTIONS} connections of wrk; HTTP/2: h2load with 8 connections of 16 streams. Medians."
    return rows, [load_table("Hits over TLS and HTTP/2, and in other forms", text, results)] if results else []
