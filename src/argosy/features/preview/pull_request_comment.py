"""Renders a preview as a pull request comment.

In: a preview. Out: Markdown with a marker, so that the next comment can replace this one. Never: exceeds the host's
size limit; lets manifest text become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.features.preview.service import Preview
from argosy.features.preview.summary import head_line, rows, unified
from argosy.gitops.analysis.object_changes import Change, Touched

MARK: Final = "<!-- argosy-preview -->"
MOST_CHARACTERS: Final = 65_536  # GitHub's limit
MOST_LINES: Final = 400  # per object
MOST_ROWS: Final = 100
_ROOM: Final = 600  # for the note about omitted objects
_TICKS: Final = re.compile(r"`{3,}")
_MENTION: Final = re.compile(r"@(?=\w)")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~@])")


def comment(preview: Preview, most: int = MOST_CHARACTERS) -> str:
    head = "\n".join(_head(preview))
    parts, left = [head], most - len(head) - _ROOM
    details = [(touched, change) for touched in preview.impact.touched for change in touched.changes]
    dropped = 0
    for touched, change in details:
        text = "" if dropped else _details(touched, change)
        if dropped or len(text) + 1 > left:
            dropped += 1
            continue
        parts.append(text)
        left -= len(text) + 1
    if dropped:
        parts.append(
            f"\n_{dropped} of {len(details)} objects are not shown: the comment would be too long. Show all: "
            f"`argosy preview {_typed(preview).replace('`', '?')} --diff`, or `-o html`._"
        )
    text = "\n".join(parts)
    return text if len(text) <= most else text[: most - 40].rstrip() + "\n\n_…truncated: too long for a comment._"


def _typed(preview: Preview) -> str:
    return preview.names[0] if preview.is_working else "...".join(preview.names)


def _head(preview: Preview) -> Iterator[str]:
    yield MARK
    yield f"### argosy preview · {escaped(preview.title)}"
    yield ""
    yield f"**Impact**: {escaped(preview.impact.sentence)}"
    yield ""
    found = rows(preview)
    if found:
        yield "| app | + | ~ | – | sync | impact |"
        yield "|---|---|---|---|---|---|"
    for row in found[:MOST_ROWS]:
        name = escaped(f"{row.name} ({row.environment})" if row.environment else row.name)
        impact = escaped(row.impact if len(row.impact) < 500 else f"{row.impact[:499]}…")
        yield f"| {name} | {row.new} | {row.other} | {row.gone} | {row.sync} | {impact} |"
    if len(found) > MOST_ROWS:
        yield f"| …and {len(found) - MOST_ROWS} more | | | | | |"
    yield ""
    for note in preview.notes[:10]:
        yield f"- {escaped(note[:300])}"
    if preview.notes:
        yield ""
    yield f"<sub>{escaped(head_line(preview))}</sub>"
    yield ""


def _details(touched: Touched, change: Change) -> str:
    lines = unified(change)
    cut = [f"… {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    text = "\n".join([*lines[:MOST_LINES], *cut])
    longest = max((len(each) for each in _TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    where = f" -n {change.key.namespace}" if change.key.namespace else ""
    title = _html(f"{change.becomes} {touched.name} · {change.name}{where}")
    return f"<details><summary>{title}</summary>\n\n{fence}diff\n{text}\n{fence}\n\n</details>"


def escaped(text: str) -> str:
    """Escape text for one line of Markdown, without @mentions."""
    return _SPECIAL.sub(r"\\\1", _unmentioned(" ".join(text.split())))


def _unmentioned(text: str) -> str:
    """Insert a zero-width space after `@`; hosts detect mentions after they remove backslash escapes."""
    return _MENTION.sub("@\u200b", text)


def _html(text: str) -> str:
    """Escape HTML on one line, because a blank line would end the surrounding HTML block."""
    text = _unmentioned(" ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
