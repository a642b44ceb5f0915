"""Parses label selectors: `a=b,c in (d,e),!f,g>3`, or matchLabels and matchExpressions.

In: text or a manifest's selector. Out: LabelSelector. Never: guesses: an invalid selector raises ManifestError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.kube.schema.field_error import format_go_value

Labels = Mapping[str, str]

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_PATTERN = re.compile(_NAME)
_SUBDOMAIN_PATTERN = re.compile(_SUBDOMAIN)
_ALLOWED_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_RULE = (
    f"must consist of {_ALLOWED_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or consist of {_ALLOWED_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_MAX_NAME_BYTES = 63
_INTEGER_PATTERN = re.compile(r"[+-]?[0-9]+")


def find_label_key_errors(key: str) -> list[str]:
    """Return the errors of a label key (qualified name), worded as the server words them."""
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    elif "/" in name:
        return [
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = _find_prefix_errors(prefix) if slash else []
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_NAME_BYTES:
        errors.append(f"name part must be no more than {_MAX_NAME_BYTES} characters")
    if not _NAME_PATTERN.fullmatch(name):
        errors.append(f"name part {_NAME_RULE}")
    return errors


def _find_prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = []
    if len(prefix) > 253:
        errors.append("prefix part must be no more than 253 characters")
    if not _SUBDOMAIN_PATTERN.fullmatch(prefix):
        errors.append(f"prefix part {_SUBDOMAIN_RULE}")
    return errors


def find_label_value_errors(value: str) -> list[str]:
    errors = []
    if len(value.encode()) > _MAX_NAME_BYTES:
        errors.append(f"must be no more than {_MAX_NAME_BYTES} characters")
    if value and not _NAME_PATTERN.fullmatch(value):
        errors.append(_VALUE_RULE)
    return errors


def _parse_int64(text: str) -> int | None:
    if not _INTEGER_PATTERN.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# Written operator -> its meaning.
_OPERATOR_MEANINGS = {
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
_OPERATOR_SYMBOLS = {"gt": ">", "lt": "<"}


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One term. `operator` is the meaning (in, notin, exists, !, gt, lt) of `written_operator`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    written_operator: str = field(default="", compare=False)

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "gt" | "lt":
                return f"{self.key}{_OPERATOR_SYMBOLS[self.operator]}{self.values[0]}"
        if self.written_operator in ("=", "==", "!="):
            return f"{self.key}{self.written_operator}{self.values[0]}"
        return f"{self.key} {self.operator} ({','.join(self.values)})"

    def build_test(self) -> Callable[[Labels], bool]:
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
        direction = 1 if self.operator == "gt" else -1
        return lambda labels: (
            (number := _parse_int64(labels.get(key, ""))) is not None and (number - bound) * direction > 0
        )


class LabelSelector:
    """All requirements must match. `matches_nothing`: the manifest has no selector, which matches no labels."""

    __slots__ = ("_tests", "matches_nothing", "requirements")

    def __init__(self, requirements: Iterable[LabelRequirement] = (), *, matches_nothing: bool = False) -> None:
        self.requirements = tuple(
            sorted(requirements, key=lambda requirement: (requirement.key, requirement.operator, requirement.values))
        )
        self.matches_nothing = matches_nothing
        self._tests = tuple(requirement.build_test() for requirement in self.requirements)

    @property
    def is_empty(self) -> bool:
        """True if the selector matches everything."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Labels | None) -> bool:
        if self.matches_nothing:
            return False
        actual = labels or {}
        return all(test(actual) for test in self._tests)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.matches_nothing == other.matches_nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.matches_nothing))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "LabelSelector(nothing)" if self.matches_nothing else f"LabelSelector({str(self)!r})"


_MATCH_ALL = LabelSelector()
_MATCH_NOTHING = LabelSelector(matches_nothing=True)


def _build_requirement(key: str, written_operator: str, values: Sequence[str]) -> LabelRequirement:
    """Build a validated term. k8s: all errors of one term are reported together."""
    errors = [
        f"key: Invalid value: {format_go_value(key)}: {'; '.join(value_errors)}"
        for value_errors in [find_label_key_errors(key)]
        if value_errors
    ]
    operator = _OPERATOR_MEANINGS[written_operator]
    if operator in ("in", "notin") and not values:
        errors.append("values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("exists", "!") and values:
        values_text = ", ".join(format_go_value(value) for value in values)
        errors.append(
            f"values: Invalid value: []string{{{values_text}}}: values set must be empty for exists and does not exist"
        )
    elif operator in ("gt", "lt") and _parse_int64(values[0]) is None:
        values_text = format_go_value(values[0])
        errors.append(
            f"values[0]: Invalid value: {values_text}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(values):
        if value_errors := find_label_value_errors(value):
            errors.append(f"values[{index}][{key}]: Invalid value: {format_go_value(value)}: {'; '.join(value_errors)}")
    if errors:
        raise ManifestError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return LabelRequirement(key, operator, tuple(sorted(set(values))), written_operator)


_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),><])|([^ \t\r\n=!(),><]+))")
_BINARY_OPERATORS = {"=": "=", "==": "==", "!=": "!=", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}


class _SelectorParser:
    """Recursive descent parser. A token is (text, whether it is an identifier rather than a symbol)."""

    def __init__(self, text: str) -> None:
        # k8s: the scanner treats a NUL byte as the end of the text.
        tokens = [(symbol or identifier, not symbol) for symbol, identifier in _TOKEN.findall(text.partition("\0")[0])]
        self.tokens = [*tokens, ("", False)]
        self.position = 0

    def peek(self) -> tuple[str, bool]:
        return self.tokens[self.position]

    def take(self) -> tuple[str, bool]:
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def parse_selector(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        while True:
            token, is_identifier = self.peek()
            if not token:
                return requirements
            if not is_identifier and token != "!":
                raise ManifestError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.parse_requirement())
            except ManifestError as error:
                raise ManifestError(f"unable to parse requirement: {error.message}") from error
            separator, _ = self.take()
            if not separator:
                return requirements
            if separator != ",":
                raise ManifestError(f"found '{separator}', expected: ',' or 'end of string'")
            token, is_identifier = self.peek()
            if not is_identifier and token != "!":
                raise ManifestError(f"found '{token}', expected: identifier after ','")

    def parse_requirement(self) -> LabelRequirement:
        key, is_identifier = self.take()
        is_negated = key == "!"
        if is_negated:
            key, is_identifier = self.take()
        if not is_identifier:
            raise ManifestError(f"found '{key}', expected: identifier")
        if errors := find_label_key_errors(key):
            raise ManifestError(f"<nil>: Invalid value: {format_go_value(key)}: {'; '.join(errors)}")
        if self.peek()[0] in ("", ","):
            return _build_requirement(key, "!" if is_negated else "exists", ())
        # k8s: `!a=b` is read as `a=b`; the `!` counts only if no operator follows.
        token, _ = self.take()
        written_operator = _BINARY_OPERATORS.get(token)
        if written_operator is None:
            raise ManifestError(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self.parse_value_set() if written_operator in ("in", "notin") else [self.parse_value()]
        return _build_requirement(key, written_operator, sorted(set(values)))

    def parse_value(self) -> str:
        token, is_identifier = self.peek()
        if token in ("", ","):
            return ""
        self.take()
        if not is_identifier:
            raise ManifestError(f"found '{token}', expected: identifier")
        return token

    def parse_value_set(self) -> list[str]:
        token, _ = self.take()
        if token != "(":
            raise ManifestError(f"found '{token}' expected: '('")
        token, is_identifier = self.peek()
        if token == ")":
            self.take()
            return [""]
        if not is_identifier and token != ",":
            raise ManifestError(f"found '{token}', expected: ',', ')' or identifier")
        values = self.parse_value_list()
        self.take()
        return values

    def parse_value_list(self) -> list[str]:
        """Parse up to the closing parenthesis (exclusive); nothing between two commas is the empty value."""
        values: list[str] = []
        while True:
            token, is_identifier = self.take()
            next_token, _ = self.peek()
            if is_identifier:
                values.append(token)
                if next_token == ")":
                    return values
                if next_token != ",":
                    raise ManifestError(f"found '{next_token}', expected: ',' or ')'")
            elif token == ",":
                if not values or next_token == ")":
                    values.append("")
                if next_token == ")":
                    return values
                if next_token == ",":
                    self.take()
                    values.append("")
            else:
                raise ManifestError(f"found '{token}', expected: ',', or identifier")


@cache_short_texts(512)
def parse_label_selector(text: str) -> LabelSelector:
    """Parse the `labelSelector` of a query; empty text selects everything."""
    return LabelSelector(_SelectorParser(text).parse_selector()) if text else _MATCH_ALL


_EXPRESSION_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def label_selector_from_wire(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read matchLabels and matchExpressions of a manifest; None matches nothing, {} matches everything."""
    if selector is None:
        return _MATCH_NOTHING
    requirements = [_build_requirement(key, "=", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = str(expression.get("operator", ""))
        if operator not in _EXPRESSION_OPERATORS:
            raise ManifestError(f"{format_go_value(operator)} is not a valid label selector operator")
        requirements.append(
            _build_requirement(
                expression.get("key", ""), _EXPRESSION_OPERATORS[operator], expression.get("values") or ()
            )
        )
    return LabelSelector(requirements)
