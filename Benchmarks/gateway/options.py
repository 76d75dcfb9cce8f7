"""The command line of gateway.py."""

from __future__ import annotations

import argparse
import os
import pathlib

TARGET_IDS = [*(f"G{number}" for number in range(1, 13)), "S22"]


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/bench gateway",
        description="Measures cachectl serve beside nginx and Varnish. About half an hour with the defaults.",
    )
    larder = parser.add_mutually_exclusive_group(required=True)
    larder.add_argument(
        "--cachectl", type=pathlib.Path, metavar="FILE", help="the binary; tools/bench builds it by default"
    )
    larder.add_argument(
        "--without-larder", action="store_true", help="only the others, to try the set-up; writes no report"
    )
    parser.add_argument(
        "--only", type=_target_ids, default=TARGET_IDS, metavar="G1,G3", help="some targets; writes no report"
    )
    parser.add_argument("--seconds", type=_count, default=5, help="of each run of wrk (default: 5)")
    parser.add_argument("--rounds", type=_count, default=3, help="(default: 3)")
    parser.add_argument(
        "--path",
        type=pathlib.Path,
        default=pathlib.Path(os.environ.get("TMPDIR", "/var/tmp")),
        help="where the stores lie; default: $TMPDIR, or /var/tmp",
    )
    parser.add_argument("--no-report", action="store_true", help="print the tables, write nothing")
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE", help="default: docs/benchmarks/gateway.md")
    parser.add_argument(
        "--note",
        type=_note,
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="a line about the machine, in the report",
    )
    return parser.parse_args(arguments)


def _target_ids(text: str) -> list[str]:
    wanted = text.split(",")
    unknown = [target_id for target_id in wanted if target_id not in TARGET_IDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGET_IDS)}")
    return [target_id for target_id in TARGET_IDS if target_id in wanted]


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, not {text}")
    return int(text)


def _note(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"NAME=TEXT, not {text}")
    return name, value
