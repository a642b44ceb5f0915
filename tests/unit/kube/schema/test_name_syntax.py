"""Invalid names, labels, ports and addresses are rejected with the messages of Kubernetes."""

from __future__ import annotations

import pytest

from argosy.kube.schema import name_label_address_syntax

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("grammar", "value", "complaints"),
    [
        (name_label_address_syntax.check_dns_label, "my-name", ()),
        (name_label_address_syntax.check_dns_label, "a.b", ("must not contain dots",)),
        (name_label_address_syntax.check_dns_label, "A", (LABEL,)),
        (name_label_address_syntax.check_dns_label, "a" * 64, ("must be no more than 63 characters",)),
        (name_label_address_syntax.check_dns_subdomain, "a.b-c.d", ()),
        (name_label_address_syntax.check_dns_subdomain, "a\n", None),
        (name_label_address_syntax.check_dns_1035_label, "1a", None),
        (name_label_address_syntax.check_qualified_name, "example.com/MyName", ()),
        (name_label_address_syntax.check_qualified_name, "/x", ("prefix part must be non-empty",)),
        (name_label_address_syntax.check_qualified_name, "a/b/c", None),
        (name_label_address_syntax.check_label_value, "", ()),
        (name_label_address_syntax.check_label_value, "-a", None),
        (name_label_address_syntax.check_config_key, "..", ("must not be '..'",)),
        (name_label_address_syntax.check_config_key, "..a", ("must not start with '..'",)),
        (name_label_address_syntax.check_config_key, ".dockerconfigjson", ()),
        (name_label_address_syntax.check_variable_name, "any thing", ()),
        (name_label_address_syntax.check_variable_name, "a=b", None),
        (name_label_address_syntax.check_path_segment, "system:admin", ()),
        (name_label_address_syntax.check_path_segment, "a/b", ("may not contain '/'",)),
        (name_label_address_syntax.check_port_name, "http", ()),
        (name_label_address_syntax.check_port_name, "8080", ("must contain at least one letter (a-z)",)),
        (name_label_address_syntax.check_port_name, "a--b", ("must not contain consecutive hyphens",)),
        (name_label_address_syntax.check_percent, "25%", ()),
        (name_label_address_syntax.check_percent, "25", None),
        (name_label_address_syntax.check_ip_address, "010.0.0.1", ()),
        (name_label_address_syntax.check_ip_address, "fe80::1", ()),
        (name_label_address_syntax.check_ip_address, "1.2.3", (name_label_address_syntax.IP_ERROR,)),
        (name_label_address_syntax.check_cidr, "10.0.0.0/8", ()),
        (name_label_address_syntax.check_cidr, "10.0.0.0", (name_label_address_syntax.CIDR_ERROR,)),
        (name_label_address_syntax.check_wildcard_subdomain, "*.example.com", ()),
        (name_label_address_syntax.check_wildcard_subdomain, "*", None),
    ],
)
def test_syntax_check_returns_the_expected_errors(
    grammar: name_label_address_syntax.SyntaxCheck, value: str, complaints: tuple[str, ...] | None
) -> None:
    problems = grammar(value)
    assert problems == complaints if complaints is not None else problems


def test_name_prefix_may_end_with_a_dash() -> None:
    assert name_label_address_syntax.check_generate_name(name_label_address_syntax.check_dns_label, "job-") == ()
    assert name_label_address_syntax.check_generate_name(name_label_address_syntax.check_dns_label, "-") == (LABEL,)


@pytest.mark.parametrize(("number", "fine"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_port_number_is_between_1_and_65535(number: int, fine: bool) -> None:
    assert (name_label_address_syntax.check_port_number(number) == ()) == fine
