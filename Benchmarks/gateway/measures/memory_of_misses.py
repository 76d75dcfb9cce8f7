"""G12: memory after 1,000,000 different URLs, all of which are stored."""

from __future__ import annotations

import time

from load.wrk import run_wrk
from measures.bench import Bench, say
from measures.hit_rates import CONNECTIONS
from report.numbers import mebibytes
from report.row import Row, Table
from servers.bodies import Numbered
from system.memory import Memory

URLS = 1_000_000
BODY = Numbered("misses", 1000)
TARGET = 64 << 20
SECONDS = 10
"""Of each run of wrk."""


def measure_memory_of_misses(bench: Bench) -> tuple[list[Row], list[Table]]:
    rows: list[Row] = []
    lines = []
    for kind in bench.kinds_named("Larder", "nginx"):
        with bench.running([kind]) as (server,):
            count, start = 0, time.monotonic()
            while count < URLS:
                prefix = f"{BODY.path}{count}-"
                count += run_wrk(
                    server,
                    BODY,
                    CONNECTIONS,
                    SECONDS,
                    cores=bench.cores,
                    script="numbered.lua",
                    arguments=[prefix],
                ).requests
            seconds = time.monotonic() - start
            memory = Memory.of(server.serving_processes())
        say(f"{server.name}: {mebibytes(memory.anonymous)} after {count:,} URLs")
        lines.append(
            [server.name, f"{count:,}", f"{seconds:.0f} s", mebibytes(memory.anonymous), mebibytes(memory.resident)]
        )
        if server.name == "Larder":
            rows.append(
                Row(
                    target_id="G12",
                    measure=f"anonymous memory (RssAnon) after {URLS:,} URLs",
                    against="64 MiB",
                    bound="<=",
                    target=1.0,
                    ratios=[memory.anonymous / TARGET],
                    figures=mebibytes(memory.anonymous),
                )
            )
    return rows, [
        Table(
            title="Memory after many URLs",
            text=(
                "Each stored once, 1 kB. VmRSS counts the mapped pages of Larder's index, which the system takes back when it"
                " needs memory, and nginx's zone of keys: its 16 MiB hold 128,000 of them, and older ones give way."
            ),
            header=["", "URLs", "time", "RssAnon", "VmRSS"],
            lines=lines,
        )
    ]
