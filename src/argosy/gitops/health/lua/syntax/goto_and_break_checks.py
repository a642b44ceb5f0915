"""Checks that every `goto` has a visible label and every `break` a loop.

In: blocks, locals, labels and jumps, in source order. Out: nothing, or LuaSyntaxError. Never: evaluates values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy.gitops.health.lua.syntax.lexer import LuaSyntaxError


@dataclass(slots=True)
class _PendingJump:
    line: int
    locals_seen: int  # number of locals of its block declared before it


@dataclass(slots=True)
class _OpenBlock:
    is_function: bool
    is_loop: bool
    locals: list[str] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    pending_jumps: dict[str, list[_PendingJump]] = field(default_factory=dict)  # by label


class JumpChecker:
    def __init__(self) -> None:
        self._blocks: list[_OpenBlock] = []

    def enter_block(self, *, is_function: bool, is_loop: bool) -> None:
        self._blocks.append(_OpenBlock(is_function, is_loop))

    def declare_local(self, name: str) -> None:
        self._blocks[-1].locals.append(name)

    def check_break(self, line: int) -> None:
        for block in reversed(self._blocks):
            if block.is_loop:
                return
            if block.is_function:
                break
        raise LuaSyntaxError(line, "no loop to break")

    def add_goto(self, label: str, line: int) -> None:
        for block in reversed(self._blocks):
            if label in block.labels:
                return  # backward jump: the label is visible
            if block.is_function:
                break
        block = self._blocks[-1]
        block.pending_jumps.setdefault(label, []).append(_PendingJump(line, len(block.locals)))

    def add_label(self, label: str, line: int, *, is_last: bool) -> None:
        for block in reversed(self._blocks):
            if label in block.labels:
                raise LuaSyntaxError(line, f"duplicate label '{label}'")
            if block.is_function:
                break
        block = self._blocks[-1]
        block.labels.add(label)
        for jump in block.pending_jumps.pop(label, ()):
            if jump.locals_seen < len(block.locals) and not is_last:
                name = block.locals[jump.locals_seen]
                raise LuaSyntaxError(jump.line, f"<goto {label}> jumps into the scope of local '{name}'")

    def leave_block(self) -> None:
        block = self._blocks.pop()
        for label, jumps in block.pending_jumps.items():
            if block.is_function:
                raise LuaSyntaxError(jumps[0].line, f"undefined label '{label}'")
            outer = self._blocks[-1]
            outer_jumps = outer.pending_jumps.setdefault(label, [])
            outer_jumps.extend(_PendingJump(jump.line, len(outer.locals)) for jump in jumps)
