"""Tables, and docs/benchmarks/gateway.md around them."""

from __future__ import annotations

from report.row import Row, Table

_METHOD = """\
`cachectl serve` runs with one event loop and nginx with one worker. Varnish keeps its bodies in memory and cannot be
limited to one event loop, only to the same core. All are on 127.0.0.1 in front of the same origin. Before the
measurement, every server has to return the origin's bytes, from its cache from the second answer on. A run counts only
if every answer in it was whole and as expected, and no request for a stored response reached the origin. Misses and the
mixed load use different content for each URL, because a cache that stores equal content once would otherwise benefit.
In each round the servers are measured in turn. A ratio is the median of the rounds' ratios, and a figure the median of
one server's rounds, so the two may differ. The first column is the number of the target, as `--only` takes it: G for
the gateway as a whole, S22 for its compression. [left.md](left.md) says what limits the rows that are not met."""


def target_table(rows: list[Row]) -> str:
    lines = [
        "|  | measure | against | target | reached |  | figures |",
        "| --- | --- | --- | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        reached = "-" if row.reached is None else f"{row.reached:.2f} x"
        verdict = {None: "not measured", True: "met", False: "**not met**"}[row.is_met]
        target = f"{row.bound} {row.target:g} x"
        cells = [row.target_id, row.measure, row.against, target, reached, verdict, row.figures]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    return f"{sum(row.is_met is True for row in rows)} of {len(rows)} rows met."


def figures_table(table: Table) -> str:
    lines = [f"| {' | '.join(table.header)} |", f"|---|{'---:|' * (len(table.header) - 1)}"]
    lines += [f"| {' | '.join(line)} |" for line in table.lines]
    return f"## {table.title}\n\n{table.text}\n\n" + "\n".join(lines)


def document(
    facts: list[tuple[str, str]],
    rows: list[Row],
    tables: list[Table],
    described: dict[str, str],
    wrk_commands: list[str],
) -> str:
    parts = [
        "# Benchmarks of the gateway",
        "This file is written by `tools/bench gateway`; do not edit it. The first lines of each file in\n"
        "`Benchmarks/gateway/measures` say what the target measures. For the store alone, see"
        " [benchmarks.md](../benchmarks.md).",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in facts),
        _METHOD,
        f"## Targets\n\n{summary(rows)}",
        target_table(rows),
        _rounds(rows),
        *(figures_table(table) for table in tables),
        "## Commands\n\nPORT and DIR stand for free ports and the directories of the run.",
        *(f"{name}:\n\n```\n{text.rstrip()}\n```" for name, text in described.items()),
        "Load:\n\n```\n" + "\n".join(wrk_commands) + "\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rounds(rows: list[Row]) -> str:
    lines = [
        f"| {row.target_id} | {row.measure} | {row.against} | {', '.join(f'{ratio:.2f}' for ratio in row.ratios)} |"
        for row in rows
        if row.ratios
    ]
    if not lines:
        return ""
    head = "| | measure | against | rounds |\n|---|---|---|---|\n"
    return "<details><summary>Ratios by round</summary>\n\n" + head + "\n".join(lines) + "\n\n</details>"
