"""Self-contained HTML report of a run.

In: the summary of a run, the executed notebook. Out: HTML. Never: includes scripts, styles or URLs of the notebook:
outputs are shown as text and PNG images, and the page's policy forbids everything else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from argosy.features.notebooks.files.per_cell_run_summary import CellSummary, NotebookRunSummary, describe_change
from argosy.features.notebooks.runner.cell_source_and_tags import (
    Cell,
    Notebook,
    get_cell_type,
    get_source,
    join_text,
    list_outputs,
)
from argosy.features.notebooks.runner.png_size_and_pixels import read_size

MAX_TEXT_CHARACTERS: Final = 20_000  # characters of one output
MAX_IMAGE_BYTES: Final = 5 << 20
_ANSI_CODES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_STATUS_MARKS: Final = {"succeeded": ("✔", "good"), "failed": ("✖", "bad"), "skipped": ("◌", "idle")}
STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0; }
.good { color: #1a7f37; } .bad { color: #cf222e; } .odd { color: #9a6700; } .idle { color: #656d76; }
.strip { display: flex; flex-wrap: wrap; gap: .25rem; margin: 1rem 0; }
.strip a { border: 1px solid currentColor; border-radius: 4px; padding: 0 .45rem; text-decoration: none; }
section { border-left: 4px solid #8884; margin: 1.2rem 0; padding: .1rem 0 .1rem .9rem; }
section.bad, section.odd { border-color: currentColor; } section > * { color: CanvasText; }
pre { background: #8881; border-radius: 6px; margin: .4rem 0; overflow: auto; padding: .6rem .8rem; max-height: 40rem; }
pre.out { background: none; border: 1px solid #8884; } pre.err { border-color: #cf222e; }
ul { margin: .4rem 0; padding-left: 1.2rem; } img { max-width: 100%; background: #fff; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; }
"""


def render_report(summary: NotebookRunSummary, executed: Notebook) -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    result_word = "passed" if summary.passed else "failed"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">',
            f"<title>{_render_result_mark(summary)} {escape(summary.notebook)} {result_word}</title>",
            f"<style>{STYLE}</style></head><body>",
            *_render_header(summary, result_word),
            *_render_cells(summary, executed),
            "</body></html>\n",
        ]
    )


def _render_result_mark(summary: NotebookRunSummary) -> str:
    return "✔" if summary.passed else "✖"


def _render_header(summary: NotebookRunSummary, result_word: str) -> Iterator[str]:
    css_class = "good" if summary.passed else "bad"
    yield (
        f'<h1><span class="{css_class}">{_render_result_mark(summary)} {result_word}</span> '
        f"{escape(summary.notebook)}</h1>"
    )
    if summary.error:
        yield f"<p><strong>{escape(summary.error)}</strong></p>"
    counts = summary.statistics
    rows = [
        ("Cells", f"{counts.get('succeeded_cells', 0)} of {counts.get('code_cells', 0)} with code succeeded"),
        ("Time", f"{summary.seconds:.1f} s"),
        ("Level", summary.level + (", strict" if summary.is_strict else "")),
        ("Golden", describe_golden_comparison(summary)),
        ("Parameters", ", ".join(f"{name} = {json.dumps(value)}" for name, value in summary.parameters.items())),
    ]
    yield (
        "<table>"
        + "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows if text)
        + "</table>"
    )
    if summary.notebook_findings or summary.remarks:
        yield "<ul>" + "".join(
            [
                *map(_render_finding, summary.notebook_findings),
                *(f"<li>{escape(remark)}</li>" for remark in summary.remarks),
            ]
        )
        yield "</ul>"
    links = (
        f'<a class="{_choose_css_class(cell)}" href="#cell-{cell.index}">{cell.index}</a>' for cell in summary.cells
    )
    yield f'<nav class="strip" aria-label="cells">{"".join(links)}</nav>'


def describe_golden_comparison(summary: NotebookRunSummary) -> str:
    comparison = summary.golden
    if comparison is None:
        return ""
    equal = comparison.matched - comparison.matched_within_tolerance - comparison.excluded
    parts = [f"{equal} equal"]
    parts += (
        [f"{comparison.matched_within_tolerance} within the tolerance"] if comparison.matched_within_tolerance else []
    )
    parts += [f"{comparison.excluded} left out"] if comparison.excluded else []
    if comparison.differences:
        first_difference = comparison.differences[0]
        parts.append(
            f"{len(comparison.differences)} different (cell {first_difference.cell}: "
            f"{describe_change(first_difference)})"
        )
    return ", ".join(parts)


def _choose_css_class(cell: CellSummary | None) -> str:
    if cell is None:
        return "idle"
    return "bad" if cell.is_bad else "odd" if cell.findings else _STATUS_MARKS[cell.status][1]


def _render_cells(summary: NotebookRunSummary, executed: Notebook) -> Iterator[str]:
    by_index = {cell.index: cell for cell in summary.cells}
    for index, cell in enumerate(executed.get("cells") or ()):
        cell_summary = by_index.get(index)
        yield f'<section id="cell-{index}" class="{_choose_css_class(cell_summary)}">'
        if cell_summary is not None:
            mark = (
                "▲"
                if _choose_css_class(cell_summary) == "odd"
                else _STATUS_MARKS["failed" if cell_summary.is_bad else cell_summary.status][0]
            )
            time = f" · {cell_summary.seconds:.1f} s" if cell_summary.seconds else ""
            yield (
                f'<h2><span class="{_choose_css_class(cell_summary)}">{mark}</span> cell {index} · '
                f"{cell_summary.status}{time}</h2>"
            )
        yield f"<pre>{_escape_text(get_source(cell))}</pre>" if get_source(cell).strip() else ""
        if cell_summary is not None:
            yield from _render_findings(cell_summary)
        if get_cell_type(cell) == "code":
            yield from _render_outputs(cell, is_failed=cell_summary is not None and cell_summary.status == "failed")
        yield "</section>"


def _render_findings(cell: CellSummary) -> Iterator[str]:
    if cell.findings:
        yield f"<ul>{''.join(map(_render_finding, cell.findings))}</ul>"
    if cell.difference is not None:
        diff = cell.difference.to_wire()["diff"]
        yield f'<p class="bad">differs from the golden notebook ({cell.difference.severity})</p>'
        yield f"<pre>{_escape_text(diff)}</pre>"
    if cell.traceback and cell.status == "failed":
        yield f'<pre class="out err">{_escape_text(cell.traceback)}</pre>'


def _render_finding(finding: Mapping[str, Any]) -> str:
    advice = f"; {finding['suggestion']}" if finding.get("suggestion") else ""
    return f"<li><strong>{escape(finding['severity'])}</strong> {escape(finding['message'] + advice)}</li>"


def _render_outputs(cell: Cell, *, is_failed: bool) -> Iterator[str]:
    for output in list_outputs(cell):
        if output.get("output_type") == "stream":
            css_class = "out err" if output.get("name") == "stderr" else "out"
            yield f'<pre class="{css_class}">{_escape_text(join_text(output.get("text")))}</pre>'
        elif isinstance(data := output.get("data"), Mapping):
            yield _render_data(data)
        elif output.get("output_type") == "error" and not is_failed:
            error_text = f"{output.get('ename')}: {join_text(output.get('evalue'))}"
            yield f'<pre class="out err">{_escape_text(error_text)}</pre>'


def _render_data(data: Mapping[str, Any]) -> str:
    image_url = _build_image_url(data.get("image/png"))
    if image_url:
        return f'<p><img alt="{escape(join_text(data.get("text/plain")))[:200] or "picture"}" src="{image_url}"></p>'
    text = join_text(data.get("text/plain")) or join_text(data.get("text/markdown"))
    if text:
        return f'<pre class="out">{_escape_text(text)}</pre>'
    return f'<p class="idle">({escape(", ".join(map(str, data)) or "nothing")}: not shown here)</p>'


def _build_image_url(content: Any) -> str:
    """Data URL of a PNG, re-encoded from its bytes, so that it cannot be anything else."""
    try:
        png = base64.b64decode("".join(join_text(content).split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    if read_size(png) == (0, 0) or len(png) > MAX_IMAGE_BYTES:
        return ""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _escape_text(text: str) -> str:
    text = _ANSI_CODES.sub("", text)
    return escape(text if len(text) <= MAX_TEXT_CHARACTERS else text[:MAX_TEXT_CHARACTERS] + "\n… (truncated)")
