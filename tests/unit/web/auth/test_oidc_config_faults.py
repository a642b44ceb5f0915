"""Any text of `oidc.config` yields a provider or an error that says what is wrong, without its secrets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.objects import dump_yaml
from argosy.web.auth.oidc_provider_settings import SETTING_LOCATION, list_referenced_secrets, read_provider
from support.examples import examples

USABLE = "issuer: https://login.example.com\nclientID: argosy\n"
WITH_USER_INFO = f"{USABLE}enableUserInfoGroups: true\nuserInfoPath: /userinfo\n"
FIELDS = (
    "issuer", "clientID", "name", "clientSecret", "requestedScopes", "allowedAudiences", "rootCA",
    "requestedIDTokenClaims", "enableUserInfoGroups", "userInfoPath", "userInfoBaseURL", "userInfoCacheExpiration",
)  # fmt: skip
ADDRESSES = st.one_of(
    st.just("https://login.example.com"),
    st.text(alphabet="[]@?#%.x1:/\u2100\n ", max_size=4).map(lambda text: f"https://{text}"),
    st.text(max_size=12).map(lambda text: f"https://{text}"),
)
VALUES = st.one_of(
    ADDRESSES,
    st.booleans(),
    st.none(),
    st.integers(),
    st.text(max_size=8),
    st.sampled_from(["5m", "1h", "9" * 400 + "h", "/me", "$key", "$name:key", "$", "$:"]),
    st.lists(st.text(max_size=4), max_size=3),
    st.dictionaries(st.text(max_size=4), st.none() | st.dictionaries(st.text(max_size=3), st.booleans(), max_size=2)),
)


def _check(text: str, secret: str | None) -> None:
    provider, fault = read_provider({"oidc.config": text}, lambda _: secret)
    assert (provider is None) or fault == ""
    assert fault == "" or fault.startswith(SETTING_LOCATION)
    assert isinstance(list_referenced_secrets({"oidc.config": text}), frozenset)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=60), st.none() | st.text(max_size=12))
def test_any_text_yields_a_provider_or_an_error(text: str, secret: str | None) -> None:
    _check(text, secret)
    _check(USABLE + text, secret)


@settings(max_examples=examples(600), deadline=None)
@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
    ADDRESSES,
    st.none() | ADDRESSES,
    st.none() | ADDRESSES | st.text(max_size=12),
)
def test_any_field_values_yield_a_provider_or_an_error(
    changes: dict[str, Any], issuer: str, user_info: str | None, secret: str | None
) -> None:
    usual: dict[str, Any] = {"issuer": issuer, "clientID": "argosy"}
    if user_info is not None:
        usual |= {"enableUserInfoGroups": True, "userInfoPath": "/me", "userInfoBaseURL": user_info}
    _check(dump_yaml(usual | changes), secret)


@pytest.mark.parametrize(("text", "sentence"), [
    ("issuer: https://[idp\nclientID: argosy", "issuer must begin with https://"),
    ("issuer: https://idp:x\nclientID: argosy", "issuer must begin with https://"),
    ("issuer: https://idp:99999\nclientID: argosy", "issuer must begin with https://"),
    ("issuer: https://a\u2100b\nclientID: argosy", "issuer must begin with https://"),
    (f"{WITH_USER_INFO}userInfoBaseURL: https://[x", "the userinfo address must begin with https://"),
    (f"{WITH_USER_INFO}userInfoBaseURL: https://x:99999", "the userinfo address must begin with https://"),
])  # fmt: skip
def test_invalid_address_is_reported(text: str, sentence: str) -> None:
    provider, fault = read_provider({"oidc.config": text}, {}.get)
    assert provider is None
    assert fault.startswith(f"{SETTING_LOCATION}: {sentence}")


@pytest.mark.parametrize("line", [
    "clientSecret: *sup3rsecret", "clientSecret: !sup3rsecret x", "clientSecret: !<tag:sup3rsecret> x",
    "clientSecret: &sup3rsecret", "clientSecret: &sup3rsecret *sup3rsecret", "clientSecret: %sup3rsecret",
    "clientSecret: @sup3rsecret", "clientSecret: 'sup3rsecret", "? {sup3rsecret: 1}\n: 2",
    "sup3rsecret: 1\nsup3rsecret: 2",
    "clientSecret: !!int sup3rsecret", "clientSecret: {{ sup3rsecret }}", "clientSecret: [sup3rsecret",
    "<<: sup3rsecret",
    "clientSecret:\t*sup3rsecret", "clientSecret: !!float sup3rsecret", "clientSecret: [*sup3rsecret]",
])  # fmt: skip
def test_secret_in_invalid_yaml_is_not_quoted(line: str) -> None:
    _, fault = read_provider({"oidc.config": USABLE + line}, {}.get)
    assert "sup3rsecret" not in fault


def test_invalid_yaml_error_names_the_line() -> None:
    _, fault = read_provider({"oidc.config": f"{USABLE}clientSecret: *sup3rsecret\n"}, {}.get)
    assert fault == f"{SETTING_LOCATION}:3: is not valid YAML; correct this line"
