"""G10, G11: a load like that of a website: 100,000 URLs by Zipf, sizes of the Web, some of it changing, conditions,
ranges, most of it over HTTP/2, and room for a twentieth of the bytes."""

from __future__ import annotations

import concurrent.futures
import http.client
import pathlib
import random
import subprocess
import time
from dataclasses import dataclass

from load.mixed import HTTP2_CLIENTS, HTTP2_STREAMS, Request, Requests, write_for_h2load, write_for_wrk
from load.wrk import LoadResult, run_h2load_list, run_wrk
from measures.bench import Bench, say, turned
from report.numbers import duration, mebibytes, median, significant
from report.row import Row, Table
from servers.bodies import SMALL, Body
from servers.larder import larder
from servers.nginx import nginx
from servers.server import Kind, Server
from system.cpu_time import cpu_seconds
from system.failure import Failure
from system.ports import HOST

CONNECTIONS = 32
BUDGET = 200_000_000
WARM_UP = 4
"""Times the length of a run."""
SAMPLE = 300


@dataclass(frozen=True)
class Mixed:
    http1: LoadResult
    http2: list[LoadResult]
    """Of each client."""
    stored: int
    """Bytes on the disk afterwards."""
    busy: float
    """How much of one core the server used."""

    @property
    def rate(self) -> float:
        return self.http1.rate + self.http2_rate

    @property
    def http2_rate(self) -> float:
        return sum(client.rate for client in self.http2)


def measure_mixed(bench: Bench, target_ids: list[str], cachectl: pathlib.Path | None) -> tuple[list[Row], list[Table]]:
    kinds = {1: _kinds(cachectl, 1), 2: _kinds(cachectl, 2) if "G11" in target_ids else []}
    warm_up = Requests.of_run(0, bench.seconds * WARM_UP)
    results: dict[tuple[str, int], list[Mixed]] = {}
    hits: dict[tuple[str, int], list[LoadResult]] = {}
    for workers in (1, 2):
        if not kinds[workers]:
            continue
        with bench.running(kinds[workers]) as servers:
            for server in servers:
                _verify(server, warm_up.http1)
                _run(bench, server, warm_up, bench.seconds * WARM_UP)
            for number in range(bench.rounds):
                asked = Requests.of_run(number + 1, bench.seconds)
                for server in turned(servers, number):
                    result = _run(bench, server, asked, bench.seconds)
                    results.setdefault((server.name, workers), []).append(result)
                    say(
                        f"round {number + 1}, mixed, {server.name}, workers: {workers}: {significant(result.rate)}/s,"
                        f" p99 {duration(result.http1.p99_us or 0)}, {mebibytes(result.stored)}"
                    )
                    if "G11" in target_ids:
                        run_wrk(server, SMALL, CONNECTIONS, 1, cores=bench.cores)
                        hits.setdefault((server.name, workers), []).append(
                            run_wrk(server, SMALL, CONNECTIONS, bench.seconds, cores=bench.cores)
                        )
    rows = _rows(results) if "G10" in target_ids else []
    if "G11" in target_ids:
        rows += [_scaling("mixed load", results), _scaling("hits, 1 KiB", hits)]
    return rows, [_table(results)]


def _kinds(cachectl: pathlib.Path | None, workers: int) -> list[Kind]:
    budget = ["--budget", f"{BUDGET // 1_000_000}MB"]
    ours = [larder(cachectl.resolve(), "Larder", budget, threads=workers)] if cachectl else []
    return [*ours, nginx("nginx", budget=f"{BUDGET // 1_000_000}m", workers=workers)]


def _run(bench: Bench, server: Server, asked: Requests, seconds: int) -> Mixed:
    lists = bench.directory / "mixed"
    lists.mkdir(exist_ok=True)
    write_for_wrk(lists / "http1", asked.http1)
    for client, some in enumerate(asked.http2):
        write_for_h2load(lists / f"http2-{client}", some, server.url("", True))
    before, start = cpu_seconds(server.process.pid), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1 + HTTP2_CLIENTS) as pool:
        first = pool.submit(
            run_wrk,
            server,
            Body("mixed", 0),
            CONNECTIONS,
            seconds,
            cores=bench.cores,
            script="listed.lua",
            arguments=[str(lists / "http1")],
            is_checked=False,
        )
        others = [
            pool.submit(run_h2load_list, server, lists / f"http2-{client}", HTTP2_STREAMS, seconds, cores=bench.cores)
            for client in range(HTTP2_CLIENTS)
        ]
        http1, http2 = first.result(), [other.result() for other in others]
    busy = (cpu_seconds(server.process.pid) - before) / (time.monotonic() - start)
    for result, some in [(http1, asked.http1), *zip(http2, asked.http2)]:
        if result.requests > len(some):
            raise Failure(f"{server.name}: {result.requests} requests from a list of {len(some)}: raise the rates in mixed.py")
    printed = subprocess.run(["du", "-sB1", str(server.store)], capture_output=True, text=True, check=False).stdout
    return Mixed(http1, http2, int(printed.split()[0]), busy)


def _verify(server: Server, asked: list[Request]) -> None:
    """Some of the answers: as the origin gives them, and as the client asks for what is stored."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=10)
    for one in random.Random(3).sample(asked, SAMPLE):
        for field in (None, one.field):
            connection.request("GET", one.path, headers=dict([field.split(": ", 1)]) if field else {})
            answer = connection.getresponse()
            received, status, expected = answer.read(), 200, one.body.content()
            if field and field.startswith("If-None-Match"):
                status, expected = 304, b""
            elif field:
                status, expected = 206, expected[100:200]
            if answer.status != status or received != expected:
                raise Failure(f"{server.name}: {one} got status {answer.status} and {len(received)} bytes")
    connection.close()


def _rows(results: dict[tuple[str, int], list[Mixed]]) -> list[Row]:
    ours, theirs = results.get(("Larder", 1), []), results["nginx", 1]

    def row(measure: str, bound: str, target: float, value, text) -> Row:
        return Row(
            target_id="G10",
            measure=measure,
            against="nginx",
            bound=bound,
            target=target,
            ratios=[value(our) / value(their) for our, their in zip(ours, theirs)],
            figures=" to ".join(text(median(side, value)) for side in (ours, theirs) if side),
        )

    rows = [
        row("mixed load, answers/s", ">=", 1.2, lambda run: run.rate, significant),
        row("mixed load, p99 over HTTP/1.1", "<=", 0.5, lambda run: run.http1.p99_us, duration),
    ]
    rows.append(
        Row(
            target_id="G10",
            measure="mixed load, bytes on the disk",
            against="its limit of 200 MB",
            bound="<=",
            target=1.0,
            ratios=[run.stored / BUDGET for run in ours],
            figures=mebibytes(median(ours, lambda run: run.stored)) if ours else "",
        )
    )
    return rows


def _scaling(label: str, results) -> Row:
    def gains(name: str) -> list[float]:
        return [two.rate / one.rate for one, two in zip(results.get((name, 1), []), results.get((name, 2), []))]

    ours, theirs = gains("Larder"), gains("nginx")
    return Row(
        target_id="G11",
        measure=f"{label}, rate with two workers by that with one",
        against="nginx",
        bound=">=",
        target=1.0,
        ratios=[our / their for our, their in zip(ours, theirs)],
        figures=" to ".join(f"{median(side, lambda gain: gain):.2f}" for side in (ours, theirs) if side),
    )


def _table(results: dict[tuple[str, int], list[Mixed]]) -> Table:
    lines = []
    for (server, workers), rounds in results.items():
        lines.append(
            [
                f"{server}, workers: {workers}",
                significant(median(rounds, lambda result: result.http1.rate)),
                significant(median(rounds, lambda result: result.http2_rate)),
                duration(median(rounds, lambda result: result.http1.p50_us)),
                duration(median(rounds, lambda result: result.http1.p99_us)),
                mebibytes(median(rounds, lambda result: result.stored)),
                f"{median(rounds, lambda result: result.busy) * 100:.0f} %",
            ]
        )
    return Table(
        title="Mixed load of a website",
        text=(
            f"{CONNECTIONS} connections of wrk over HTTP/1.1 and {HTTP2_CLIENTS} of h2load with {HTTP2_STREAMS} streams each, all"
            " on one core with the origin; a store of 200 MB. Each run draws its own requests from the same URLs. nginx"
            " removes files in the background, and has more hits with what it keeps beyond its limit. Two workers share both"
            " cores with the load. Medians."
        ),
        header=["", "HTTP/1.1 answers/s", "HTTP/2 answers/s", "p50, HTTP/1.1", "p99, HTTP/1.1", "on the disk", "server busy"],
        lines=lines,
    )
