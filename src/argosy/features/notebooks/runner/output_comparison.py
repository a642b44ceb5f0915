"""Compares the outputs of two cells by MIME type: text, tables, JSON, images.

In: the outputs of a golden cell and of an executed cell. Out: how closely they match, and where they differ. Never:
compares parts that change with every run (ids, addresses, image metadata), unless the comparison is exact.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Any, Final

from argosy.features.notebooks.runner.cell_source_and_tags import join_text
from argosy.features.notebooks.runner.png_size_and_pixels import read_size, read_visible_content
from argosy.features.notebooks.runner.tolerant_text_comparison import Match, Normalizer

RawOutput = Mapping[str, Any]

WIDGET: Final = "application/vnd.jupyter.widget-view+json"  # the id of a widget in one run
_RANDOM_IDS_PATTERN: Final = re.compile(
    r"""\b(?:id|for|href|clip-path|aria-labelledby|xlink:href)\s{0,9}=\s{0,9}(?:"[^"]{0,500}"|'[^']{0,500}')"""
    r"""|url\(#[^)]{0,200}\)|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|<dc:date>[^<]*</dc:date>""",
)
# Characters; longer markup is compared as text, because parsing it takes too long.
MAX_MARKUP_CHARACTERS: Final = 200_000
# JSON keys that are not compared.
_IGNORED_JSON_KEYS: Final = frozenset({"uid", "uuid", "model_id", "display_id", "element_id"})


@dataclass(frozen=True)
class ComparableOutput:
    """One comparable output of a cell: a whole stream, a MIME bundle, or an error."""

    kind: str  # stdout, stderr, execute_result, display_data, error
    contents: Mapping[str, Any] = field(default_factory=dict)
    count: int | None = None

    def render_text(self) -> str:
        """The output as text for people."""
        for name in ("text", "text/plain", "text/markdown", "text/latex", "text/html"):
            if name in self.contents:
                return join_text(self.contents[name])
        return "\n".join(f"<{name}>" for name in self.contents)


@dataclass(frozen=True)
class OutputComparison:
    match: Match = Match.SAME
    reason: str = ""
    is_structural: bool = False


def list_comparable_outputs(outputs: Sequence[RawOutput], ignored: Sequence[str] = ()) -> list[ComparableOutput]:
    """Outputs to compare: streams as a whole, because chunk boundaries are random, then the others in order."""
    streams: dict[str, list[str]] = {}
    others: list[ComparableOutput] = []
    for output in outputs:
        kind = str(output.get("output_type") or "")
        if kind == "stream":
            streams.setdefault(str(output.get("name") or "stdout"), []).append(join_text(output.get("text")))
        elif kind == "error":
            others.append(
                ComparableOutput("error", {"ename": output.get("ename"), "text": join_text(output.get("evalue"))})
            )
        elif isinstance(data := output.get("data"), Mapping):
            others.append(ComparableOutput(kind, _drop_ignored_types(data, ignored), output.get("execution_count")))
    merged_streams = [
        ComparableOutput(name, {"text": "".join(pieces)}) for name, pieces in sorted(streams.items(), reverse=True)
    ]
    return [output_entry for output_entry in [*merged_streams, *others] if not _is_ignored(output_entry, ignored)]


def _drop_ignored_types(data: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    return {
        mime: content for mime, content in data.items() if not any(fnmatchcase(mime, pattern) for pattern in ignored)
    }


def _is_ignored(output: ComparableOutput, ignored: Sequence[str]) -> bool:
    kinds = (output.kind, "stream") if output.kind in ("stdout", "stderr") else (output.kind,)
    return (
        not output.contents
        or (output.kind in ("stdout", "stderr") and not output.render_text())
        or bool(set(kinds) & set(ignored))
    )


def compare_outputs(
    golden: ComparableOutput, executed: ComparableOutput, text_normalizer: Normalizer, *, with_counts: bool
) -> OutputComparison:
    if golden.kind != executed.kind:
        return OutputComparison(
            Match.DIFFERENT,
            f"is {_describe_kind(executed.kind)}, was {_describe_kind(golden.kind)}",
            is_structural=True,
        )
    if golden.kind == "error" and golden.contents["ename"] != executed.contents["ename"]:
        return OutputComparison(
            Match.DIFFERENT, f"raises {executed.contents['ename']}, raised {golden.contents['ename']}"
        )
    if with_counts and golden.count != executed.count:
        return OutputComparison(Match.DIFFERENT, f"execution count is {executed.count}, was {golden.count}")
    if missing_types := sorted(golden.contents.keys() - executed.contents.keys()):
        return OutputComparison(Match.DIFFERENT, f"has no {', '.join(missing_types)} any longer", is_structural=True)
    if added_types := sorted(executed.contents.keys() - golden.contents.keys()):
        return OutputComparison(
            Match.DIFFERENT, f"has {', '.join(added_types)}, which the golden output does not have", is_structural=True
        )
    comparisons = [
        _compare_content(name, golden.contents[name], executed.contents[name], text_normalizer)
        for name in golden.contents
    ]
    return max(comparisons, key=lambda comparison: comparison.match, default=OutputComparison())


def _describe_kind(kind: str) -> str:
    return {"stdout": "standard output", "stderr": "standard error"}.get(kind, kind.replace("_", " "))


def _compare_content(mime: str, golden: Any, executed: Any, text_normalizer: Normalizer) -> OutputComparison:
    try:
        if golden == executed:
            return OutputComparison()
        match = _choose_comparer(mime, text_normalizer.exact)(golden, executed, text_normalizer)
    except RecursionError:
        return OutputComparison(Match.DIFFERENT, f"{mime} is nested too deeply to compare")
    reason = "" if match < Match.WHITESPACE_ONLY else f"{mime} differs{_describe_size_change(mime, golden, executed)}"
    return OutputComparison(match, reason)


Comparer = Callable[[Any, Any, Normalizer], Match]


def _choose_comparer(mime: str, exact: bool) -> Comparer:
    if mime == WIDGET and not exact:
        return _match_always
    if mime in ("image/png", "image/jpeg", "image/gif", "application/pdf"):
        return _compare_images
    if mime in ("text/html", "image/svg+xml"):
        return _compare_texts if exact else _compare_markup
    return _compare_json if mime == "application/json" or mime.endswith("+json") else _compare_texts


def _match_always(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    return Match.SAME


def _compare_texts(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    if isinstance(golden, Mapping) or isinstance(executed, Mapping):
        return _compare_json(golden, executed, text_normalizer)
    return text_normalizer.compare_texts(join_text(golden), join_text(executed))


def _compare_images(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    golden_bytes, executed_bytes = _decode(golden), _decode(executed)
    if golden_bytes == executed_bytes:
        return Match.SAME
    golden_pixels = None if text_normalizer.exact else read_visible_content(golden_bytes)
    return (
        Match.SAME
        if golden_pixels is not None and golden_pixels == read_visible_content(executed_bytes)
        else Match.DIFFERENT
    )


def _decode(content: Any) -> bytes:
    try:
        return base64.b64decode(join_text(content))
    except (binascii.Error, ValueError):
        return join_text(content).encode()


def _describe_size_change(mime: str, golden: Any, executed: Any) -> str:
    if mime != "image/png":
        return ""
    golden_size, executed_size = read_size(_decode(golden)), read_size(_decode(executed))
    return (
        f" ({executed_size[0]}x{executed_size[1]}, was {golden_size[0]}x{golden_size[1]})"
        if golden_size != executed_size
        else " in its pixels"
    )


def _compare_json(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    return compare_values(_parse_json(golden), _parse_json(executed), text_normalizer)


def _parse_json(content: Any) -> Any:
    if isinstance(content, str) or (isinstance(content, list) and all(isinstance(item, str) for item in content)):
        try:
            return json.loads(join_text(content))
        except (ValueError, RecursionError):
            return join_text(content)
    return content


def compare_values(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    """Compare plain data: numbers within the tolerance, strings normalized, everything else by structure."""
    if isinstance(golden, bool) or isinstance(executed, bool) or golden is None or executed is None:
        return Match.SAME if golden is executed else Match.DIFFERENT
    if isinstance(golden, int | float) and isinstance(executed, int | float):
        return text_normalizer.compare_numbers(golden, executed)
    if isinstance(golden, str) and isinstance(executed, str):
        return text_normalizer.compare_texts(golden, executed)
    if isinstance(golden, Mapping) and isinstance(executed, Mapping):
        names = {*golden, *executed} - (set() if text_normalizer.exact else _IGNORED_JSON_KEYS)
        if any(name not in golden or name not in executed for name in names):
            return Match.DIFFERENT
        return max(
            (compare_values(golden[name], executed[name], text_normalizer) for name in names), default=Match.SAME
        )
    if isinstance(golden, list) and isinstance(executed, list) and len(golden) == len(executed):
        return max(
            (
                compare_values(golden_item, executed_item, text_normalizer)
                for golden_item, executed_item in zip(golden, executed)
            ),
            default=Match.SAME,
        )
    return Match.DIFFERENT


class _VisibleTextParser(HTMLParser):
    """Collects tags and texts of markup; styles, scripts and ids are not visible and are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.visible_parts: list[str] = []
        self._hidden_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden_depth += tag in ("style", "script")
        self.visible_parts.append(f"<{tag}>")
        self.visible_parts += [
            value or "" for name, value in attrs if name in ("d", "src", "points", "colspan", "rowspan")
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "script") and self._hidden_depth:
            self._hidden_depth -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden_depth and data.strip():
            self.visible_parts.append(data)


def _compare_markup(golden: Any, executed: Any, text_normalizer: Normalizer) -> Match:
    if max(len(join_text(golden)), len(join_text(executed))) > MAX_MARKUP_CHARACTERS:
        return _compare_texts(golden, executed, text_normalizer)
    worst_match = Match.SAME
    for golden_part, executed_part in zip_longest(
        _extract_visible_parts(join_text(golden)), _extract_visible_parts(join_text(executed))
    ):
        if golden_part is None or executed_part is None:
            return Match.DIFFERENT
        worst_match = max(worst_match, text_normalizer.compare_texts(golden_part, executed_part))
    return worst_match


def _extract_visible_parts(markup: str) -> list[str]:
    parser = _VisibleTextParser()
    parser.feed(_RANDOM_IDS_PATTERN.sub("", markup))
    parser.close()
    return parser.visible_parts
