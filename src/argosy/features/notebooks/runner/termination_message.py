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

MAX_MESSAGE_BYTES: Final = 4096  # k8s: bytes of a termination message
COMPRESSED_PREFIX: Final = "z:"
_MAX_UNPACKED_BYTES: Final = 4 << 20
_LONG_TEXT_CHARACTERS, _SHORT_TEXT_CHARACTERS = 400, 120  # characters of a truncated text
_MAX_ENTRIES: Final = 5


def pack_results(results: Mapping[str, Any], max_bytes: int = MAX_MESSAGE_BYTES) -> str:
    for candidate in _iterate_smaller_results(dict(results)):
        text = json.dumps(candidate, separators=(",", ":"))
        if len(text) <= max_bytes:
            return text
        packed = COMPRESSED_PREFIX + base64.b85encode(zlib.compress(text.encode(), 9)).decode()
        if len(packed) <= max_bytes:
            return packed
    return json.dumps({"status": "failed", "error": "the results do not fit into the termination message", "cut": True})


def unpack_results(text: str) -> dict[str, Any] | None:
    """Parse a termination message; None if it holds no results."""
    try:
        if text.startswith(COMPRESSED_PREFIX):
            decompressor = zlib.decompressobj()
            text = decompressor.decompress(
                base64.b85decode(text.removeprefix(COMPRESSED_PREFIX)), _MAX_UNPACKED_BYTES
            ).decode()
        results = json.loads(text)
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        return None
    is_result = isinstance(results, dict) and results.get("status") in ("succeeded", "failed")
    return results if is_result else None


def _iterate_smaller_results(results: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results complete, then with less and less detail; details that are available elsewhere go first."""
    yield results
    results = {**results, "cut": True}
    cells = [dict(cell) for cell in results.get("cells") or ()]
    findings = [{**entry, "codeExample": ""} for entry in results.get("findings") or ()]
    for max_characters in (_LONG_TEXT_CHARACTERS, _SHORT_TEXT_CHARACTERS):
        cells = [{name: _truncate(value, max_characters) for name, value in cell.items()} for cell in cells]
        yield {**results, "cells": cells, "findings": findings}
    comparison = results.get("comparison")
    if comparison:
        results["comparison"] = {
            **comparison,
            "diffs": [_truncate_values(entry) for entry in comparison.get("diffs") or ()][:_MAX_ENTRIES],
        }
    findings = [_truncate_values(entry) for entry in findings][:_MAX_ENTRIES]
    kept_fields = ("cell_index", "cell_type", "status", "seconds", "error")
    cells = [{name: cell[name] for name in kept_fields if cell.get(name) not in (None, "")} for cell in cells]
    yield {**results, "cells": cells, "findings": findings}
    failed = [cell for cell in cells if cell.get("status") == "failed"]
    results["error"] = _truncate(results.get("error"), _LONG_TEXT_CHARACTERS)
    yield {**results, "cells": failed[:_MAX_ENTRIES], "findings": findings}
    names = ("status", "error", "error_category", "exit_code", "execution_duration_seconds", "statistics", "cut")
    yield {name: results[name] for name in names if name in results}


def _truncate_values(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _truncate(value, _SHORT_TEXT_CHARACTERS) for name, value in entry.items()}


def _truncate(value: Any, max_characters: int) -> Any:
    return value[:max_characters] if isinstance(value, str) else value
