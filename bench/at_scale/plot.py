"""Small multiples as SVG, of nothing but text.

In: panels of lines, each a name and points. Out: the text of one picture. Never: a library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 150, 62, 44, 74
COLOURS = ("#0969da", "#bf5b17", "#1a7f37", "#8250df")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;fill:#24292f}"
    ".frame{fill:none;stroke:#d0d7de}.grid{stroke:#eaeef2}"
    "@media (prefers-color-scheme:dark){text{fill:#8b949e}.title{fill:#e6edf3}.frame{stroke:#30363d}"
    ".grid{stroke:#21262d}}"
)

Points = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    title: str
    lines: Mapping[str, Points]


def picture(title: str, panels: Sequence[Panel], across: int = 2) -> str:
    rows = -(-len(panels) // across)
    width, height = across * (WIDTH + GAP) + LEFT, rows * (HEIGHT + GAP) + TOP + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{title}</title><style>{STYLE}</style>",
        *_legend(dict.fromkeys(name for panel in panels for name in panel.lines)),
    ]
    for index, panel in enumerate(panels):
        x, y = LEFT + index % across * (WIDTH + GAP), TOP + 16 + index // across * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x},{y})">{_panel(panel)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Mapping[str, None]) -> list[str]:
    return [
        f'<rect x="{LEFT + 110 * index}" y="9" width="12" height="12" rx="2" fill="{COLOURS[index % len(COLOURS)]}"/>'
        f'<text x="{LEFT + 110 * index + 18}" y="19">{name}</text>'
        for index, name in enumerate(names)
    ]


def _panel(panel: Panel) -> str:
    points = [point for line in panel.lines.values() for point in line]
    right, top = max(x for x, _ in points), max(y for _, y in points) * 1.1 or 1.0
    parts = [f'<text class="title" y="-8">{panel.title}</text>']
    for part in (0.0, 0.5, 1.0):
        y = HEIGHT * (1 - part)
        parts.append(f'<path class="grid" d="M0 {y:.0f}H{WIDTH}"/>')
        parts.append(f'<text x="-6" y="{y + 4:.0f}" text-anchor="end">{_short(top * part)}</text>')
    for x in sorted({x for x, _ in points}):
        at = WIDTH * x / right
        parts.append(f'<text x="{at:.0f}" y="{HEIGHT + 18}" text-anchor="middle">{x:,.0f}</text>')
    parts.append(f'<rect class="frame" width="{WIDTH}" height="{HEIGHT}"/>')
    for index, line in enumerate(panel.lines.values()):
        colour = COLOURS[index % len(COLOURS)]
        at = [(WIDTH * x / right, HEIGHT * (1 - y / top)) for x, y in sorted(line)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at]
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
