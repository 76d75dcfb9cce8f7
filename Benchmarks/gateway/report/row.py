"""One target, and what was reached, round by round."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    target_id: str
    measure: str
    against: str
    bound: str
    """`>=` or `<=`."""
    target: float
    ratios: list[float]
    """Larder's figure by the other's, one for each round; empty when Larder was left out."""
    figures: str

    @property
    def reached(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def is_met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached >= self.target if self.bound == ">=" else self.reached <= self.target


@dataclass(frozen=True)
class Table:
    """Figures beside the targets. The first column is text, the others are right-aligned."""

    title: str
    text: str
    header: list[str]
    lines: list[list[str]]
