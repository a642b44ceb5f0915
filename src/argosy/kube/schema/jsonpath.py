"""Compiles the JSONPaths of printer columns, scale subresources and selectable fields.

In: a path such as `.status.conditions[?(@.type=="Ready")].status`, with or without braces. Out: a JSONPath that finds
values. Never: raises because of data; only an invalid path is an error (UserError).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from argosy.errors import UserError
from argosy.kube.objects.text_cache import remembered

Step = Callable[[Iterable[Any]], list[Any]]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NAME = re.compile(r"(?:[^.\[\]{}()\"'\\\s]|\\.)+")
_OPERATOR = re.compile("==|!=|<=|>=|<|>")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SLICE = re.compile(r"(-?\d+)?(?::(-?\d+)?)?(?::(-?\d+)?)?")
_LONGEST = 4096


class JSONPath:
    """A compiled path. `field_names` is set if the path only consists of field names."""

    __slots__ = ("_steps", "names", "text")

    def __init__(self, text: str, steps: tuple[Step, ...], names: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self.names = names

    def find(self, value: Any) -> list[Any]:
        if self.names is not None:
            for name in self.names:
                if not isinstance(value, dict) or name not in value:
                    return []
                value = value[name]
            return [value]
        found: list[Any] = [value]
        for step in self._steps:
            found = step(found)
            if not found:
                break
        return found

    def first(self, value: Any) -> Any:
        found = self.find(value)
        return found[0] if found else None


@remembered(1024)
def compiled(text: str) -> JSONPath:
    """Compile a path; raise UserError if it is invalid."""
    if len(text) > _LONGEST:
        raise UserError(f"the path is longer than {_LONGEST} characters", where="jsonPath")
    try:
        return _Reader(text).path()
    except RecursionError:
        raise UserError("the path nests filters too deeply", where="jsonPath") from None


def _child(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _everything(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value[key] for key in sorted(value))
        elif isinstance(value, list):
            found.extend(value)
    return found


def _descendants(values: Iterable[Any]) -> list[Any]:
    """Return the values and all their descendants, parents first."""
    found: list[Any] = []
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        found.append(value)
        waiting.extend(reversed(_everything([value])))
    return found


def _part(wanted: slice) -> Step:
    return lambda values: [item for value in values if isinstance(value, list) for item in value[wanted]]


def _item(index: int) -> Step:
    def step(values: Iterable[Any]) -> list[Any]:
        return [value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)]

    return step


def _union(steps: list[Step]) -> Step:
    return lambda values: [found for value in values for step in steps for found in step([value])]


def _filter(holds: Callable[[Any], bool]) -> Step:
    return lambda values: [item for item in _everything(values) if holds(item)]


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    if isinstance(left, str):
        return isinstance(right, str)
    return isinstance(left, int | float) and isinstance(right, int | float)


class _Reader:
    def __init__(self, text: str) -> None:
        inner = text.strip()
        if inner.startswith("{") and inner.endswith("}"):
            inner = inner[1:-1].strip()
        self.text = text
        self.inner = inner
        self.position = 0

    def path(self) -> JSONPath:
        steps: list[Step] = []
        names: list[str] | None = []
        if self.inner.startswith(("$", "@")):
            self.position = 1
        while self.position < len(self.inner):
            step, name = self.step()
            if step is not None:
                steps.append(step)
                names = [*names, name] if names is not None and name is not None else None
        return JSONPath(self.text, tuple(steps), tuple(names) if names is not None else None)

    def step(self) -> tuple[Step | None, str | None]:
        rest = self.inner[self.position :]
        if rest.startswith(".."):
            self.position += 1
            if self.inner[self.position : self.position + 2] == ".[":
                self.position += 1
            return _descendants, None
        if rest.startswith("["):
            return self.brackets()
        if rest.startswith("."):
            self.position += 1
            if rest == "." or rest.startswith(".["):
                return None, None
        return self.named()

    def named(self) -> tuple[Step, str | None]:
        if self.inner[self.position : self.position + 1] == "*":
            self.position += 1
            return _everything, None
        match = _NAME.match(self.inner, self.position)
        if match is None:
            raise self.wrong(f"unexpected {self.inner[self.position :]!r}")
        self.position = match.end()
        name = re.sub(r"\\(.)", r"\1", match.group())
        return _child(name), name

    def brackets(self) -> tuple[Step, str | None]:
        inside = self.inside_brackets()
        if inside.startswith("?(") and inside.endswith(")"):
            return _filter(self.condition(inside[2:-1])), None
        if inside == "*":
            return _everything, None
        if len(parts := self.union_parts(inside)) > 1:
            return _union([self.subscript(part.strip())[0] for part in parts]), None
        return self.subscript(inside)

    def union_parts(self, inside: str) -> list[str]:
        return re.findall(r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"])+", inside)

    def inside_brackets(self) -> str:
        """Return the text up to the matching bracket; quoted brackets do not count."""
        depth, quote, start = 0, "", self.position + 1
        for index in range(self.position, len(self.inner)):
            character = self.inner[index]
            if quote:
                if character == quote and self.inner[index - 1] != "\\":
                    quote = ""
            elif character in "'\"":
                quote = character
            elif character in "[]":
                depth += 1 if character == "[" else -1
                if not depth:
                    self.position = index + 1
                    return self.inner[start:index].strip()
        raise self.wrong("unterminated array")

    def subscript(self, inside: str) -> tuple[Step, str | None]:
        if len(inside) >= 2 and inside[0] in "'\"" and inside[-1] == inside[0]:
            name = re.sub(r"\\(.)", r"\1", inside[1:-1])
            return _child(name), name
        match = _SLICE.fullmatch(inside)
        if match is None or not inside:
            raise self.wrong(f"invalid array index {inside}")
        if ":" not in inside:
            return _item(int(inside)), None
        first, last, stride = (int(text) if text else None for text in match.groups())
        if stride is not None and stride <= 0:
            raise self.wrong("step must be > 0")
        return _part(slice(first, last, stride)), None

    def condition(self, text: str) -> Callable[[Any], bool]:
        match = _OPERATOR.search(text)
        left = (text[: match.start()] if match else text).strip()
        if not left.startswith("@"):
            raise self.wrong(f"invalid filter {text}")
        path = compiled(left)
        if match is None:
            return lambda item: bool(path.find(item))
        compare, wanted = _COMPARE[match.group()], self.literal(text[match.end() :].strip())

        def holds(item: Any) -> bool:
            found = path.find(item)
            return bool(found) and _comparable(found[0], wanted) and compare(found[0], wanted)

        return holds

    def literal(self, text: str) -> Any:
        if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
            return text[1:-1]
        if text in ("true", "false"):
            return text == "true"
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        raise self.wrong(f"invalid literal {text}")

    def wrong(self, what: str) -> UserError:
        return UserError(f'{what} in path {self.text}; examples: .spec.name, .items[?(@.type=="x")].value')
