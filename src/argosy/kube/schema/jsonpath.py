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
from argosy.kube.objects.short_text_result_cache import cache_short_texts

JsonPathStep = Callable[[Iterable[Any]], list[Any]]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
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
_MAX_PATH_CHARACTERS = 4096


class JSONPath:
    """A compiled path. `field_names` is set if the path only consists of field names."""

    __slots__ = ("_steps", "field_names", "text")

    def __init__(self, text: str, steps: tuple[JsonPathStep, ...], names: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self.field_names = names

    def find_all(self, value: Any) -> list[Any]:
        if self.field_names is not None:
            for name in self.field_names:
                if not isinstance(value, dict) or name not in value:
                    return []
                value = value[name]
            return [value]
        values: list[Any] = [value]
        for step in self._steps:
            values = step(values)
            if not values:
                break
        return values

    def find_first(self, value: Any) -> Any:
        values = self.find_all(value)
        return values[0] if values else None


@cache_short_texts(1024)
def compile_path(text: str) -> JSONPath:
    """Compile a path; raise UserError if it is invalid."""
    if len(text) > _MAX_PATH_CHARACTERS:
        raise UserError(f"the path is longer than {_MAX_PATH_CHARACTERS} characters", where="jsonPath")
    try:
        return _PathParser(text).parse_path()
    except RecursionError:
        raise UserError("the path nests filters too deeply", where="jsonPath") from None


def _child_step(name: str) -> JsonPathStep:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _list_children(values: Iterable[Any]) -> list[Any]:
    children: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            children.extend(value[key] for key in sorted(value))
        elif isinstance(value, list):
            children.extend(value)
    return children


def _list_descendants(values: Iterable[Any]) -> list[Any]:
    """Return the values and all their descendants, parents first."""
    descendants: list[Any] = []
    pending = list(values)[::-1]
    while pending:
        value = pending.pop()
        descendants.append(value)
        pending.extend(reversed(_list_children([value])))
    return descendants


def _slice_step(selection: slice) -> JsonPathStep:
    return lambda values: [item for value in values if isinstance(value, list) for item in value[selection]]


def _index_step(index: int) -> JsonPathStep:
    def step(values: Iterable[Any]) -> list[Any]:
        return [value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)]

    return step


def _union_step(steps: list[JsonPathStep]) -> JsonPathStep:
    return lambda values: [result for value in values for step in steps for result in step([value])]


def _filter_step(matches: Callable[[Any], bool]) -> JsonPathStep:
    return lambda values: [item for item in _list_children(values) if matches(item)]


def _are_comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    if isinstance(left, str):
        return isinstance(right, str)
    return isinstance(left, int | float) and isinstance(right, int | float)


class _PathParser:
    def __init__(self, text: str) -> None:
        path_text = text.strip()
        if path_text.startswith("{") and path_text.endswith("}"):
            path_text = path_text[1:-1].strip()
        self.text = text
        self.path_text = path_text
        self.position = 0

    def parse_path(self) -> JSONPath:
        steps: list[JsonPathStep] = []
        names: list[str] | None = []
        if self.path_text.startswith(("$", "@")):
            self.position = 1
        while self.position < len(self.path_text):
            step, name = self.parse_step()
            if step is not None:
                steps.append(step)
                names = [*names, name] if names is not None and name is not None else None
        return JSONPath(self.text, tuple(steps), tuple(names) if names is not None else None)

    def parse_step(self) -> tuple[JsonPathStep | None, str | None]:
        remaining = self.path_text[self.position :]
        if remaining.startswith(".."):
            self.position += 1
            if self.path_text[self.position : self.position + 2] == ".[":
                self.position += 1
            return _list_descendants, None
        if remaining.startswith("["):
            return self.parse_brackets()
        if remaining.startswith("."):
            self.position += 1
            if remaining == "." or remaining.startswith(".["):
                return None, None
        return self.parse_name()

    def parse_name(self) -> tuple[JsonPathStep, str | None]:
        if self.path_text[self.position : self.position + 1] == "*":
            self.position += 1
            return _list_children, None
        match = _NAME.match(self.path_text, self.position)
        if match is None:
            raise self.build_error(f"unexpected {self.path_text[self.position :]!r}")
        self.position = match.end()
        name = re.sub(r"\\(.)", r"\1", match.group())
        return _child_step(name), name

    def parse_brackets(self) -> tuple[JsonPathStep, str | None]:
        content = self.read_bracket_content()
        if content.startswith("?(") and content.endswith(")"):
            return _filter_step(self.parse_filter(content[2:-1])), None
        if content == "*":
            return _list_children, None
        if len(parts := self.split_union(content)) > 1:
            return _union_step([self.parse_subscript(part.strip())[0] for part in parts]), None
        return self.parse_subscript(content)

    def split_union(self, content: str) -> list[str]:
        return re.findall(r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"])+", content)

    def read_bracket_content(self) -> str:
        """Return the text up to the matching bracket; quoted brackets do not count."""
        depth, quote, start = 0, "", self.position + 1
        for index in range(self.position, len(self.path_text)):
            character = self.path_text[index]
            if quote:
                if character == quote and self.path_text[index - 1] != "\\":
                    quote = ""
            elif character in "'\"":
                quote = character
            elif character in "[]":
                depth += 1 if character == "[" else -1
                if not depth:
                    self.position = index + 1
                    return self.path_text[start:index].strip()
        raise self.build_error("unterminated array")

    def parse_subscript(self, content: str) -> tuple[JsonPathStep, str | None]:
        if len(content) >= 2 and content[0] in "'\"" and content[-1] == content[0]:
            name = re.sub(r"\\(.)", r"\1", content[1:-1])
            return _child_step(name), name
        match = _SLICE.fullmatch(content)
        if match is None or not content:
            raise self.build_error(f"invalid array index {content}")
        if ":" not in content:
            return _index_step(int(content)), None
        first, last, stride = (int(text) if text else None for text in match.groups())
        if stride is not None and stride <= 0:
            raise self.build_error("step must be > 0")
        return _slice_step(slice(first, last, stride)), None

    def parse_filter(self, text: str) -> Callable[[Any], bool]:
        match = _OPERATOR.search(text)
        left = (text[: match.start()] if match else text).strip()
        if not left.startswith("@"):
            raise self.build_error(f"invalid filter {text}")
        path = compile_path(left)
        if match is None:
            return lambda item: bool(path.find_all(item))
        compare, expected = _COMPARISONS[match.group()], self.parse_literal(text[match.end() :].strip())

        def holds(item: Any) -> bool:
            values = path.find_all(item)
            return bool(values) and _are_comparable(values[0], expected) and compare(values[0], expected)

        return holds

    def parse_literal(self, text: str) -> Any:
        if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
            return text[1:-1]
        if text in ("true", "false"):
            return text == "true"
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        raise self.build_error(f"invalid literal {text}")

    def build_error(self, problem: str) -> UserError:
        return UserError(f'{problem} in path {self.text}; examples: .spec.name, .items[?(@.type=="x")].value')
