"""Resource quantities: parses, formats, compares and adds `500m`, `1.5Gi`, `1e3`.

In: a quantity from a manifest. Out: its exact value, or its canonical text as Kubernetes prints it.
Never: uses floats; guesses. Invalid text raises ManifestError with the API server's message.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from typing import NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.short_text_result_cache import cache_short_texts

FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_ERROR = "unable to parse quantity's suffix"

_QUANTITY_PATTERN = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT_PATTERN = re.compile(r"[eE]([-+]?[0-9]{1,10})", re.ASCII)
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_BY_EXPONENT = {exponent: name for name, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_BY_POWER = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = Decimal("1E-9")
_MAX_BINARY_VALUE = Decimal(2**63 - 1)
_INT32_LIMIT = 2**31


class Quantity(NamedTuple):
    """An exact value and its notation. `canonical_text` is the original text if it is printed unchanged."""

    value: Decimal
    style: str  # "decimal", "binary" or "exponent"
    canonical_text: str = ""

    def __str__(self) -> str:
        return self.canonical_text or _format_value(self.value, self.style)


@cache_short_texts(4096)
def read(text: str) -> Quantity:
    text = text.strip()
    if text == "0":
        return Quantity(Decimal(0), "decimal", "0")
    match = _QUANTITY_PATTERN.fullmatch(text)
    if match is None or not text:
        raise ManifestError(FORMAT_ERROR)
    sign, digits, fraction, suffix = match.group(1), match.group(2) or "0", match.group(3) or "", match.group(4)
    style, exponent = _read_suffix(suffix)
    number = Decimal(f"{sign}{digits}.{fraction or '0'}")
    context = Context(prec=len(digits) + len(fraction) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    if style == "binary":
        value = context.multiply(number, Decimal(2**exponent))
    else:
        # the exponent may be huge; scaling a Decimal does not expand its digits
        value = number.scaleb(exponent, context)
    value = _round_and_clamp(value, style, context)
    if style == "binary" and 0 < value < 1:
        style = "decimal"
    canonical_text = text if _is_printed_unchanged(digits, fraction, style, exponent) else ""
    return Quantity(value, style, canonical_text)


def _read_suffix(suffix: str) -> tuple[str, int]:
    if suffix in _DECIMAL_SUFFIXES:
        return "decimal", _DECIMAL_SUFFIXES[suffix]
    if suffix in _BINARY_SUFFIXES:
        return "binary", _BINARY_SUFFIXES[suffix]
    match = _EXPONENT_PATTERN.fullmatch(suffix)
    if match is None or abs(exponent := int(match.group(1))) >= _INT32_LIMIT:
        raise ManifestError(SUFFIX_ERROR)
    return "exponent", exponent


def _round_and_clamp(value: Decimal, style: str, context: Context) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9 and value:
        # k8s: values below one nano unit are rounded up to it, never down to zero
        value = value.quantize(_NANO, ROUND_UP, context) if value.adjusted() >= -9 else _NANO.copy_sign(value)
    if style == "binary" and abs(value) > _MAX_BINARY_VALUE:
        value = _MAX_BINARY_VALUE.copy_sign(value)
    return value


def _is_printed_unchanged(digits: str, fraction: str, style: str, exponent: int) -> bool:
    """k8s: text that looks canonical is printed unchanged, even `1.500` or `+5`."""
    all_digits = digits + fraction
    if style == "binary":
        is_small = not fraction and 14 - len(digits) - exponent * 3 // 10 >= 0
        return is_small and exponent % 10 == 0 and int(digits) & 7 != 0
    scale = exponent - len(fraction)
    if len(all_digits) > 18 or scale < -9:
        return False
    return scale % 3 == 0 and not all_digits.endswith("000") and all_digits[0] != "0"


def _format_value(value: Decimal, style: str) -> str:
    if not value:
        return "0"
    if style == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        whole, power = int(value), 0
        while whole % 1024 == 0 and power < len(_BINARY_SUFFIX_BY_POWER) - 1:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX_BY_POWER[power]}"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    exponent += len(text) - len(significant)
    shift = exponent % 3
    if style != "exponent":
        shift = max(shift, exponent - 18)  # there is no suffix beyond E
    exponent -= shift
    suffix = (f"e{exponent}" if exponent else "") if style == "exponent" else _DECIMAL_SUFFIX_BY_EXPONENT[exponent]
    return f"{'-' if sign else ''}{significant}{'0' * shift}{suffix}"


def parse(text: str | int | float) -> Decimal:
    """Return the exact value."""
    return read(str(text)).value


def canonicalize(text: str | int | float) -> str:
    """Format as the API server returns it: `1024Mi` becomes `1Gi`, `0.5` becomes `500m`."""
    return str(read(str(text)))


def compare(left: str | int | float, right: str | int | float) -> int:
    """Return -1, 0 or 1."""
    left_value, right_value = parse(left), parse(right)
    return (left_value > right_value) - (left_value < right_value)


def add(left: str | int | float, right: str | int | float) -> str:
    """Return the sum in the notation of `left` (of `right` if `left` is zero)."""
    left_quantity, right_quantity = read(str(left)), read(str(right))
    style = left_quantity.style if left_quantity.value else right_quantity.style
    context = Context(prec=_precision_for_sum(left_quantity.value, right_quantity.value), Emax=MAX_EMAX, Emin=MIN_EMIN)
    total = context.add(left_quantity.value, right_quantity.value)
    return str(Quantity(total, style))


def _precision_for_sum(*values: Decimal) -> int:
    max_exponent = max((value.adjusted() for value in values if value), default=0)
    # no realistic sum needs more digits, and exact sums of extreme exponents would take gigabytes
    return min(max(max_exponent, 0) + 40, 4096)
