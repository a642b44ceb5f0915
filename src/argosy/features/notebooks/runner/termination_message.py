"""Packs results into the termination message of a container.

In: results. Out: a short text, and results again, with fewer details if they do not fit. Never: drops the status or the
error of a run; decompresses more than results can need.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST: Final = 4096  # k8s: bytes of a termination message
PACKED: Final = "z:"
_MOST_UNPACKED: Final = 4 << 20
_LONG, _SHORT = 400, 120  # characters of a truncated text
_FEW: Final = 5


def pack(results: Mapping[str, Any], most: int = MOST) -> str:
    for each in _smaller(dict(results)):
        plain = json.dumps(each, separators=(",", ":"))
        if len(plain) <= most:
            return plain
        packed = PACKED + base64.b85encode(zlib.compress(plain.encode(), 9)).decode()
        if len(packed) <= most:
            return packed
    return json.dumps({"status": "failed", "error": "the results do not fit into the termination message", "cut": True})


def unpack(text: str) -> dict[str, Any] | None:
    """Parse a termination message; None if it holds no results."""
    try:
        if text.startswith(PACKED):
            opened = zlib.decompressobj()
            text = opened.decompress(base64.b85decode(text.removeprefix(PACKED)), _MOST_UNPACKED).decode()
        found = json.loads(text)
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        return None
    is_ours = isinstance(found, dict) and found.get("status") in ("succeeded", "failed")
    return found if is_ours else None


def _smaller(results: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results complete, then with less and less detail; details that are available elsewhere go first."""
    yield results
    results = {**results, "cut": True}
    cells = [dict(cell) for cell in results.get("cells") or ()]
    findings = [{**each, "codeExample": ""} for each in results.get("findings") or ()]
    for most in (_LONG, _SHORT):
        cells = [{name: _cut(value, most) for name, value in cell.items()} for cell in cells]
        yield {**results, "cells": cells, "findings": findings}
    compared = results.get("comparison")
    if compared:
        results["comparison"] = {**compared, "diffs": [_all_cut(each) for each in compared.get("diffs") or ()][:_FEW]}
    findings = [_all_cut(each) for each in findings][:_FEW]
    kept = ("cell_index", "cell_type", "status", "seconds", "error")
    cells = [{name: cell[name] for name in kept if cell.get(name) not in (None, "")} for cell in cells]
    yield {**results, "cells": cells, "findings": findings}
    failed = [cell for cell in cells if cell.get("status") == "failed"]
    results["error"] = _cut(results.get("error"), _LONG)
    yield {**results, "cells": failed[:_FEW], "findings": findings}
    names = ("status", "error", "error_category", "exit_code", "execution_duration_seconds", "statistics", "cut")
    yield {name: results[name] for name in names if name in results}


def _all_cut(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cut(value, _SHORT) for name, value in entry.items()}


def _cut(value: Any, most: int) -> Any:
    return value[:most] if isinstance(value, str) else value
