"""Charts as inline SVG, with the same bytes for the same figures."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

# Placeholders for the page's colors, which depend on its light or dark mode.
INK, BAR, SECOND = "#010203", "#010204", "#010205"
COLORS = {INK: "currentColor", BAR: "var(--bar, #66788a)", SECOND: "var(--second, #c98a2b)"}
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "neardup",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class Chart(NamedTuple):
    """A picture, and its figures as a table."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    svg: str


def draw(name: str, title: str, description: str, paint: Callable[[Any], None], height: float) -> str:
    """Return the SVG that ``paint`` draws on axes; ``name`` begins its identifiers, so that a page can have several."""
    with matplotlib.rc_context(SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(3.2, height), layout="constrained")
        axes = figure.add_subplot()
        paint(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    # A style there would apply to the whole page.
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for stand_in, color in COLORS.items():
        svg = svg.replace(stand_in, color)
    label = escape(f"{title}: {description}")
    svg = re.sub(r' (?:width|height)="[^"]*pt"', "", svg, count=2)
    return Markup(svg.replace("<svg", f'<svg class="picture" role="img" aria-label="{label}"', 1).strip())


def bars(name: str, title: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> Chart:
    """Return a chart of horizontal bars; in rows with two counts, the second is a part of the first."""
    labels = [str(row[0]) for row in rows]
    has_part = len(columns) > 2
    parts = [f", {columns[2].lower()}: {row[2]:,}" if has_part else "" for row in rows]
    description = "; ".join(f"{row[0]}: {row[1]:,}{part}" for row, part in zip(rows, parts, strict=True))

    def paint(axes: Any) -> None:
        places = range(len(rows))
        axes.barh(places, [row[1] for row in rows], color="none" if has_part else BAR, edgecolor=BAR, linewidth=0.8)
        if has_part:
            axes.barh(places, [row[2] for row in rows], color=BAR)
        # No more labels than can be read.
        step = -(-len(rows) // 25)
        axes.set_yticks(list(places)[::step], labels[::step])
        axes.invert_yaxis()
        axes.set_xlabel(columns[1] if not has_part else f"{columns[1]}; filled: {columns[2].lower()}")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))

    height = 1.0 + 0.17 * min(len(rows), 25)
    return Chart(title, columns, list(rows), draw(name, title, description, paint, height))
