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

from argosy.features.notebooks.runner.cells import text_of
from argosy.features.notebooks.runner.normalization import Match, Normalizer
from argosy.features.notebooks.runner.pictures import shown_by, size_of

Output = Mapping[str, Any]

WIDGET: Final = "application/vnd.jupyter.widget-view+json"  # the id of a widget in one run
_RANDOM_IDS: Final = re.compile(
    r"""\b(?:id|for|href|clip-path|aria-labelledby|xlink:href)\s{0,9}=\s{0,9}(?:"[^"]{0,500}"|'[^']{0,500}')"""
    r"""|url\(#[^)]{0,200}\)|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|<dc:date>[^<]*</dc:date>""",
)
MOST_MARKUP: Final = 200_000  # characters; longer markup is compared as text, because parsing it takes too long
_UNTOLD: Final = frozenset({"uid", "uuid", "model_id", "display_id", "element_id"})  # JSON keys that are not compared


@dataclass(frozen=True)
class Shown:
    """One comparable output of a cell: a whole stream, a MIME bundle, or an error."""

    kind: str  # stdout, stderr, execute_result, display_data, error
    parts: Mapping[str, Any] = field(default_factory=dict)
    count: int | None = None

    def text(self) -> str:
        """The output as text for people."""
        for name in ("text", "text/plain", "text/markdown", "text/latex", "text/html"):
            if name in self.parts:
                return text_of(self.parts[name])
        return "\n".join(f"<{name}>" for name in self.parts)


@dataclass(frozen=True)
class Outcome:
    match: Match = Match.SAME
    why: str = ""
    is_structure: bool = False


def shown(outputs: Sequence[Output], ignored: Sequence[str] = ()) -> list[Shown]:
    """Outputs to compare: streams as a whole, because chunk boundaries are random, then the others in order."""
    streams: dict[str, list[str]] = {}
    others: list[Shown] = []
    for output in outputs:
        kind = str(output.get("output_type") or "")
        if kind == "stream":
            streams.setdefault(str(output.get("name") or "stdout"), []).append(text_of(output.get("text")))
        elif kind == "error":
            others.append(Shown("error", {"ename": output.get("ename"), "text": text_of(output.get("evalue"))}))
        elif isinstance(data := output.get("data"), Mapping):
            others.append(Shown(kind, _kept(data, ignored), output.get("execution_count")))
    whole = [Shown(name, {"text": "".join(pieces)}) for name, pieces in sorted(streams.items(), reverse=True)]
    return [each for each in [*whole, *others] if not _is_ignored(each, ignored)]


def _kept(data: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    return {mime: content for mime, content in data.items() if not any(fnmatchcase(mime, each) for each in ignored)}


def _is_ignored(each: Shown, ignored: Sequence[str]) -> bool:
    kinds = (each.kind, "stream") if each.kind in ("stdout", "stderr") else (each.kind,)
    return not each.parts or (each.kind in ("stdout", "stderr") and not each.text()) or bool(set(kinds) & set(ignored))


def compare_shown(golden: Shown, found: Shown, how: Normalizer, *, with_counts: bool) -> Outcome:
    if golden.kind != found.kind:
        return Outcome(Match.OTHER, f"is {_named(found.kind)}, was {_named(golden.kind)}", is_structure=True)
    if golden.kind == "error" and golden.parts["ename"] != found.parts["ename"]:
        return Outcome(Match.OTHER, f"raises {found.parts['ename']}, raised {golden.parts['ename']}")
    if with_counts and golden.count != found.count:
        return Outcome(Match.OTHER, f"execution count is {found.count}, was {golden.count}")
    if gone := sorted(golden.parts.keys() - found.parts.keys()):
        return Outcome(Match.OTHER, f"has no {', '.join(gone)} any longer", is_structure=True)
    if new := sorted(found.parts.keys() - golden.parts.keys()):
        return Outcome(Match.OTHER, f"has {', '.join(new)}, which the golden output does not have", is_structure=True)
    outcomes = [_compare_part(name, golden.parts[name], found.parts[name], how) for name in golden.parts]
    return max(outcomes, key=lambda each: each.match, default=Outcome())


def _named(kind: str) -> str:
    return {"stdout": "standard output", "stderr": "standard error"}.get(kind, kind.replace("_", " "))


def _compare_part(mime: str, golden: Any, found: Any, how: Normalizer) -> Outcome:
    try:
        if golden == found:
            return Outcome()
        match = _comparer(mime, how.exact)(golden, found, how)
    except RecursionError:
        return Outcome(Match.OTHER, f"{mime} is nested too deeply to compare")
    why = "" if match < Match.SPACED else f"{mime} differs{_sizes(mime, golden, found)}"
    return Outcome(match, why)


Comparer = Callable[[Any, Any, Normalizer], Match]


def _comparer(mime: str, exact: bool) -> Comparer:
    if mime == WIDGET and not exact:
        return _always
    if mime in ("image/png", "image/jpeg", "image/gif", "application/pdf"):
        return _pictures
    if mime in ("text/html", "image/svg+xml"):
        return _texts if exact else _markup
    return _json if mime == "application/json" or mime.endswith("+json") else _texts


def _always(golden: Any, found: Any, how: Normalizer) -> Match:
    return Match.SAME


def _texts(golden: Any, found: Any, how: Normalizer) -> Match:
    if isinstance(golden, Mapping) or isinstance(found, Mapping):
        return _json(golden, found, how)
    return how.texts(text_of(golden), text_of(found))


def _pictures(golden: Any, found: Any, how: Normalizer) -> Match:
    one, other = _bytes(golden), _bytes(found)
    if one == other:
        return Match.SAME
    seen = None if how.exact else shown_by(one)
    return Match.SAME if seen is not None and seen == shown_by(other) else Match.OTHER


def _bytes(content: Any) -> bytes:
    try:
        return base64.b64decode(text_of(content))
    except (binascii.Error, ValueError):
        return text_of(content).encode()


def _sizes(mime: str, golden: Any, found: Any) -> str:
    if mime != "image/png":
        return ""
    one, other = size_of(_bytes(golden)), size_of(_bytes(found))
    return f" ({other[0]}x{other[1]}, was {one[0]}x{one[1]})" if one != other else " in its pixels"


def _json(golden: Any, found: Any, how: Normalizer) -> Match:
    return compare_values(_parsed(golden), _parsed(found), how)


def _parsed(content: Any) -> Any:
    if isinstance(content, str) or (isinstance(content, list) and all(isinstance(each, str) for each in content)):
        try:
            return json.loads(text_of(content))
        except (ValueError, RecursionError):
            return text_of(content)
    return content


def compare_values(golden: Any, found: Any, how: Normalizer) -> Match:
    """Compare plain data: numbers within the tolerance, strings normalized, everything else by structure."""
    if isinstance(golden, bool) or isinstance(found, bool) or golden is None or found is None:
        return Match.SAME if golden is found else Match.OTHER
    if isinstance(golden, int | float) and isinstance(found, int | float):
        return how.numbers(golden, found)
    if isinstance(golden, str) and isinstance(found, str):
        return how.texts(golden, found)
    if isinstance(golden, Mapping) and isinstance(found, Mapping):
        names = {*golden, *found} - (set() if how.exact else _UNTOLD)
        if any(name not in golden or name not in found for name in names):
            return Match.OTHER
        return max((compare_values(golden[name], found[name], how) for name in names), default=Match.SAME)
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        return max((compare_values(one, other, how) for one, other in zip(golden, found)), default=Match.SAME)
    return Match.OTHER


class _Visible(HTMLParser):
    """Collects tags and texts of markup; styles, scripts and ids are not visible and are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script")
        self.seen.append(f"<{tag}>")
        self.seen += [value or "" for name, value in attrs if name in ("d", "src", "points", "colspan", "rowspan")]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "script") and self._hidden:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.seen.append(data)


def _markup(golden: Any, found: Any, how: Normalizer) -> Match:
    if max(len(text_of(golden)), len(text_of(found))) > MOST_MARKUP:
        return _texts(golden, found, how)
    worst = Match.SAME
    for one, other in zip_longest(_visible(text_of(golden)), _visible(text_of(found))):
        if one is None or other is None:
            return Match.OTHER
        worst = max(worst, how.texts(one, other))
    return worst


def _visible(markup: str) -> list[str]:
    reader = _Visible()
    reader.feed(_RANDOM_IDS.sub("", markup))
    reader.close()
    return reader.seen
