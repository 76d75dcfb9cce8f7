"""Targets G1 to G12 and S22: cachectl serve beside nginx and Varnish, under load from wrk and h2load.

    python3 gateway.py --cachectl FILE [--only G1,G3] [--seconds 5] [--rounds 3]

tools/bench gateway installs what is needed, builds cachectl and runs this. Prints the tables; a run of all targets goes to
docs/benchmarks/gateway.md, too. Linux only (/proc, taskset), Python 3.9 or later, nothing but its library.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from measures.bench import Bench, say
from measures.gzip_hits import LARDER as COMPRESSING
from measures.gzip_hits import measure_gzip_hits
from measures.hit_kinds import measure_hit_kinds
from measures.hit_rates import measure_hit_rates
from measures.idle_memory import measure_idle_memory
from measures.many_clients import measure_many_clients
from measures.memory_of_misses import measure_memory_of_misses
from measures.mixed import measure_mixed
from measures.origin_rates import measure_origin_rates
from measures.slow_miss_latency import measure_slow_miss_latency
from options import TARGET_IDS, parse_options
from report.commands import load_commands, neutral
from report.markdown import document, figures_table, summary, target_table
from report.row import Row, Table
from servers.larder import larder
from servers.nginx import NGINX
from servers.nginx_static import NGINX_STATIC
from servers.origin import running_origin
from servers.varnish import varnish
from system.cores import Cores
from system.descriptors import raise_limit
from system.failure import Failure
from system.machine import file_system, machine_rows, program_rows
from system.processes import stop_all

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    options = parse_options(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        check(options)
        return run(options)
    except Failure as failure:
        say(str(failure))
        return 1


def check(options: argparse.Namespace) -> None:
    if sys.platform != "linux":
        raise Failure("the gateway is measured on Linux only: /proc, taskset")
    # Debian keeps servers there, and off the path of ordinary users.
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    missing = [tool for tool in ("nginx", "varnishd", "wrk", "h2load", "openssl", "taskset", "chrt") if not shutil.which(tool)]
    if missing:
        raise Failure(f"not installed: {', '.join(missing)}")
    if options.cachectl and not os.access(options.cachectl, os.X_OK):
        raise Failure(f"no program at {options.cachectl}")
    options.path = options.path.resolve()
    if not (options.path.is_dir() and os.access(options.path, os.W_OK)):
        raise Failure(f"{options.path} is not a directory that can be written to")
    raise_limit()


def interrupt(number: int, _frame) -> None:
    """Ends the run in order; a second Ctrl-C does not disturb the clearing up."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    say("interrupted")
    sys.exit(128 + number)


def run(options: argparse.Namespace) -> int:
    start = time.monotonic()
    cores = Cores.available()
    if cores:
        # Children start here; those under test move to their own core.
        os.sched_setaffinity(0, {cores.load})
    else:
        say("one core only: servers and wrk share it")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="larder-gateway-", dir=options.path))
    logs = pathlib.Path(tempfile.mkdtemp(prefix="larder-gateway-", dir=memory_directory(options.path)))
    try:
        facts = machine_rows(scratch)
        if os.getloadavg()[0] > 1:
            say(f"the load is {os.getloadavg()[0]:.1f}: other processes take the cores, and the figures say little")
        kinds = [NGINX, NGINX_STATIC, varnish(logs)]
        if options.cachectl:
            program = options.cachectl.resolve()
            kinds[:0] = [larder(program), larder(program, COMPRESSING, ["--compress"])]
        with running_origin(scratch / "origin", cores) as origin:
            bench = Bench(scratch, origin, cores, kinds, options.rounds, options.seconds)
            rows, tables = measure(bench, options.only, options.cachectl)
        facts += [
            ("bodies of Larder and nginx", f"files on {file_system(scratch)}, in the page cache"),
            ("bodies and log of Varnish", f"memory (malloc), {file_system(logs)}"),
            ("cores", cores.described() if cores else "one, shared by all"),
            ("date", time.strftime("%Y-%m-%d")),
            ("run", f"{options.rounds} rounds, {options.seconds} s each, {time.monotonic() - start:.0f} s in all"),
            *program_rows(),
            *options.note,
        ]
        write(options, facts, rows, tables, {name: neutral(text) for name, text in bench.described.items()})
    finally:
        stop_all()
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(logs, ignore_errors=True)
    return 0


def memory_directory(otherwise: pathlib.Path) -> pathlib.Path:
    shared = pathlib.Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else otherwise


def measure(
    bench: Bench, target_ids: list[str], cachectl: pathlib.Path | None
) -> tuple[list[Row], list[Table]]:
    rows: list[Row] = []
    tables: list[Table] = []
    parts = []

    def wanted(*some: str) -> list[str]:
        return [target_id for target_id in target_ids if target_id in some]

    if wanted("G1", "G2"):
        parts.append(measure_hit_rates(bench, wanted("G1", "G2")))
    if "G3" in target_ids:
        parts.append(measure_slow_miss_latency(bench))
    if "G4" in target_ids:
        parts.append(measure_idle_memory(bench))
        parts.append(measure_many_clients(bench))
    if wanted("G5", "G6", "G7"):
        parts.append(measure_hit_kinds(bench, wanted("G5", "G6", "G7")))
    if wanted("G8", "G9"):
        parts.append(measure_origin_rates(bench, wanted("G8", "G9")))
    if wanted("G10", "G11"):
        parts.append(measure_mixed(bench, wanted("G10", "G11"), cachectl))
    if "G12" in target_ids:
        parts.append(measure_memory_of_misses(bench))
    if "S22" in target_ids:
        parts.append(measure_gzip_hits(bench))
    for part_rows, part_tables in parts:
        rows += part_rows
        tables += part_tables
    return rows, tables


def write(
    options: argparse.Namespace,
    facts: list[tuple[str, str]],
    rows: list[Row],
    tables: list[Table],
    described: dict[str, str],
) -> None:
    # The file first: a program that reads the tables through a pipe may close it.
    if not (options.no_report or options.without_larder or options.only != TARGET_IDS):
        file = options.report or ROOT / "docs" / "benchmarks" / "gateway.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document(facts, rows, tables, described, load_commands(options.seconds, ROOT)))
        say(f"wrote {os.path.relpath(file, ROOT)}")
    say(summary(rows))
    print(target_table(rows), *(figures_table(table) for table in tables), sep="\n\n")


if __name__ == "__main__":
    sys.exit(main())
