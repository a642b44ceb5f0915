"""Which Secrets the texts of an Application may quote, and how request input is echoed."""

from __future__ import annotations

import base64
import html
import json
import string
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.redaction.application_secret_scope import build_scope
from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.observability.redaction.guessable_values import GuessableForms, is_guessable
from argosy.observability.redaction.secret_encodings import iter_forms
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin, SecretScope
from argosy.web.auth.caller import NOBODY
from argosy.web.request import QueryParameters
from argosy.web.request_input_echo import conceal_request
from support.examples import examples
from support.page_site import a_request, a_site

HERE = "https://kubernetes.default.svc"
COMMIT = "4c2e27100f5d4c0fb1c6a4f3b3f0f2a7b9d0c1e2"


def project(*destinations: tuple[str, str]) -> dict[str, Any]:
    entries = [{"server": server, "namespace": namespace} for server, namespace in destinations]
    return {"kind": "AppProject", "metadata": {"name": "ml"}, "spec": {"destinations": entries}}


def app(server: str = HERE, namespace: str = "web", *others: str) -> dict[str, Any]:
    source = {
        "repoURL": "https://bot:pa55-in-address@git.example.com/r", "path": "clusters/prod",
        "helm": {"parameters": [{"name": "auth.password", "value": "value-of-a-parameter"}]},
    }  # fmt: skip
    spec = {"project": "ml", "source": source, "destination": {"server": server, "namespace": namespace}}
    spec |= {"syncPolicy": {"syncOptions": ["ServerSideApply=true"]}}
    rows = [{"kind": "Secret", "namespace": other_namespace, "name": "s"} for other_namespace in others]
    status = {"resources": rows, "sync": {"revision": COMMIT}}
    return {"metadata": {"name": "web", "namespace": "argocd"}, "spec": spec, "status": status}


def test_scope_has_the_namespaces_that_the_project_permits() -> None:
    rules = project((HERE, "web"), (HERE, "jobs-*"), (HERE, "!jobs-secret"), ("https://east", "*"))
    scope = build_scope(app(HERE, "web", "jobs-a", "jobs-secret", "victim"), rules)
    assert (scope.project, scope.namespaces) == ("ml", {"web", "jobs-a"})
    assert build_scope(app(HERE, "victim"), rules).namespaces == set()
    assert build_scope(app("https://east", "victim"), rules).namespaces == set(), "that is another cluster's namespace"


def test_narrowed_or_invalid_project_keeps_delivered_namespaces_in_scope() -> None:
    narrowed = project((HERE, "elsewhere"))
    delivered = app(HERE, "web")
    delivered["status"]["resources"] = [{"kind": "Pod", "namespace": "web", "name": "p", "status": "Synced"}]
    assert build_scope(delivered, narrowed).namespaces == {"web"}
    assert build_scope(app(HERE, "web"), narrowed, is_delivered=lambda name: name == "web").namespaces == {"web"}
    assert build_scope(app(HERE, "web"), narrowed).namespaces == set(), "it never delivered there"
    broken = {"kind": "AppProject", "metadata": {"name": "ml"}, "spec": {"destinations": "web"}}
    assert build_scope(app(HERE, "web"), broken).namespaces == {"web"}


def test_namespaces_of_sync_results_are_in_scope() -> None:
    hooked = app(HERE, "web")
    row = {"kind": "Job", "namespace": "hooks", "name": "migrate", "status": "Synced", "hookPhase": "Failed"}
    hooked["status"]["operationState"] = {"syncResult": {"resources": [row]}}
    assert build_scope(hooked, None).namespaces == {"web", "hooks"}


def test_fields_that_carry_values_are_not_public() -> None:
    application = app()
    application["spec"]["source"] |= {
        "kustomize": {"patches": [{"patch": "value: in-a-patch"}], "commonLabels": {"a": "in-a-label"}},
        "plugin": {"name": "p", "parameters": [{"name": "a", "string": "in-a-text", "array": ["in-an-array"]},
                                               {"name": "b", "map": {"k": "in-a-map"}}]},
    }  # fmt: skip
    application["spec"]["syncPolicy"]["managedNamespaceMetadata"] = {"labels": {"a": "in-metadata"}}
    application["spec"]["unheard-of"] = "in-a-new-field"
    words = build_scope(application, None).words
    values = ("in-a-patch", "in-a-label", "in-a-text", "in-an-array", "in-a-map")
    assert [text for text in values if text in words] == []
    assert "in-metadata" not in words and "in-a-new-field" not in words


def test_project_credential_is_masked_in_installation_settings() -> None:
    origin = SecretOrigin("argocd", "ml", is_installation=True)
    assert SecretScope(has_guessable=True).covers(origin, b"hunter22x")
    assert SecretScope("other", frozenset({"argocd"})).covers(origin, b"hunter22x")
    assert not SecretScope("other", has_guessable=True).covers(origin, b"hunter22x")


@pytest.mark.parametrize("value", ["pin-123456", "hunter22x~~??>>", "correct horse battery staple", "schlüssel-ß"])
def test_every_form_of_a_guessable_value_is_guessable(value: str) -> None:
    assert [form for form in iter_forms(value) if not is_guessable(form)] == []


def test_commits_paths_options_and_names_are_public_but_values_are_not() -> None:
    words = build_scope(app(), None).words.split("\n")
    assert {COMMIT, "clusters/prod", "ServerSideApply=true", "auth.password", "web"} <= set(words)
    assert "value-of-a-parameter" not in words and "pa55-in-address" not in "\n".join(words)


def test_project_credential_is_in_scope_only_of_its_own_project() -> None:
    scope, token = build_scope(app(), None), b"ghp-Zx81kQpLm03vBn7RtYw"
    assert scope.covers(SecretOrigin("argocd", "ml", is_installation=True), token)
    assert not scope.covers(SecretOrigin("argocd", "other", is_installation=True), token)
    assert not scope.covers(SecretOrigin("other"), token)


def test_guessable_project_credential_is_not_masked_in_tenant_texts() -> None:
    scope = build_scope(app(), None)
    origin = SecretOrigin("argocd", "ml", is_installation=True, guessable=GuessableForms({b"hunter22x"}))
    assert not scope.covers(origin, b"hunter22x")
    assert replace(scope, has_guessable=True).covers(origin, b"hunter22x")
    assert scope.covers(SecretOrigin("argocd", "ml"), b"hunter22x"), "a password in an address of an Application"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hunter22x", True), ("pin-123456", True), ("correct horse battery staple", True), ("a1" * 20, True),
        ("tom & jerry's <pass>", True), ("cnry-468be58d0b16748a", False), ("ghp-Zx81kQpLm03vBn7RtYw", False),
    ],
)  # fmt: skip
def test_guessable_values_are_recognized_in_every_encoding(value: str, expected: bool) -> None:
    encoded = base64.b64encode(value.encode()).decode()
    for form in (value, encoded, value.encode().hex(), html.escape(value), quote(value, safe="")):
        assert is_guessable(form.encode()) is expected, form


def in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


TEXT = st.text(alphabet=string.ascii_letters + string.digits + " -_./:&<>\"'%+äß€", max_size=12)
VALUE = st.text(alphabet=string.ascii_letters + string.digits + "-_./&<>\"'%+äß", min_size=8, max_size=24)


@given(VALUE.filter(lambda text: len(set(text)) >= 4 and text == text.strip()), TEXT, TEXT, st.integers(0, 2))
@settings(max_examples=examples(150), deadline=None)
def test_secret_in_a_request_gets_a_stand_in_and_is_echoed_as_sent(
    value: str, before: str, after: str, encodings: int
) -> None:
    mask = SecretMask(lambda: [{"stringData": {"v": value}}], PublicWords())
    for _ in range(encodings):
        value = quote(value, safe="")
    sent = f"{before}{value}{after}"
    request = a_request(a_site(), "GET", "/apps", {"name": sent}, QueryParameters([("q", sent)]), {}, NOBODY)
    concealed, echo = conceal_request(request, mask.find_values)
    stand_in = concealed.query["q"]
    assert (
        len(stand_in) == len(sent)
        and mask.find_values(stand_in.encode()) == []
        and concealed.path_parameters["name"] == stand_in
    )
    for form in (str, html.escape, in_json, lambda text: quote(text, safe="")):
        assert echo.restore(form(stand_in).encode()).decode() == form(sent)


def test_request_without_a_secret_is_unchanged() -> None:
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", "an ordinary word")]), {}, NOBODY)
    concealed, echo = conceal_request(
        request, SecretMask(lambda: [{"stringData": {"v": "hunter22x"}}], PublicWords()).find_values
    )
    assert concealed is request and not echo
