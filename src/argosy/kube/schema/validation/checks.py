"""Basic checks that the validation of all kinds uses. Each appends its errors to the list passed in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema import name_syntax, quantity
from argosy.kube.schema.field_error import Fault, forbidden, go_value, invalid, required, too_long, unsupported
from argosy.kube.schema.selectors import LabelSelector, from_label_selector
from argosy.kube.schema.validation import go_format

Part = dict[str, Any]
Faults = list[Fault]

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"


def items(parent: Part, name: str, path: str) -> Iterator[tuple[str, Part]]:
    """Yield each struct of a list with its path."""
    for index, item in enumerate(parent.get(name) or ()):
        yield f"{path}.{name}[{index}]", item or {}


def matches(faults: Faults, field: str, value: str, grammar: name_syntax.Grammar) -> None:
    complaints = grammar(value)
    if complaints:
        faults.extend(invalid(field, go_value(value), complaint) for complaint in complaints)


def named(faults: Faults, field: str, value: object, grammar: name_syntax.Grammar) -> None:
    """Check that the value is set and has the given syntax."""
    if not value:
        faults.append(required(field))
    else:
        matches(faults, field, str(value), grammar)


def one_of(faults: Faults, field: str, value: object, supported: Sequence[str]) -> None:
    if not value:
        faults.append(required(field))
    elif value not in supported:
        faults.append(unsupported(field, go_value(value), supported))


def non_negative(faults: Faults, path: str, parent: Part, *names: str) -> None:
    for name in names:
        value = parent.get(name)
        if isinstance(value, int) and value < 0:
            faults.append(invalid(f"{path}.{name}", str(value), NEGATIVE))


def immutable(faults: Faults, field: str, new: object, old: object, shown: str = "") -> None:
    if new != old and (new or old or type(new) is not type(old)):
        faults.append(invalid(field, shown or ('"null"' if new is None else go_value(new)), IMMUTABLE))


def port(faults: Faults, field: str, value: object) -> None:
    """Check a port given as number or name."""
    if isinstance(value, str):
        matches(faults, field, value, name_syntax.port_name)
    else:
        number = value if isinstance(value, int) else 0
        faults.extend(invalid(field, str(number), complaint) for complaint in name_syntax.port_number(number))


def port_number(faults: Faults, field: str, value: object) -> None:
    number = value if isinstance(value, int) else 0
    faults.extend(invalid(field, str(number), complaint) for complaint in name_syntax.port_number(number))


def amount(faults: Faults, field: str, value: object, *, whole: bool = False) -> None:
    """Check that the value is a resource quantity and not negative."""
    try:
        number = quantity.parse(str(value))
    except ManifestError as error:
        faults.append(invalid(field, go_value(value), error.message))
        return
    if number < 0:
        faults.append(invalid(field, go_value(quantity.canonical(str(value))), NEGATIVE))
    if whole and number != number.to_integral_value():
        faults.append(invalid(field, go_format.quantity(str(value)), "must be an integer"))


def labels(faults: Faults, field: str, given: Mapping[str, Any] | None) -> None:
    for key, value in (given or {}).items():
        matches(faults, field, key, name_syntax.qualified_name)
        matches(faults, field, str(value or ""), name_syntax.label_value)


def annotation_map(faults: Faults, field: str, given: Mapping[str, Any] | None) -> None:
    total = 0
    for key, value in (given or {}).items():
        complaints = name_syntax.qualified_name(key.lower())
        faults.extend(invalid(field, go_value(key), complaint) for complaint in complaints)
        total += len(key.encode()) + len(str(value or "").encode(errors="surrogatepass"))
    if total > 256 * 1024:
        faults.append(too_long(field, 256 * 1024))


def label_selector(faults: Faults, field: str, selector: Part | None) -> None:
    if not selector:
        return
    labels(faults, f"{field}.matchLabels", selector.get("matchLabels"))
    for path, term in items(selector, "matchExpressions", field):
        operator, values = term.get("operator") or "", term.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                words = "must be specified when `operator` is 'In' or 'NotIn'"
                faults.append(required(f"{path}.values", words))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                faults.append(forbidden(f"{path}.values", words))
        else:
            faults.append(invalid(f"{path}.operator", go_value(operator), "not a valid selector operator"))
        matches(faults, f"{path}.key", str(term.get("key") or ""), name_syntax.qualified_name)
        for index, value in enumerate(values):
            matches(faults, f"{path}.values[{index}]", str(value), name_syntax.label_value)


def selector_of(selector: Part | None) -> LabelSelector | None:
    """Return the selector, None if it is invalid (`check_label_selector` reports that)."""
    try:
        return from_label_selector(selector)
    except ManifestError:
        return None


def one_volume(faults: Faults, path: str, kinds: Sequence[str]) -> None:
    """Check that a volume has exactly one type."""
    faults.extend(forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in kinds[1:])
    if not kinds:
        faults.append(required(path, "must specify a volume type"))
