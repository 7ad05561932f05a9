"""The geometry of pictures with flops per byte across, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.reports.console.units import human_ratio

WIDTH, LEFT, BEGIN, MARGIN = 900, 62, 104, 186
"""Of drawings: their width, where lines begin and where the axis begins, room for names at the
right. Between the first two is what computes nothing."""
HEAD, FOOT = 16, 48


class Panel(NamedTuple):
    """A picture with flops per byte across. Lengths in units of the drawing."""

    left: float
    """The powers of ten at the edges, across and up."""
    right: float
    bottom: float
    top: float
    height: int

    def x(self, power: float) -> float:
        share = (power - self.left) / (self.right - self.left)
        return BEGIN + share * (WIDTH - MARGIN - BEGIN)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / ((self.top - self.bottom) or 1.0)
        return self.height - FOOT - share * (self.height - HEAD - FOOT)

    def axis(self) -> Iterator[str]:
        """Lines at the powers of ten across, each with its figure."""
        low = self.height - FOOT
        for power in range(round(self.left), int(self.right + 1e-9) + 1):
            x = self.x(power)
            yield f'<line class="grid" x1="{x:.1f}" y1="{HEAD}" x2="{x:.1f}" y2="{low}"/>'
            yield f'<text x="{x:.1f}" y="{low + 18}">{human_ratio(10.0**power)}</text>'
        middle = (BEGIN + WIDTH - MARGIN) / 2
        yield f'<text x="{middle:.0f}" y="{self.height - 6}">flops per byte</text>'

    def level(self, value: float, label: str) -> str:
        """A line across, with its figure."""
        y = self.y(value)
        return (
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - MARGIN}" y2="{y:.1f}"/>'
            f'<text class="side" x="{LEFT - 6}" y="{y + 4:.1f}">{label}</text>'
        )

    def drawing(self, label: str, parts: str) -> str:
        return (
            f'<div class="scroll picture"><svg viewBox="0 0 {WIDTH} {self.height}" role="group" '
            f'aria-label="{label}">{parts}</svg></div>\n'
        )
