"""Names, labels, ports and addresses are refused in Kubernetes' words."""

from __future__ import annotations

import pytest

from argosy.schema import syntax

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("grammar", "value", "complaints"),
    [
        (syntax.dns_label, "my-name", ()),
        (syntax.dns_label, "a.b", ("must not contain dots",)),
        (syntax.dns_label, "A", (LABEL,)),
        (syntax.dns_label, "a" * 64, ("must be no more than 63 characters",)),
        (syntax.dns_subdomain, "a.b-c.d", ()),
        (syntax.dns_subdomain, "a\n", None),
        (syntax.dns_1035_label, "1a", None),
        (syntax.qualified_name, "example.com/MyName", ()),
        (syntax.qualified_name, "/x", ("prefix part must be non-empty",)),
        (syntax.qualified_name, "a/b/c", None),
        (syntax.label_value, "", ()),
        (syntax.label_value, "-a", None),
        (syntax.config_key, "..", ("must not be '..'",)),
        (syntax.config_key, "..a", ("must not start with '..'",)),
        (syntax.config_key, ".dockerconfigjson", ()),
        (syntax.variable_name, "any thing", ()),
        (syntax.variable_name, "a=b", None),
        (syntax.path_segment, "system:admin", ()),
        (syntax.path_segment, "a/b", ("may not contain '/'",)),
        (syntax.port_name, "http", ()),
        (syntax.port_name, "8080", ("must contain at least one letter (a-z)",)),
        (syntax.port_name, "a--b", ("must not contain consecutive hyphens",)),
        (syntax.percent, "25%", ()),
        (syntax.percent, "25", None),
        (syntax.ip_address, "010.0.0.1", ()),
        (syntax.ip_address, "fe80::1", ()),
        (syntax.ip_address, "1.2.3", (syntax.NOT_AN_IP,)),
        (syntax.cidr, "10.0.0.0/8", ()),
        (syntax.cidr, "10.0.0.0", (syntax.NOT_A_CIDR,)),
        (syntax.wildcard_subdomain, "*.example.com", ()),
        (syntax.wildcard_subdomain, "*", None),
    ],
)
def test_a_grammar_says_what_is_wrong(grammar: syntax.Grammar, value: str, complaints: tuple[str, ...] | None) -> None:
    found = grammar(value)
    assert found == complaints if complaints is not None else found


def test_a_name_to_be_completed_may_end_with_a_dash() -> None:
    assert syntax.for_prefix(syntax.dns_label, "job-") == ()
    assert syntax.for_prefix(syntax.dns_label, "-") == (LABEL,)


@pytest.mark.parametrize(("number", "fine"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_ports_are_sixteen_bits_wide(number: int, fine: bool) -> None:
    assert (syntax.port_number(number) == ()) == fine
