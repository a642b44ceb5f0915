"""Renders a preview as one self-contained HTML page.

In: a preview. Out: HTML. Never: scripts or external resources; manifest text as markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from typing import Final

from argosy.features.preview.output_rows_and_json import (
    build_rows,
    build_unified_diff,
    iterate_field_lines,
    render_preview_summary,
)
from argosy.features.preview.service import Preview
from argosy.gitops.analysis.object_changes import ApplicationChange, ObjectChange

MAX_DIFF_LINES: Final = 2_000  # per object
MAX_PAGE_CHARACTERS: Final = 8 << 20
MAX_SHOWN_FIELDS: Final = 200
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


def render_html(preview: Preview) -> str:
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
        f'<p class="impact"><strong>Impact</strong>: {escape(preview.impact.summary)}</p>',
        *_render_table(preview),
        *(f'<p class="odd">{escape(note)}</p>' for note in preview.notes),
    ]
    end = [f'<p class="idle">{escape(render_preview_summary(preview))}</p>', "</body></html>\n"]
    return "\n".join([*head, *_render_changes(preview), *end])


def _render_table(preview: Preview) -> Iterator[str]:
    if not preview.impact.app_changes:
        return
    names = ("app", "environment", "sync", "+", "~", "–", "impact")
    yield f"<table><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"
    for row in build_rows(preview):
        yield f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>"
    yield "</table>"


def _render_changes(preview: Preview) -> Iterator[str]:
    remaining_characters = MAX_PAGE_CHARACTERS
    for touched in preview.impact.app_changes:
        yield f"<h2>{escape(touched.name)}</h2>"
        if touched.render_failure:
            yield (
                f'<p class="bad">{escape(str(touched.render_failure.location))}: '
                f"{escape(touched.render_failure.message)}</p>"
            )
        for change in touched.changes:
            text = "\n".join(_render_change(change, touched))
            remaining_characters -= len(text)
            if remaining_characters < 0:
                yield '<p class="odd">The rest is omitted: the page would be too long.</p>'
                return
            yield text


def _render_change(change: ObjectChange, touched: ApplicationChange) -> Iterator[str]:
    namespace_text = f" -n {change.key.namespace}" if change.key.namespace else ""
    is_open = " open" if len(touched.changes) <= 10 else ""
    yield f"<details{is_open}><summary>{change.change_type} {escape(change.name + namespace_text)}</summary>"
    fields = list(iterate_field_lines(change))
    if fields:
        yield "<table>"
        for field_line in fields[:MAX_SHOWN_FIELDS]:
            sides = f"<code>{escape(field_line.before)}</code> → <code>{escape(field_line.after)}</code>"
            path, place = escape(field_line.path), escape(field_line.place)
            yield f"<tr><td><code>{path}</code></td><td>{sides}</td><td>{place}</td></tr>"
        yield "</table>"
    lines = build_unified_diff(change)
    yield "<pre>" + "".join(_render_diff_line(line) for line in lines[:MAX_DIFF_LINES]) + "</pre>"
    if len(lines) > MAX_DIFF_LINES:
        yield f'<p class="odd">{len(lines) - MAX_DIFF_LINES} more lines are omitted.</p>'
    yield "</details>"


def _render_diff_line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{escape(line)}</{tag}>" if tag else f"{escape(line)}\n"
