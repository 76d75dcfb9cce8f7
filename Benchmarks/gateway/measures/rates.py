"""Rows and tables of what one run of a load generator gives."""

from __future__ import annotations

from load.wrk import LoadResult
from report.numbers import duration, median, significant
from report.row import Row, Table

Results = dict[tuple[str, str], list[LoadResult]]
"""Name of a server and label of a load to one result for each round."""


def ratio_row(
    target_id: str, measure: str, label: str, target: float, results: Results, ours: str = "Larder", theirs: str = "nginx"
) -> Row:
    """Larder's rate by that of the other, round by round."""
    mine, others = results.get((ours, label), []), results[theirs, label]
    return Row(
        target_id=target_id,
        measure=measure,
        against=theirs,
        bound=">=",
        target=target,
        ratios=[our.rate / their.rate for our, their in zip(mine, others)],
        figures=" to ".join(significant(median(side, lambda run: run.rate)) for side in (mine, others) if side),
    )


def load_table(title: str, text: str, results: Results, unit: str = "hits/s") -> Table:
    lines = []
    for (server, label), rounds in results.items():
        lines.append(
            [
                f"{server}, {label}",
                significant(median(rounds, lambda result: result.rate)),
                significant(median(rounds, lambda result: result.bytes / result.seconds / (1 << 20))),
                _duration(rounds, lambda result: result.p50_us),
                _duration(rounds, lambda result: result.p99_us),
                f"{median(rounds, lambda result: result.cpu_us_per_request):.1f} us",
                f"{median(rounds, lambda result: result.server_busy) * 100:.0f} %",
                f"{median(rounds, lambda result: result.load_busy) * 100:.0f} %",
            ]
        )
    return Table(
        title=title,
        text=(
            f"{text} Where a server is busy for much less than 100 % of its core, the load or the origin was the limit, and"
            " the processor time of an answer says more than the rate."
        ),
        header=["", unit, "MiB/s", "p50", "p99", "processor time of an answer", "server busy", "load busy"],
        lines=lines,
    )


def _duration(rounds: list[LoadResult], value) -> str:
    if any(value(result) is None for result in rounds):
        return "-"
    return duration(median(rounds, value))
