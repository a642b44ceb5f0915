"""Parses label selectors: `a=b,c in (d,e),!f,g>3`, or matchLabels and matchExpressions.

In: text or a manifest's selector. Out: LabelSelector. Never: guesses: an invalid selector raises ManifestError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.objects.text_cache import remembered
from argosy.kube.schema.field_error import go_value

Labels = Mapping[str, str]

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_SHAPE = re.compile(_NAME)
_SUBDOMAIN_SHAPE = re.compile(_SUBDOMAIN)
_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_RULE = (
    f"must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or consist of {_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LONGEST = 63
_INT64 = re.compile(r"[+-]?[0-9]+")


def label_key_problems(key: str) -> list[str]:
    """Return the errors of a label key (qualified name), worded as the server words them."""
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    elif "/" in name:
        return [
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST:
        problems.append(f"name part must be no more than {_LONGEST} characters")
    if not _NAME_SHAPE.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if len(prefix) > 253:
        problems.append("prefix part must be no more than 253 characters")
    if not _SUBDOMAIN_SHAPE.fullmatch(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > _LONGEST:
        problems.append(f"must be no more than {_LONGEST} characters")
    if value and not _NAME_SHAPE.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


def _int64(text: str) -> int | None:
    if not _INT64.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# Written operator -> its meaning.
_MEANING = {
    "=": "in",
    "==": "in",
    "in": "in",
    "!=": "notin",
    "notin": "notin",
    "exists": "exists",
    "!": "!",
    "gt": "gt",
    "lt": "lt",
}
_SYMBOL = {"gt": ">", "lt": "<"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. `operator` is the meaning (in, notin, exists, !, gt, lt) of `written_operator`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    spelling: str = field(default="", compare=False)

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "gt" | "lt":
                return f"{self.key}{_SYMBOL[self.operator]}{self.values[0]}"
        if self.spelling in ("=", "==", "!="):
            return f"{self.key}{self.spelling}{self.values[0]}"
        return f"{self.key} {self.operator} ({','.join(self.values)})"

    def test(self) -> Callable[[Labels], bool]:
        """Return a function that is True if labels satisfy this term."""
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "in":
                return lambda labels: labels.get(key) in values
            case "notin":
                return lambda labels: labels.get(key) not in values
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
        bound = int(self.values[0])
        wanted = 1 if self.operator == "gt" else -1
        return lambda labels: (number := _int64(labels.get(key, ""))) is not None and (number - bound) * wanted > 0


class LabelSelector:
    """All requirements must match. `matches_nothing`: the manifest has no selector, which matches no labels."""

    __slots__ = ("_tests", "nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda each: (each.key, each.operator, each.values)))
        self.nothing = nothing
        self._tests = tuple(each.test() for each in self.requirements)

    @property
    def empty(self) -> bool:
        """True if the selector matches everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels | None) -> bool:
        if self.nothing:
            return False
        present = labels or {}
        return all(test(present) for test in self._tests)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.nothing == other.nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "LabelSelector(nothing)" if self.nothing else f"LabelSelector({str(self)!r})"


_EVERYTHING = LabelSelector()
_NOTHING = LabelSelector(nothing=True)


def _requirement(key: str, spelling: str, values: Sequence[str]) -> Requirement:
    """Build a validated term. k8s: all errors of one term are reported together."""
    problems = [
        f"key: Invalid value: {go_value(key)}: {'; '.join(found)}" for found in [label_key_problems(key)] if found
    ]
    operator = _MEANING[spelling]
    if operator in ("in", "notin") and not values:
        problems.append("values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("exists", "!") and values:
        shown = ", ".join(go_value(value) for value in values)
        problems.append(
            f"values: Invalid value: []string{{{shown}}}: values set must be empty for exists and does not exist"
        )
    elif operator in ("gt", "lt") and _int64(values[0]) is None:
        shown = go_value(values[0])
        problems.append(f"values[0]: Invalid value: {shown}: for 'Gt', 'Lt' operators, the value must be an integer")
    for index, value in enumerate(values):
        if found := label_value_problems(value):
            problems.append(f"values[{index}][{key}]: Invalid value: {go_value(value)}: {'; '.join(found)}")
    if problems:
        raise ManifestError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, tuple(sorted(set(values))), spelling)


_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),><])|([^ \t\r\n=!(),><]+))")
_BINARY = {"=": "=", "==": "==", "!=": "!=", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}


class _Parser:
    """Recursive descent parser. A token is (text, whether it is an identifier rather than a symbol)."""

    def __init__(self, text: str) -> None:
        # k8s: the scanner treats a NUL byte as the end of the text.
        words = [(symbol or word, not symbol) for symbol, word in _TOKEN.findall(text.partition("\0")[0])]
        self.words = [*words, ("", False)]
        self.position = 0

    def peek(self) -> tuple[str, bool]:
        return self.words[self.position]

    def take(self) -> tuple[str, bool]:
        word = self.words[self.position]
        self.position = min(self.position + 1, len(self.words) - 1)
        return word

    def selector(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            word, identifier = self.peek()
            if not word:
                return requirements
            if not identifier and word != "!":
                raise ManifestError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except ManifestError as error:
                raise ManifestError(f"unable to parse requirement: {error.message}") from error
            after, _ = self.take()
            if not after:
                return requirements
            if after != ",":
                raise ManifestError(f"found '{after}', expected: ',' or 'end of string'")
            word, identifier = self.peek()
            if not identifier and word != "!":
                raise ManifestError(f"found '{word}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        key, identifier = self.take()
        absent = key == "!"
        if absent:
            key, identifier = self.take()
        if not identifier:
            raise ManifestError(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise ManifestError(f"<nil>: Invalid value: {go_value(key)}: {'; '.join(problems)}")
        if self.peek()[0] in ("", ","):
            return _requirement(key, "!" if absent else "exists", ())
        # k8s: `!a=b` is read as `a=b`; the `!` counts only if no operator follows.
        word, _ = self.take()
        spelling = _BINARY.get(word)
        if spelling is None:
            raise ManifestError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        values = self.value_set() if spelling in ("in", "notin") else [self.value()]
        return _requirement(key, spelling, sorted(set(values)))

    def value(self) -> str:
        word, identifier = self.peek()
        if word in ("", ","):
            return ""
        self.take()
        if not identifier:
            raise ManifestError(f"found '{word}', expected: identifier")
        return word

    def value_set(self) -> list[str]:
        word, _ = self.take()
        if word != "(":
            raise ManifestError(f"found '{word}' expected: '('")
        word, identifier = self.peek()
        if word == ")":
            self.take()
            return [""]
        if not identifier and word != ",":
            raise ManifestError(f"found '{word}', expected: ',', ')' or identifier")
        values = self.value_list()
        self.take()
        return values

    def value_list(self) -> list[str]:
        """Parse up to the closing parenthesis (exclusive); nothing between two commas is the empty value."""
        values: list[str] = []
        while True:
            word, identifier = self.take()
            following, _ = self.peek()
            if identifier:
                values.append(word)
                if following == ")":
                    return values
                if following != ",":
                    raise ManifestError(f"found '{following}', expected: ',' or ')'")
            elif word == ",":
                if not values or following == ")":
                    values.append("")
                if following == ")":
                    return values
                if following == ",":
                    self.take()
                    values.append("")
            else:
                raise ManifestError(f"found '{word}', expected: ',', or identifier")


@remembered(512)
def labels(text: str) -> LabelSelector:
    """Parse the `labelSelector` of a query; empty text selects everything."""
    return LabelSelector(_Parser(text).selector()) if text else _EVERYTHING


_EXPRESSIONS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read matchLabels and matchExpressions of a manifest; None matches nothing, {} matches everything."""
    if selector is None:
        return _NOTHING
    requirements = [_requirement(key, "=", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = str(expression.get("operator", ""))
        if operator not in _EXPRESSIONS:
            raise ManifestError(f"{go_value(operator)} is not a valid label selector operator")
        requirements.append(
            _requirement(expression.get("key", ""), _EXPRESSIONS[operator], expression.get("values") or ())
        )
    return LabelSelector(requirements)
