"""Numbers as people read them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Callable


def median(rounds: Iterable, value: Callable[..., float]) -> float:
    """That of `value`, taken of each round."""
    return statistics.median(value(result) for result in rounds)


def significant(value: float, digits: int = 3) -> str:
    """Three significant digits: 48,600 and 4.86."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:.1f}" if abs(rounded) >= 10 else f"{rounded:.2f}"


def mebibytes(value: float) -> str:
    return f"{value / (1 << 20):.1f} MiB"


def duration(microseconds: float) -> str:
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.0f} us"
