"""Processor seconds of a server: its own and those of its workers. Ticks of 10 ms, which is fine over seconds."""

from __future__ import annotations

import os

from system.processes import process_tree, stat_fields

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    ticks = 0
    for member in process_tree(pid):
        fields = stat_fields(member)
        if fields:
            # utime and stime: fields 14 and 15 of proc(5), counted from `state`, the third.
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_PER_SECOND
