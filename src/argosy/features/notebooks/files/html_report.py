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

from argosy.features.notebooks.files.summary import CellSummary, Summary, change_of
from argosy.features.notebooks.runner.cells import Cell, Notebook, outputs_of, source_of, text_of, type_of
from argosy.features.notebooks.runner.pictures import size_of

MOST_TEXT: Final = 20_000  # characters of one output
MOST_PICTURE: Final = 5 << 20
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MARKS: Final = {"succeeded": ("✔", "good"), "failed": ("✖", "bad"), "skipped": ("◌", "idle")}
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


def report(summary: Summary, executed: Notebook) -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    word = "passed" if summary.passed else "failed"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">',
            f"<title>{_mark(summary)} {escape(summary.notebook)} {word}</title>",
            f"<style>{STYLE}</style></head><body>",
            *_head(summary, word),
            *_cells(summary, executed),
            "</body></html>\n",
        ]
    )


def _mark(summary: Summary) -> str:
    return "✔" if summary.passed else "✖"


def _head(summary: Summary, word: str) -> Iterator[str]:
    look = "good" if summary.passed else "bad"
    yield f'<h1><span class="{look}">{_mark(summary)} {word}</span> {escape(summary.notebook)}</h1>'
    if summary.error:
        yield f"<p><strong>{escape(summary.error)}</strong></p>"
    counts = summary.statistics
    rows = [
        ("Cells", f"{counts.get('succeeded_cells', 0)} of {counts.get('code_cells', 0)} with code succeeded"),
        ("Time", f"{summary.seconds:.1f} s"),
        ("Level", summary.level + (", strict" if summary.is_strict else "")),
        ("Golden", golden_line(summary)),
        ("Parameters", ", ".join(f"{name} = {json.dumps(value)}" for name, value in summary.parameters.items())),
    ]
    yield (
        "<table>"
        + "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows if text)
        + "</table>"
    )
    if summary.of_all or summary.remarks:
        yield "<ul>" + "".join(
            [*map(_finding, summary.of_all), *(f"<li>{escape(each)}</li>" for each in summary.remarks)]
        )
        yield "</ul>"
    links = (f'<a class="{_look(cell)}" href="#cell-{cell.index}">{cell.index}</a>' for cell in summary.cells)
    yield f'<nav class="strip" aria-label="cells">{"".join(links)}</nav>'


def golden_line(summary: Summary) -> str:
    found = summary.golden
    if found is None:
        return ""
    equal = found.matched - found.near - found.left_out
    parts = [f"{equal} equal"]
    parts += [f"{found.near} within the tolerance"] if found.near else []
    parts += [f"{found.left_out} left out"] if found.left_out else []
    if found.differences:
        first = found.differences[0]
        parts.append(f"{len(found.differences)} different (cell {first.cell}: {change_of(first)})")
    return ", ".join(parts)


def _look(cell: CellSummary | None) -> str:
    if cell is None:
        return "idle"
    return "bad" if cell.is_bad else "odd" if cell.findings else _MARKS[cell.status][1]


def _cells(summary: Summary, executed: Notebook) -> Iterator[str]:
    by_index = {cell.index: cell for cell in summary.cells}
    for index, cell in enumerate(executed.get("cells") or ()):
        found = by_index.get(index)
        yield f'<section id="cell-{index}" class="{_look(found)}">'
        if found is not None:
            mark = "▲" if _look(found) == "odd" else _MARKS["failed" if found.is_bad else found.status][0]
            time = f" · {found.seconds:.1f} s" if found.seconds else ""
            yield f'<h2><span class="{_look(found)}">{mark}</span> cell {index} · {found.status}{time}</h2>'
        yield f"<pre>{_text(source_of(cell))}</pre>" if source_of(cell).strip() else ""
        if found is not None:
            yield from _told(found)
        if type_of(cell) == "code":
            yield from _outputs(cell, is_failed=found is not None and found.status == "failed")
        yield "</section>"


def _told(cell: CellSummary) -> Iterator[str]:
    if cell.findings:
        yield f"<ul>{''.join(map(_finding, cell.findings))}</ul>"
    if cell.difference is not None:
        diff = cell.difference.as_wire()["diff"]
        yield f'<p class="bad">differs from the golden notebook ({cell.difference.severity})</p>'
        yield f"<pre>{_text(diff)}</pre>"
    if cell.traceback and cell.status == "failed":
        yield f'<pre class="out err">{_text(cell.traceback)}</pre>'


def _finding(finding: Mapping[str, Any]) -> str:
    advice = f"; {finding['suggestion']}" if finding.get("suggestion") else ""
    return f"<li><strong>{escape(finding['severity'])}</strong> {escape(finding['message'] + advice)}</li>"


def _outputs(cell: Cell, *, is_failed: bool) -> Iterator[str]:
    for output in outputs_of(cell):
        if output.get("output_type") == "stream":
            look = "out err" if output.get("name") == "stderr" else "out"
            yield f'<pre class="{look}">{_text(text_of(output.get("text")))}</pre>'
        elif isinstance(data := output.get("data"), Mapping):
            yield _data(data)
        elif output.get("output_type") == "error" and not is_failed:
            raised = f"{output.get('ename')}: {text_of(output.get('evalue'))}"
            yield f'<pre class="out err">{_text(raised)}</pre>'


def _data(data: Mapping[str, Any]) -> str:
    picture = _picture(data.get("image/png"))
    if picture:
        return f'<p><img alt="{escape(text_of(data.get("text/plain")))[:200] or "picture"}" src="{picture}"></p>'
    text = text_of(data.get("text/plain")) or text_of(data.get("text/markdown"))
    if text:
        return f'<pre class="out">{_text(text)}</pre>'
    return f'<p class="idle">({escape(", ".join(map(str, data)) or "nothing")}: not shown here)</p>'


def _picture(content: Any) -> str:
    """Data URL of a PNG, re-encoded from its bytes, so that it cannot be anything else."""
    try:
        png = base64.b64decode("".join(text_of(content).split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    if size_of(png) == (0, 0) or len(png) > MOST_PICTURE:
        return ""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _text(text: str) -> str:
    text = _COLOURS.sub("", text)
    return escape(text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n… (truncated)")
