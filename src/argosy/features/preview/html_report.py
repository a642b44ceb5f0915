"""Renders a preview as one self-contained HTML page.

In: a preview. Out: HTML. Never: scripts or external resources; manifest text as markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from typing import Final

from argosy.features.preview.service import Preview
from argosy.features.preview.summary import field_lines, head_line, rows, unified
from argosy.gitops.analysis.object_changes import Change, Touched

MOST_LINES: Final = 2_000  # per object
MOST_CHARACTERS: Final = 8 << 20
MOST_FIELDS: Final = 200
STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 75rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; } .impact { font-size: 1.1rem; }
.odd { color: #9a6700; } .bad { color: #cf222e; } .idle { color: #656d76; }
table { border-collapse: collapse; } td, th { padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top; }
details { border-left: 4px solid #8884; margin: .4rem 0; padding: .1rem 0 .1rem .9rem; }
summary { cursor: pointer; } pre { background: #8881; border-radius: 6px; overflow: auto; padding: .6rem .8rem; }
ins { background: #2ea04333; text-decoration: none; display: block; }
del { background: #f8514933; text-decoration: none; display: block; } code { overflow-wrap: anywhere; }
"""


def page(preview: Preview) -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">',
        f"<title>argosy preview {escape(preview.title)}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>argosy preview · {escape(preview.title)}</h1>",
        f'<p class="impact"><strong>Impact</strong>: {escape(preview.impact.sentence)}</p>',
        *_table(preview),
        *(f'<p class="odd">{escape(note)}</p>' for note in preview.notes),
    ]
    end = [f'<p class="idle">{escape(head_line(preview))}</p>', "</body></html>\n"]
    return "\n".join([*head, *_limited(preview), *end])


def _table(preview: Preview) -> Iterator[str]:
    if not preview.impact.touched:
        return
    names = ("app", "environment", "sync", "+", "~", "–", "impact")
    yield f"<table><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"
    for row in rows(preview):
        yield f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>"
    yield "</table>"


def _limited(preview: Preview) -> Iterator[str]:
    left = MOST_CHARACTERS
    for touched in preview.impact.touched:
        yield f"<h2>{escape(touched.name)}</h2>"
        if touched.fault:
            yield f'<p class="bad">{escape(str(touched.fault.place))}: {escape(touched.fault.message)}</p>'
        for change in touched.changes:
            text = "\n".join(_change(change, touched))
            left -= len(text)
            if left < 0:
                yield '<p class="odd">The rest is omitted: the page would be too long.</p>'
                return
            yield text


def _change(change: Change, touched: Touched) -> Iterator[str]:
    where = f" -n {change.key.namespace}" if change.key.namespace else ""
    is_open = " open" if len(touched.changes) <= 10 else ""
    yield f"<details{is_open}><summary>{change.becomes} {escape(change.name + where)}</summary>"
    fields = list(field_lines(change))
    if fields:
        yield "<table>"
        for each in fields[:MOST_FIELDS]:
            sides = f"<code>{escape(each.before)}</code> → <code>{escape(each.after)}</code>"
            yield f"<tr><td><code>{escape(each.path)}</code></td><td>{sides}</td><td>{escape(each.place)}</td></tr>"
        yield "</table>"
    lines = unified(change)
    yield "<pre>" + "".join(_line(line) for line in lines[:MOST_LINES]) + "</pre>"
    if len(lines) > MOST_LINES:
        yield f'<p class="odd">{len(lines) - MOST_LINES} more lines are omitted.</p>'
    yield "</details>"


def _line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{escape(line)}</{tag}>" if tag else f"{escape(line)}\n"
