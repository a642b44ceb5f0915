"""Limits the size of cell outputs.

In: outputs as they arrive. Out: the same outputs up to a limit in bytes, then one note. Never: keeps output beyond the
limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

TRUNCATION_NOTE: Final = "... (truncated: the limit is {cell} bytes of output per cell and {total} per notebook)\n"


class OutputLimiter:
    """Counts the bytes that cells may still output. A stream is one output as long as nothing comes between."""

    def __init__(self, cell_limit: int, total_limit: int) -> None:
        self._cell_limit, self._total_limit = cell_limit, total_limit
        self._used_bytes: dict[int, int] = {}
        self._truncated_cells: set[int] = set()

    def limit_output(self, index: int, output: Mapping[str, Any]) -> dict[str, Any] | None:
        """The part of the output to keep; None if the limit was already reached."""
        bytes_left = self._get_bytes_left(index)
        size = count_bytes(output)
        if size <= bytes_left:
            self._used_bytes[index] = self._used_bytes.get(index, 0) + size
            return dict(output)
        if index in self._truncated_cells:
            return None
        self._truncated_cells.add(index)
        note = TRUNCATION_NOTE.format(cell=self._cell_limit, total=self._total_limit)
        stream_bytes = str(output["text"]).encode(errors="replace") if output.get("output_type") == "stream" else b""
        text = stream_bytes[: max(bytes_left, 0)].decode(errors="ignore")
        self._used_bytes[index] = self._used_bytes.get(index, 0) + len(stream_bytes[: max(bytes_left, 0)])
        text = f"{text}\n{note}" if text else note
        return {"output_type": "stream", "name": str(output.get("name") or "stdout"), "text": text}

    def fits(self, index: int, output: Mapping[str, Any]) -> bool:
        """True if the output fits in place of an earlier one."""
        return count_bytes(output) <= self._get_bytes_left(index)

    def reset_cell(self, index: int) -> None:
        self._used_bytes.pop(index, None)
        self._truncated_cells.discard(index)

    def _get_bytes_left(self, index: int) -> int:
        return min(
            self._cell_limit - self._used_bytes.get(index, 0), self._total_limit - sum(self._used_bytes.values())
        )


def count_bytes(output: Mapping[str, Any]) -> int:
    if output.get("output_type") == "stream":
        return len(str(output.get("text") or "").encode(errors="replace"))
    content = {name: output.get(name) for name in ("data", "ename", "evalue", "traceback") if name in output}
    return len(json.dumps(content, default=str))


def append_to_stream(outputs: list[Any], output: dict[str, Any]) -> bool:
    """Append stream text to the last output if that is the same stream; returns True if it was."""
    last = outputs[-1] if outputs else {}
    is_same = output.get("output_type") == "stream" == last.get("output_type") and output["name"] == last.get("name")
    if is_same:
        last["text"] += output["text"]
    return is_same


def render_outputs(outputs: Sequence[Mapping[str, Any]]) -> str:
    """Outputs as plain text for people; images and HTML are named, not shown."""
    texts: list[str] = []
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream":
            texts.append(_join_lines(output.get("text")))
        elif kind == "error":
            texts.append(f"{output.get('ename')}: {output.get('evalue')}\n")
        else:
            data = output.get("data") or {}
            plain = _join_lines(data.get("text/plain"))
            texts.append(f"{plain or '[' + ', '.join(sorted(data)) + ']'}\n")
    return "".join(texts)


def _join_lines(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text or "")
