"""Checks the syntax of names, labels, ports and addresses.

In: a string or number. Out: error messages worded as Kubernetes words them, empty if the value is valid.
Never: knows the field of the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.kube.objects.short_text_result_cache import cache_short_texts

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

SyntaxErrors = tuple[str, ...]
SyntaxCheck = Callable[[str], SyntaxErrors]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}(\\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_IDENTIFIER_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL, re.ASCII).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN, re.ASCII).fullmatch
_is_label_1035 = re.compile(_LABEL_1035, re.ASCII).fullmatch
_is_qualified = re.compile(_QUALIFIED, re.ASCII).fullmatch
_is_wildcard = re.compile(r"\*\." + _SUBDOMAIN, re.ASCII).fullmatch
_is_config_key = re.compile(_IDENTIFIER_KEY, re.ASCII).fullmatch
_is_port_name = re.compile("[-a-z0-9]+", re.ASCII).fullmatch
_is_percent = re.compile("[0-9]+%", re.ASCII).fullmatch
_is_header = re.compile("[-A-Za-z0-9]+", re.ASCII).fullmatch

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_QUALIFIED_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_PREFIXED_EXAMPLE = "(e.g. 'example.com/MyName')"
IP_ERROR = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_ERROR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _format_rule(rule: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    examples_text = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {examples_text}regex used for validation is '{pattern}')"


_LABEL_ERROR = _format_rule(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}",
    _LABEL, "my-name", "123-abc",
)  # fmt: skip
_SUBDOMAIN_ERROR = _format_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_ERROR = _format_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035, "my-name", "abc-123",
)  # fmt: skip
_QUALIFIED_ERROR = _format_rule(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
_LABEL_VALUE_ERROR = _format_rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    + _ALPHANUMERIC_ENDS,
    f"({_QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_ERROR = _format_rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _IDENTIFIER_KEY, "key.name", "KEY_NAME", "key-name",
)  # fmt: skip
_PERCENT_ERROR = _format_rule(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)
_HEADER_ERROR = _format_rule(
    "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)


def length_error(length: int) -> str:
    return f"must be no more than {length} characters"


def range_error(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def _is_longer(value: str, limit: int) -> bool:
    return len(value) > limit or len(value.encode(errors="surrogatepass")) > limit


@cache_short_texts(8192)
def check_dns_label(value: str) -> SyntaxErrors:
    """Check the name of a namespace, container or volume: `my-name`."""
    errors = [length_error(63)] if _is_longer(value, 63) else []
    if not _is_label(value):
        errors.append("must not contain dots" if _is_subdomain(value) else _LABEL_ERROR)
    return tuple(errors)


@cache_short_texts(8192)
def check_dns_subdomain(value: str) -> SyntaxErrors:
    """Check the name of most kinds: `my.name`."""
    errors = [length_error(253)] if _is_longer(value, 253) else []
    if not _is_subdomain(value):
        errors.append(_SUBDOMAIN_ERROR)
    return tuple(errors)


@cache_short_texts(1024)
def check_dns_1035_label(value: str) -> SyntaxErrors:
    """Check the name of a Service: it starts with a letter."""
    errors = [length_error(63)] if _is_longer(value, 63) else []
    if not _is_label_1035(value):
        errors.append(_LABEL_1035_ERROR)
    return tuple(errors)


def check_wildcard_subdomain(value: str) -> SyntaxErrors:
    errors = [length_error(253)] if _is_longer(value, 253) else []
    if not _is_wildcard(value):
        errors.append(_format_rule(_WILDCARD_RULE, r"\*\." + _SUBDOMAIN, "*.example.com"))
    return tuple(errors)


def check_path_segment(value: str) -> SyntaxErrors:
    """Check a name that only has to be a valid URL path segment: roles may be called `system:admin`."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{character}'" for character in ("/", "%") if character in value)


@cache_short_texts(8192)
def check_qualified_name(value: str) -> SyntaxErrors:
    """Check a label key: `example.com/MyName` or `MyName`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (
            f"a qualified name {_QUALIFIED_ERROR} with an optional DNS subdomain prefix and '/' {_PREFIXED_EXAMPLE}",
        )
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors.extend(f"prefix part {error}" for error in check_dns_subdomain(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif _is_longer(name, 63):
        errors.append(f"name part {length_error(63)}")
    if not _is_qualified(name):
        errors.append(f"name part {_QUALIFIED_ERROR}")
    return tuple(errors)


@cache_short_texts(8192)
def check_label_value(value: str) -> SyntaxErrors:
    errors = [length_error(63)] if _is_longer(value, 63) else []
    if value and not _is_qualified(value):
        errors.append(_LABEL_VALUE_ERROR)
    return tuple(errors)


@cache_short_texts(8192)
def check_config_key(value: str) -> SyntaxErrors:
    """Check a key of a ConfigMap or Secret; it becomes a file name."""
    errors = [length_error(253)] if _is_longer(value, 253) else []
    if not _is_config_key(value):
        errors.append(_CONFIG_KEY_ERROR)
    if value in (".", ".."):
        errors.append(f"must not be '{value}'")
    elif value.startswith(".."):
        errors.append("must not start with '..'")
    return tuple(errors)


def check_variable_name(value: str) -> SyntaxErrors:
    """Check the name of an environment variable. k8s: since 1.32 any printable ASCII character except `=`."""
    if all(" " <= char <= "~" and char != "=" for char in value):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def check_header_name(value: str) -> SyntaxErrors:
    return () if _is_header(value) else (_HEADER_ERROR,)


def check_port_number(value: int) -> SyntaxErrors:
    return () if 1 <= value <= 65535 else (range_error(1, 65535),)


@cache_short_texts(1024)
def check_port_name(value: str) -> SyntaxErrors:
    errors = [length_error(15)] if _is_longer(value, 15) else []
    if not _is_port_name(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def check_percent(value: str) -> SyntaxErrors:
    return () if _is_percent(value) else (_PERCENT_ERROR,)


def check_ip_address(value: str) -> SyntaxErrors:
    return () if is_ip(value) else (IP_ERROR,)


def check_routable_ip(value: str) -> SyntaxErrors:
    """Check an address that another machine may have: not unspecified, loopback or link-local."""
    if not is_ip(value):
        return ("must be a valid IP address",)
    address = _parse_address(value)
    multicast = address.is_multicast and address.packed[:3] in (b"\xe0\x00\x00", b"\xff\x02\x00")
    rules = (
        (address.is_unspecified, f"may not be unspecified ({value})"),
        (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    )
    return tuple(message for is_violated, message in rules if is_violated)


def check_cidr(value: str) -> SyntaxErrors:
    if "/" not in value:
        return (CIDR_ERROR,)
    import ipaddress

    try:
        ipaddress.ip_network(_strip_leading_zeros(value), strict=False)
    except ValueError:
        return (CIDR_ERROR,)
    return ()


def is_ip(value: str) -> bool:
    try:
        return "%" not in value and bool(_parse_address(value))
    except ValueError:
        return False


def _parse_address(value: str) -> IPv4Address | IPv6Address:
    import ipaddress  # imported lazily: few requests contain an address, and the module is slow to load

    return ipaddress.ip_address(_strip_leading_zeros(value))


def _strip_leading_zeros(value: str) -> str:
    # k8s: 010.001.000.001 is read as 10.1.0.1 for compatibility
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", value) if ":" not in value else value


def check_generate_name(check: SyntaxCheck, prefix: str) -> SyntaxErrors:
    """Check `generateName`; it may end with a dash, because a suffix follows."""
    if check is check_path_segment:
        return check_path_segment(prefix)
    if len(prefix) > 1 and prefix.endswith("-"):
        return check(prefix[:-2] + "a")
    return check(prefix)
