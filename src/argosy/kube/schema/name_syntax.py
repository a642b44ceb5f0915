"""Checks the syntax of names, labels, ports and addresses.

In: a string or number. Out: error messages worded as Kubernetes words them, empty if the value is valid.
Never: knows the field of the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.kube.objects.text_cache import remembered

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

Complaints = tuple[str, ...]
Grammar = Callable[[str], Complaints]

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

_ENDS = "and must start and end with an alphanumeric character"
_QUALIFIED_SAYS = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_WILDCARD_SAYS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_PREFIXED = "(e.g. 'example.com/MyName')"
NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _expected(says: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{says} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{says} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_WRONG = _expected(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL, "my-name", "123-abc",
)  # fmt: skip
_SUBDOMAIN_WRONG = _expected(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _SUBDOMAIN, "example.com",
)  # fmt: skip
_LABEL_1035_WRONG = _expected(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035, "my-name", "abc-123",
)  # fmt: skip
_QUALIFIED_WRONG = _expected(_QUALIFIED_SAYS, _QUALIFIED, "MyName", "my.name", "123-abc")
_LABEL_VALUE_WRONG = _expected(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " + _ENDS,
    f"({_QUALIFIED})?", "MyValue", "my_value", "12345",
)  # fmt: skip
_CONFIG_KEY_WRONG = _expected(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _IDENTIFIER_KEY, "key.name", "KEY_NAME", "key-name",
)  # fmt: skip
_PERCENT_WRONG = _expected(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)
_HEADER_WRONG = _expected(
    "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)


def at_most(length: int) -> str:
    return f"must be no more than {length} characters"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def _longer(value: str, limit: int) -> bool:
    return len(value) > limit or len(value.encode(errors="surrogatepass")) > limit


@remembered(8192)
def dns_label(value: str) -> Complaints:
    """Check the name of a namespace, container or volume: `my-name`."""
    wrong = [at_most(63)] if _longer(value, 63) else []
    if not _is_label(value):
        wrong.append("must not contain dots" if _is_subdomain(value) else _LABEL_WRONG)
    return tuple(wrong)


@remembered(8192)
def dns_subdomain(value: str) -> Complaints:
    """Check the name of most kinds: `my.name`."""
    wrong = [at_most(253)] if _longer(value, 253) else []
    if not _is_subdomain(value):
        wrong.append(_SUBDOMAIN_WRONG)
    return tuple(wrong)


@remembered(1024)
def dns_1035_label(value: str) -> Complaints:
    """Check the name of a Service: it starts with a letter."""
    wrong = [at_most(63)] if _longer(value, 63) else []
    if not _is_label_1035(value):
        wrong.append(_LABEL_1035_WRONG)
    return tuple(wrong)


def wildcard_subdomain(value: str) -> Complaints:
    wrong = [at_most(253)] if _longer(value, 253) else []
    if not _is_wildcard(value):
        wrong.append(_expected(_WILDCARD_SAYS, r"\*\." + _SUBDOMAIN, "*.example.com"))
    return tuple(wrong)


def path_segment(value: str) -> Complaints:
    """Check a name that only has to be a valid URL path segment: roles may be called `system:admin`."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{mark}'" for mark in ("/", "%") if mark in value)


@remembered(8192)
def qualified_name(value: str) -> Complaints:
    """Check a label key: `example.com/MyName` or `MyName`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (f"a qualified name {_QUALIFIED_WRONG} with an optional DNS subdomain prefix and '/' {_PREFIXED}",)
    wrong = []
    if slash and not prefix:
        wrong.append("prefix part must be non-empty")
    elif slash:
        wrong.extend(f"prefix part {complaint}" for complaint in dns_subdomain(prefix))
    if not name:
        wrong.append("name part must be non-empty")
    elif _longer(name, 63):
        wrong.append(f"name part {at_most(63)}")
    if not _is_qualified(name):
        wrong.append(f"name part {_QUALIFIED_WRONG}")
    return tuple(wrong)


@remembered(8192)
def label_value(value: str) -> Complaints:
    wrong = [at_most(63)] if _longer(value, 63) else []
    if value and not _is_qualified(value):
        wrong.append(_LABEL_VALUE_WRONG)
    return tuple(wrong)


@remembered(8192)
def config_key(value: str) -> Complaints:
    """Check a key of a ConfigMap or Secret; it becomes a file name."""
    wrong = [at_most(253)] if _longer(value, 253) else []
    if not _is_config_key(value):
        wrong.append(_CONFIG_KEY_WRONG)
    if value in (".", ".."):
        wrong.append(f"must not be '{value}'")
    elif value.startswith(".."):
        wrong.append("must not start with '..'")
    return tuple(wrong)


def variable_name(value: str) -> Complaints:
    """Check the name of an environment variable. k8s: since 1.32 any printable ASCII character except `=`."""
    if all(" " <= char <= "~" and char != "=" for char in value):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def header_name(value: str) -> Complaints:
    return () if _is_header(value) else (_HEADER_WRONG,)


def port_number(value: int) -> Complaints:
    return () if 1 <= value <= 65535 else (between(1, 65535),)


@remembered(1024)
def port_name(value: str) -> Complaints:
    wrong = [at_most(15)] if _longer(value, 15) else []
    if not _is_port_name(value):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in value:
        wrong.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return tuple(wrong)


def percent(value: str) -> Complaints:
    return () if _is_percent(value) else (_PERCENT_WRONG,)


def ip_address(value: str) -> Complaints:
    return () if is_ip(value) else (NOT_AN_IP,)


def ordinary_ip(value: str) -> Complaints:
    """Check an address that another machine may have: not unspecified, loopback or link-local."""
    if not is_ip(value):
        return ("must be a valid IP address",)
    address = _address(value)
    multicast = address.is_multicast and address.packed[:3] in (b"\xe0\x00\x00", b"\xff\x02\x00")
    known = (
        (address.is_unspecified, f"may not be unspecified ({value})"),
        (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    )
    return tuple(words for found, words in known if found)


def cidr(value: str) -> Complaints:
    if "/" not in value:
        return (NOT_A_CIDR,)
    import ipaddress

    try:
        ipaddress.ip_network(_without_leading_zeros(value), strict=False)
    except ValueError:
        return (NOT_A_CIDR,)
    return ()


def is_ip(value: str) -> bool:
    try:
        return "%" not in value and bool(_address(value))
    except ValueError:
        return False


def _address(value: str) -> IPv4Address | IPv6Address:
    import ipaddress  # imported lazily: few requests contain an address, and the module is slow to load

    return ipaddress.ip_address(_without_leading_zeros(value))


def _without_leading_zeros(value: str) -> str:
    # k8s: 010.001.000.001 is read as 10.1.0.1 for compatibility
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", value) if ":" not in value else value


def for_prefix(grammar: Grammar, prefix: str) -> Complaints:
    """Check `generateName`; it may end with a dash, because a suffix follows."""
    if grammar is path_segment:
        return path_segment(prefix)
    if len(prefix) > 1 and prefix.endswith("-"):
        return grammar(prefix[:-2] + "a")
    return grammar(prefix)
