"""Limits the size of cell outputs.

In: outputs as they arrive. Out: the same outputs up to a limit in bytes, then one note. Never: keeps output beyond the
limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

CUT: Final = "... (truncated: the limit is {cell} bytes of output per cell and {total} per notebook)\n"


class Allowance:
    """Counts the bytes that cells may still output. A stream is one output as long as nothing comes between."""

    def __init__(self, cell: int, total: int) -> None:
        self._cell, self._total = cell, total
        self._spent: dict[int, int] = {}
        self._is_cut: set[int] = set()

    def take(self, index: int, output: Mapping[str, Any]) -> dict[str, Any] | None:
        """The part of the output to keep; None if the limit was already reached."""
        room = self._room(index)
        size = weight(output)
        if size <= room:
            self._spent[index] = self._spent.get(index, 0) + size
            return dict(output)
        if index in self._is_cut:
            return None
        self._is_cut.add(index)
        note = CUT.format(cell=self._cell, total=self._total)
        begins = str(output["text"]).encode(errors="replace") if output.get("output_type") == "stream" else b""
        text = begins[: max(room, 0)].decode(errors="ignore")
        self._spent[index] = self._spent.get(index, 0) + len(begins[: max(room, 0)])
        text = f"{text}\n{note}" if text else note
        return {"output_type": "stream", "name": str(output.get("name") or "stdout"), "text": text}

    def fits(self, index: int, output: Mapping[str, Any]) -> bool:
        """True if the output fits in place of an earlier one."""
        return weight(output) <= self._room(index)

    def cleared(self, index: int) -> None:
        self._spent.pop(index, None)
        self._is_cut.discard(index)

    def _room(self, index: int) -> int:
        return min(self._cell - self._spent.get(index, 0), self._total - sum(self._spent.values()))


def weight(output: Mapping[str, Any]) -> int:
    if output.get("output_type") == "stream":
        return len(str(output.get("text") or "").encode(errors="replace"))
    shown = {name: output.get(name) for name in ("data", "ename", "evalue", "traceback") if name in output}
    return len(json.dumps(shown, default=str))


def merge(outputs: list[Any], output: dict[str, Any]) -> bool:
    """Append stream text to the last output if that is the same stream; returns True if it was."""
    last = outputs[-1] if outputs else {}
    is_same = output.get("output_type") == "stream" == last.get("output_type") and output["name"] == last.get("name")
    if is_same:
        last["text"] += output["text"]
    return is_same


def text_of(outputs: Sequence[Mapping[str, Any]]) -> str:
    """Outputs as plain text for people; images and HTML are named, not shown."""
    found: list[str] = []
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream":
            found.append(_joined(output.get("text")))
        elif kind == "error":
            found.append(f"{output.get('ename')}: {output.get('evalue')}\n")
        else:
            data = output.get("data") or {}
            plain = _joined(data.get("text/plain"))
            found.append(f"{plain or '[' + ', '.join(sorted(data)) + ']'}\n")
    return "".join(found)


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text or "")
