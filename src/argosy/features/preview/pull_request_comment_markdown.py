"""Renders a preview as a pull request comment.

In: a preview. Out: Markdown with a marker, so that the next comment can replace this one. Never: exceeds the host's
size limit; lets manifest text become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.features.preview.output_rows_and_json import build_rows, build_unified_diff, render_preview_summary
from argosy.features.preview.service import Preview
from argosy.gitops.analysis.object_changes import ApplicationChange, ObjectChange

COMMENT_MARK: Final = "<!-- argosy-preview -->"
MAX_COMMENT_CHARACTERS: Final = 65_536  # GitHub's limit
MAX_DIFF_LINES: Final = 400  # per object
MAX_TABLE_ROWS: Final = 100
_RESERVED_CHARACTERS: Final = 600  # for the note about omitted objects
_BACKTICKS_PATTERN: Final = re.compile(r"`{3,}")
_MENTION_PATTERN: Final = re.compile(r"@(?=\w)")
_MARKDOWN_PATTERN: Final = re.compile(r"([\\`*_{}\[\]<>#|~@])")


def render_comment(preview: Preview, max_characters: int = MAX_COMMENT_CHARACTERS) -> str:
    head = "\n".join(_render_comment_header(preview))
    parts, remaining = [head], max_characters - len(head) - _RESERVED_CHARACTERS
    details = [(touched, change) for touched in preview.impact.app_changes for change in touched.changes]
    dropped = 0
    for touched, change in details:
        text = "" if dropped else _render_details(touched, change)
        if dropped or len(text) + 1 > remaining:
            dropped += 1
            continue
        parts.append(text)
        remaining -= len(text) + 1
    if dropped:
        parts.append(
            f"\n_{dropped} of {len(details)} objects are not shown: the comment would be too long. Show all: "
            f"`argosy preview {_build_range_argument(preview).replace('`', '?')} --diff`, or `-o html`._"
        )
    text = "\n".join(parts)
    return (
        text
        if len(text) <= max_characters
        else text[: max_characters - 40].rstrip() + "\n\n_…truncated: too long for a comment._"
    )


def _build_range_argument(preview: Preview) -> str:
    return preview.names[0] if preview.has_working_tree else "...".join(preview.names)


def _render_comment_header(preview: Preview) -> Iterator[str]:
    yield COMMENT_MARK
    yield f"### argosy preview · {escape_markdown(preview.title)}"
    yield ""
    yield f"**Impact**: {escape_markdown(preview.impact.summary)}"
    yield ""
    table_rows = build_rows(preview)
    if table_rows:
        yield "| app | + | ~ | – | sync | impact |"
        yield "|---|---|---|---|---|---|"
    for row in table_rows[:MAX_TABLE_ROWS]:
        name = escape_markdown(f"{row.name} ({row.environment})" if row.environment else row.name)
        impact = escape_markdown(row.impact if len(row.impact) < 500 else f"{row.impact[:499]}…")
        yield f"| {name} | {row.new} | {row.other} | {row.gone} | {row.sync} | {impact} |"
    if len(table_rows) > MAX_TABLE_ROWS:
        yield f"| …and {len(table_rows) - MAX_TABLE_ROWS} more | | | | | |"
    yield ""
    for note in preview.notes[:10]:
        yield f"- {escape_markdown(note[:300])}"
    if preview.notes:
        yield ""
    yield f"<sub>{escape_markdown(render_preview_summary(preview))}</sub>"
    yield ""


def _render_details(touched: ApplicationChange, change: ObjectChange) -> str:
    lines = build_unified_diff(change)
    truncation_note = [f"… {len(lines) - MAX_DIFF_LINES} more lines"] if len(lines) > MAX_DIFF_LINES else []
    text = "\n".join([*lines[:MAX_DIFF_LINES], *truncation_note])
    longest = max((len(ticks) for ticks in _BACKTICKS_PATTERN.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    namespace_text = f" -n {change.key.namespace}" if change.key.namespace else ""
    title = _escape_html(f"{change.change_type} {touched.name} · {change.name}{namespace_text}")
    return f"<details><summary>{title}</summary>\n\n{fence}diff\n{text}\n{fence}\n\n</details>"


def escape_markdown(text: str) -> str:
    """Escape text for one line of Markdown, without @mentions."""
    return _MARKDOWN_PATTERN.sub(r"\\\1", _break_mentions(" ".join(text.split())))


def _break_mentions(text: str) -> str:
    """Insert a zero-width space after `@`; hosts detect mentions after they remove backslash escapes."""
    return _MENTION_PATTERN.sub("@\u200b", text)


def _escape_html(text: str) -> str:
    """Escape HTML on one line, because a blank line would end the surrounding HTML block."""
    text = _break_mentions(" ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
