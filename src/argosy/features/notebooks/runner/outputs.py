"""Outputs that stay small, whatever a cell prints.

In: outputs as they come. Out: the same until a limit of bytes, then one sentence. Never: keeps what is cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

CUT: Final = "... (cut: a cell may give {cell} bytes of output, a notebook {total})\n"


class Allowance:
    """What cells may still give. Streams are one output each as long as nothing comes between."""

    def __init__(self, cell: int, total: int) -> None:
        self._cell, self._total = cell, total
        self._spent: dict[int, int] = {}
        self._is_cut: set[int] = set()

    def take(self, index: int, output: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is to be kept of it, if anything."""
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
        """Whether it may take the place of an earlier one."""
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
    """Add a stream's text to the last output if that is the same stream's; whether it was."""
    last = outputs[-1] if outputs else {}
    is_same = output.get("output_type") == "stream" == last.get("output_type") and output["name"] == last.get("name")
    if is_same:
        last["text"] += output["text"]
    return is_same


def text_of(outputs: Sequence[Mapping[str, Any]]) -> str:
    """What a person would read, as plain text: pictures and pages are named, not shown."""
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
