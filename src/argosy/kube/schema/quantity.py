"""Resource quantities: parses, formats, compares and adds `500m`, `1.5Gi`, `1e3`.

In: a quantity from a manifest. Out: its exact value, or its canonical text as Kubernetes prints it.
Never: uses floats; guesses. Invalid text raises ManifestError with the API server's message.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from typing import NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.text_cache import remembered

BAD_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_SUFFIX = "unable to parse quantity's suffix"

_GRAMMAR = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]{1,10})", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = Decimal("1E-9")
_MOST = Decimal(2**63 - 1)
_INT32 = 2**31


class Quantity(NamedTuple):
    """An exact value and its notation. `canonical_text` is the original text if it is printed unchanged."""

    value: Decimal
    style: str  # "decimal", "binary" or "exponent"
    kept: str = ""

    def __str__(self) -> str:
        return self.kept or _print(self.value, self.style)


@remembered(4096)
def read(text: str) -> Quantity:
    text = text.strip()
    if text == "0":
        return Quantity(Decimal(0), "decimal", "0")
    match = _GRAMMAR.fullmatch(text)
    if match is None or not text:
        raise ManifestError(BAD_FORMAT)
    sign, digits, fraction, suffix = match.group(1), match.group(2) or "0", match.group(3) or "", match.group(4)
    style, exponent = _scale(suffix)
    number = Decimal(f"{sign}{digits}.{fraction or '0'}")
    wide = Context(prec=len(digits) + len(fraction) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    if style == "binary":
        value = wide.multiply(number, Decimal(2**exponent))
    else:
        # the exponent may be huge; scaling a Decimal does not expand its digits
        value = number.scaleb(exponent, wide)
    value = _bounded(value, style, wide)
    if style == "binary" and 0 < value < 1:
        style = "decimal"
    kept = text if _is_kept(digits, fraction, style, exponent) else ""
    return Quantity(value, style, kept)


def _scale(suffix: str) -> tuple[str, int]:
    if suffix in _DECIMAL:
        return "decimal", _DECIMAL[suffix]
    if suffix in _BINARY:
        return "binary", _BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or abs(exponent := int(match.group(1))) >= _INT32:
        raise ManifestError(BAD_SUFFIX)
    return "exponent", exponent


def _bounded(value: Decimal, style: str, wide: Context) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9 and value:
        # k8s: values below one nano unit are rounded up to it, never down to zero
        value = value.quantize(_NANO, ROUND_UP, wide) if value.adjusted() >= -9 else _NANO.copy_sign(value)
    if style == "binary" and abs(value) > _MOST:
        value = _MOST.copy_sign(value)
    return value


def _is_kept(digits: str, fraction: str, style: str, exponent: int) -> bool:
    """k8s: text that looks canonical is printed unchanged, even `1.500` or `+5`."""
    shifted = digits + fraction
    if style == "binary":
        small = not fraction and 14 - len(digits) - exponent * 3 // 10 >= 0
        return small and exponent % 10 == 0 and int(digits) & 7 != 0
    scale = exponent - len(fraction)
    if len(shifted) > 18 or scale < -9:
        return False
    return scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _print(value: Decimal, style: str) -> str:
    if not value:
        return "0"
    if style == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        whole, power = int(value), 0
        while whole % 1024 == 0 and power < len(_BINARY_NAMES) - 1:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_NAMES[power]}"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    exponent += len(text) - len(short)
    shift = exponent % 3
    if style != "exponent":
        shift = max(shift, exponent - 18)  # there is no suffix beyond E
    exponent -= shift
    name = (f"e{exponent}" if exponent else "") if style == "exponent" else _DECIMAL_NAMES[exponent]
    return f"{'-' if sign else ''}{short}{'0' * shift}{name}"


def parse(text: str | int | float) -> Decimal:
    """Return the exact value."""
    return read(str(text)).value


def canonical(text: str | int | float) -> str:
    """Format as the API server returns it: `1024Mi` becomes `1Gi`, `0.5` becomes `500m`."""
    return str(read(str(text)))


def compare(left: str | int | float, right: str | int | float) -> int:
    """Return -1, 0 or 1."""
    one, other = parse(left), parse(right)
    return (one > other) - (one < other)


def add(left: str | int | float, right: str | int | float) -> str:
    """Return the sum in the notation of `left` (of `right` if `left` is zero)."""
    one, other = read(str(left)), read(str(right))
    style = one.style if one.value else other.style
    wide = Context(prec=_digits(one.value, other.value), Emax=MAX_EMAX, Emin=MIN_EMIN)
    total = wide.add(one.value, other.value)
    return str(Quantity(total, style))


def _digits(*values: Decimal) -> int:
    spread = max((value.adjusted() for value in values if value), default=0)
    # no realistic sum needs more digits, and exact sums of extreme exponents would take gigabytes
    return min(max(spread, 0) + 40, 4096)
