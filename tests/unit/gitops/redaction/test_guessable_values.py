"""Whether a credential is guessable depends on its value, whatever its encoding."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks
from argosy.observability.redaction.guessable_values import find_guessable_forms
from argosy.observability.redaction.secret_encodings import iter_forms
from support.page_site import CONTROL, StillLookout

TOKEN = "Zx81kQpLm03vBn7RtYw9Ec"
MARK = "++++++++"
HERE = "https://kubernetes.default.svc"


def secret(value: str, name: str = "own") -> dict[str, Any]:
    data = {"password": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": CONTROL}, "data": data}


def masked(text: str, *secrets: dict[str, Any]) -> str:
    spec = {"project": "ml", "destination": {"server": HERE, "namespace": "web"}}
    metadata = {"name": "shop", "namespace": CONTROL}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
    lookout = StillLookout((app, *secrets))
    return (
        ApplicationMasks(build_mask(lookout, CONTROL), lookout.cache, CONTROL)
        .get_mask_for_application("shop")
        .mask_text(text)
    )


@pytest.mark.parametrize("length", [20, 21, 22])
@pytest.mark.parametrize("user", ["", "u", "us", "bot", "octo-bot"])
def test_random_token_is_masked_in_a_basic_auth_header(user: str, length: int) -> None:
    token = TOKEN[:length]
    encoded = base64.b64encode(f"{user}:{token}".encode()).decode()
    assert MARK in masked(f"Authorization: Basic {encoded}", secret(token))


@pytest.mark.parametrize("length", [20, 21, 22, 24])
def test_every_form_of_a_random_token_is_masked(length: int) -> None:
    token = TOKEN.ljust(length, "7")[:length]
    forms = [form.decode() for form in iter_forms(token)]
    assert [form for form in forms if masked(f"x {form} y", secret(token)) != f"x {MARK} y"] == []


@pytest.mark.parametrize("value", ["hunter22x", "correct horse battery staple", "hunter22x~~??>>", "a1" * 20])
def test_no_form_of_a_guessable_value_is_masked(value: str) -> None:
    forms = [form.decode() for form in iter_forms(value)]
    assert [form for form in forms if MARK in masked(f"x {form} y", secret(value))] == []


def test_guessability_of_a_base64_credential_depends_on_its_decoded_value() -> None:
    short = base64.b64encode(b"bot:hunter22x-ab").decode()
    for spelling in (short, short.rstrip("=")):
        assert masked(f"x {spelling} y", secret(spelling)) == f"x {spelling} y"
    assert masked(f"x {TOKEN} y", secret(TOKEN), secret(short, "other")) == f"x {MARK} y"


def test_guessable_forms_are_not_in_the_repr() -> None:
    forms = find_guessable_forms(secret("hunter22x"))
    assert b"hunter22x" in forms and "hunter" not in repr(forms)


def test_private_key_body_is_masked_but_not_its_header() -> None:
    line = base64.b64encode(bytes((number * 71 + 13) % 251 for number in range(1500))).decode()
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{line}\n-----END RSA PRIVATE KEY-----\n"
    assert masked("-----BEGIN RSA PRIVATE KEY-----\nother", secret(key)) == "-----BEGIN RSA PRIVATE KEY-----\nother"
    assert line not in masked(key, secret(key))
