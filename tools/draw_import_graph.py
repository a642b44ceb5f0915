"""Draws the imports between packages: `python tools/draw_import_graph.py SOURCE TITLE > docs/images/imports.svg`.

In: the folder that holds the package `argosy`, such as `src`, and a title. Out: an SVG picture. A package stands above
the packages that it imports. An edge that follows from two others is not drawn.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = "argosy"
# Packages whose subpackages are boxes of their own.
SPLIT = ("gitops", "kube")
# Marks the packages of one feature, to show how far it is spread.
FEATURE = "promot"
BOX_WIDTH, BOX_HEIGHT, GAP, ROW = 172, 26, 14, 62
BOXES_IN_A_ROW = 5
MARGIN, TITLE_HEIGHT = 20, 60

Graph = dict[str, set[str]]


class Import(NamedTuple):
    importer: str
    imported: str


def find_modules(source: Path) -> dict[str, Path]:
    names = {}
    for path in sorted((source / ROOT).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def list_imports(modules: Mapping[str, Path]) -> Iterator[Import]:
    """Every import of one module by another, also inside functions."""
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for target in targets:
                imported = target if target in modules else target.rpartition(".")[0]
                if imported in modules and imported != name:
                    yield Import(name, imported)


def get_box(module: str) -> str:
    parts = module.split(".")[1:]
    return ".".join(parts[:2] if parts and parts[0] in SPLIT else parts[:1])


def find_circles(graph: Graph) -> list[set[str]]:
    """The strongly connected components of more than one node, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(component) > 1:
                circles.append(component)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return circles


def build_graph(edges: Iterable[Import]) -> Graph:
    graph: Graph = {}
    for importer, imported in edges:
        graph.setdefault(importer, set())
        graph.setdefault(imported, set())
        if importer and imported and importer != imported:
            graph[importer].add(imported)
    graph.pop("", None)
    return graph


def find_levels(graph: Graph) -> dict[str, int]:
    """For each box the length of the longest path of imports below it."""
    levels: dict[str, int] = {}

    def visit(node: str) -> int:
        if node not in levels:
            levels[node] = 0
            levels[node] = max((visit(target) + 1 for target in graph[node]), default=0)
        return levels[node]

    for node in graph:
        visit(node)
    return levels


def list_reachable(graph: Graph, start: str) -> set[str]:
    reachable: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        if (node := waiting.pop()) not in reachable:
            reachable.add(node)
            waiting += graph[node]
    return reachable


def place_boxes(graph: Graph) -> dict[str, tuple[int, int]]:
    """The top left corner of each box; rows from the highest level down, each in the middle."""
    levels = find_levels(graph)
    rows: list[list[str]] = []
    for level in range(max(levels.values()), -1, -1):
        boxes = sorted(box for box in graph if levels[box] == level)
        rows += [boxes[start : start + BOXES_IN_A_ROW] for start in range(0, len(boxes), BOXES_IN_A_ROW)]
    corners = {}
    for number, row in enumerate(rows):
        start = MARGIN + (BOXES_IN_A_ROW - len(row)) * (BOX_WIDTH + GAP) // 2
        for column, box in enumerate(row):
            corners[box] = (start + column * (BOX_WIDTH + GAP), MARGIN + TITLE_HEIGHT + number * ROW)
    return corners


def draw_edges(graph: Graph, corners: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    for box in sorted(graph):
        implied = set().union(*(list_reachable(graph, target) for target in graph[box]))
        for target in sorted(graph[box] - implied):
            (x1, y1), (x2, y2) = corners[box], corners[target]
            x1, y1, x2 = x1 + BOX_WIDTH // 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH // 2
            bend = max((y2 - y1) // 2, 12)
            yield f'<path d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"/>'


def draw_boxes(modules: Iterable[str], corners: Mapping[str, tuple[int, int]], marked: set[str]) -> Iterator[str]:
    counts = Counter(get_box(name) for name in modules)
    for box, (x, y) in sorted(corners.items()):
        css_class = ' class="marked"' if box in marked else ""
        yield f'<rect{css_class} x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        yield f'<text class="box" x="{x + BOX_WIDTH // 2}" y="{y + 17}">{box}<tspan> {counts[box]}</tspan></text>'


STYLE = (
    "text{font:12px sans-serif;fill:#24292f}.title{font-weight:bold;font-size:15px}.box{text-anchor:middle}"
    "tspan{fill:#57606a;font-size:9px}rect{fill:#f6f8fa;stroke:#8c959f}rect.marked{fill:#fff1c2;stroke:#bf8700}"
    "path{fill:none;stroke:#8c959f;stroke-width:.8}"
)


def draw_picture(source: Path, title: str) -> str:
    modules = find_modules(source)
    imports = list(list_imports(modules))
    circles = find_circles(build_graph(imports))
    graph = build_graph(Import(get_box(importer), get_box(imported)) for importer, imported in imports)
    marked = {get_box(name) for name in modules if FEATURE in name}
    corners = place_boxes(graph)
    width = BOXES_IN_A_ROW * (BOX_WIDTH + GAP) - GAP + 2 * MARGIN
    height = max(y for _, y in corners.values()) + BOX_HEIGHT + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" style="fill:#fff;stroke:none"/>',
            f'<text class="title" x="{MARGIN}" y="{MARGIN + 14}">{title}</text>',
            f'<text x="{MARGIN}" y="{MARGIN + 34}">{len(modules):,} modules in {len(corners)} packages; '
            f"import circles: {len(circles)}; yellow: packages with a module named after promotions</text>",
            *draw_edges(graph, corners),
            *draw_boxes(modules, corners, marked),
            "</svg>",
        ]
    )


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)  # a path of imports may be long
    print(draw_picture(Path(sys.argv[1]), sys.argv[2]))
