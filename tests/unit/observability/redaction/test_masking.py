"""Secret values are masked, whatever the shape of the Secret and wherever the values appear."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.annotations import LAST_APPLIED
from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.gitops.redaction.secret_object_redaction import redact_secrets, serialize_masked
from argosy.observability.redaction.secret_mask import LogMaskFilter, SecretMask
from support.counted_calls import calls_of
from support.page_site import StillLookout

CANARY = "c4n4ry-VALUE/0123"


def secret(value: str = CANARY, **more: Any) -> dict[str, Any]:
    data = {"password": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": data, **more}


def mask(*secrets: dict[str, Any], public: frozenset[str] = frozenset()) -> SecretMask:
    for number, manifest in enumerate(secrets):
        manifest["metadata"] = {**manifest["metadata"], "name": f"{manifest['metadata']['name']}-{number}"}
    return SecretMask(lambda: secrets, PublicWords(public))


def forms(value: str) -> list[str]:
    return [value, base64.b64encode(value.encode()).decode()]


def is_clean(data: bytes) -> bool:
    return not any(form.encode() in data for form in forms(CANARY))


APPLIED = json.dumps(secret())
DOCUMENTS = [
    secret(),
    secret(stringData={"token": CANARY}),
    {"items": [{"deep": [secret()]}]},
    {"liveState": json.dumps(secret())},
    {"manifests": [json.dumps({"kind": "List", "items": [secret()]})]},
    {"sync": {"manifests": [json.dumps(secret())[:-1]]}},
    {"sync": {"manifests": [f"kind: Secret\ndata: {{password: {forms(CANARY)[1]}}}"]}},
    {"sync": {"manifests": ["\r\n" + json.dumps(secret())]}},
    {"twice": json.dumps({"inner": json.dumps(secret())})},
    secret(metadata={"name": "s", "annotations": {LAST_APPLIED: APPLIED}}, data={}),
    secret(metadata={"name": "s", "annotations": {LAST_APPLIED: APPLIED[:-9]}}, data={}),
    {"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED: APPLIED}}},
    {"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED: APPLIED[:-9]}}},
    {"kind": "SecretList", "items": [{"metadata": {"name": "s"}, "data": secret()["data"]}]},
    secret(data=CANARY),
    secret(data=[CANARY]),
    secret(data={"a": {"nested": CANARY}, "b": [CANARY], "c": None, "d": 7}),
    {**secret(), "apiVersion": "v2"},
    {"kind": "Secret", "data": {"a": CANARY}},
    {"kind": "ConfigMap", "stringData": {"a": CANARY}},
    {"object": json.dumps(secret()).replace("Secret", "\\u0053ecret")},
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_secret_is_masked_by_its_structure_alone(document: Any) -> None:
    assert is_clean(serialize_masked(document))


def test_document_without_secrets_is_returned_as_is() -> None:
    document = {"items": [{"kind": "ConfigMap", "data": {"a": "b"}}], "n": 1.5, "t": ("x", None)}
    assert redact_secrets(document) is document


def test_secret_values_are_replaced_by_the_mask() -> None:
    assert b'"password":"++++++++"' in serialize_masked(secret())


def test_configured_annotations_are_masked_on_secrets() -> None:
    noted = secret(metadata={"name": "s", "annotations": {"mine": CANARY, "yours": "seen"}})
    masked = serialize_masked(noted, ["mine"])
    assert is_clean(masked)
    assert b"seen" in masked


SHOWN = [
    f"<td>{CANARY}</td>",
    f"url=https://x/?t={base64.b64encode(CANARY.encode()).decode()}&x",
    "wrapped " + base64.b64encode(b"user:" + CANARY.encode() + b"@").decode(),
    "wrapped " + base64.b64encode(b"users:" + CANARY.encode()).decode(),
    "wrapped " + base64.b64encode(CANARY.encode() + b"!!").decode(),
    "https%3A//x/" + CANARY.replace("/", "%2F"),
]


@pytest.mark.parametrize("shown", SHOWN)
def test_known_value_is_masked_in_any_text(shown: str) -> None:
    masked = mask(secret()).mask_text_bytes(shown.encode())
    assert b"++++++++" in masked
    assert CANARY[:9].encode() not in masked


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_known_value_is_masked_at_every_position(before: bytes, after: bytes) -> None:
    assert CANARY.encode() not in mask(secret()).mask_text_bytes(before + CANARY.encode() + after)


ODD = ['with "quotes" & <tags>', "läßt \\ sich\tnicht", "line one of it 1\nline two of it 22"]


@pytest.mark.parametrize("value", ODD)
def test_value_is_masked_in_json_html_and_indented_text(value: str) -> None:
    import html

    hidden = mask(secret(value))
    for form in (json.dumps(value, ensure_ascii=False), html.escape(value), value.replace("\n", "\n    ")):
        assert b"++++++++" in hidden.mask_text_bytes(form.encode())
        assert value.splitlines()[-1].encode() not in hidden.mask_text_bytes(form.encode())


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "\n".join(f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmU{n:03}" for n in range(9))


def test_every_line_of_a_private_key_is_masked_if_indented() -> None:
    masked = mask(secret(KEY)).mask_text_bytes(KEY.replace("\n", "\n      ").encode())
    assert b"b3Blbn" not in masked
    assert b"-----BEGIN" in masked


def declared(kind: str, **fields: str) -> dict[str, Any]:
    data = {name: base64.b64encode(value.encode()).decode() for name, value in fields.items()}
    labels = {"argocd.argoproj.io/secret-type": kind}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "d", "labels": labels}, "data": data}


def test_urls_and_names_of_repositories_and_clusters_stay_readable() -> None:
    repository = declared("repository", url="https://git.example.com/a", username="deploy-bot", password=CANARY)
    config = json.dumps({"bearerToken": CANARY + "-2", "tlsClientConfig": {"serverName": "kube.example.com"}})
    cluster = declared("cluster", server="https://kube.example.com", name="production", config=config)
    text = f"https://git.example.com/a deploy-bot {CANARY} https://kube.example.com production {CANARY}-2"
    masked = mask(repository, cluster).mask_text(text)
    assert masked == "https://git.example.com/a deploy-bot ++++++++ https://kube.example.com production ++++++++"


def test_short_and_public_words_are_not_masked() -> None:
    hidden = mask(secret("short"), secret("staging-east"), public=frozenset(["staging-east"]))
    assert hidden.mask_text("short staging-east") == "short staging-east"


@pytest.mark.parametrize("word", ["OutOfSync", "Progressing", "resourceVersion", "applications"])
def test_secret_value_that_is_a_word_of_the_ui_is_not_masked(word: str) -> None:
    assert mask(secret(word)).mask_text(f"it is {word}") == f"it is {word}"


def test_object_names_are_not_masked() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "postgres-primary", "namespace": "bases"}}
    host = secret("postgres-primary", metadata={"name": "host", "namespace": "bases"})
    hidden = build_mask(StillLookout([service, host, secret("a-password-of-it")]))
    assert hidden.mask_text("postgres-primary a-password-of-it") == "postgres-primary ++++++++"


def test_mask_follows_added_and_replaced_secrets() -> None:
    lookout = StillLookout()
    hidden = build_mask(lookout)
    assert hidden.mask_text(CANARY) == CANARY
    lookout.put(secret())
    assert hidden.mask_text(CANARY) == "++++++++"
    lookout.put(secret("another-value-of-it"))
    assert hidden.mask_text(f"{CANARY} another-value-of-it") == f"{CANARY} ++++++++"


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("field", ["data", "stringData"])
def test_values_of_secrets_that_an_operation_carries_are_masked(field: str, is_over: bool) -> None:
    value = forms(CANARY)[field == "data"]
    carried = [
        {"kind": "List", "items": [{"kind": "Secret", "metadata": {"name": "s"}, field: {"password": value}}]},
        {"kind": "SecretList", "items": [{"metadata": {"name": "t"}, field: {"password": value + "=="}}]},
        {"kind": "ConfigMap", "data": {"note": "Secret of nobody"}},
    ]
    operation = {"sync": {"manifests": [*map(json.dumps, carried), '{"kind": "Secret"', 7]}}
    fields = {"status": {"operationState": {"operation": operation}}} if is_over else {"operation": operation}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a", "namespace": "n"}}
    lookout = StillLookout()
    hidden = build_mask(lookout)
    lookout.put({**app, **fields})
    for form in forms(CANARY):
        assert form not in hidden.mask_text(f"value {form}")
    assert hidden.mask_text("Secret of nobody") == "Secret of nobody"
    lookout.put(app)
    assert CANARY not in hidden.mask_text(CANARY)  # it may still be in a text of that time


def test_masking_a_page_searches_for_all_secrets_at_once() -> None:
    hidden = mask(*(secret(f"value-{number:04}-of-many-secrets") for number in range(200)))
    page = b"<tr><td>an ordinary line of a page</td></tr>\n" * 1400
    hidden.mask_text_bytes(page)
    assert calls_of(hidden.mask_text_bytes, page) < 100  # one search for all secrets, not one for each


def test_log_lines_contain_no_known_value() -> None:
    out = io.StringIO()
    channel = logging.StreamHandler(out)
    channel.addFilter(LogMaskFilter(mask(secret())))
    log = logging.getLogger("argosy.tests.masking")
    log.addHandler(channel)
    try:
        log.warning("it is %s", CANARY)
        try:
            raise ValueError(CANARY)
        except ValueError:
            log.exception("with %d of them", 1)
    finally:
        log.removeHandler(channel)
    assert CANARY not in out.getvalue()
    assert "with 1 of them" in out.getvalue()


def pem(kind: str, seed: str) -> str:
    content = base64.encodebytes(b"".join(hashlib.sha256(f"{seed}{i}".encode()).digest() for i in range(40))).decode()
    return f"-----BEGIN {kind}-----\n{content}-----END {kind}-----\n"


@pytest.mark.parametrize("kind", ["CERTIFICATE", "PRIVATE KEY"])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_pem_is_masked_and_other_pem_with_the_same_first_and_last_line_is_not(kind: str, ending: str) -> None:
    own, other = pem(kind, "own").strip() + ending, pem(kind, "other").strip() + ending
    masked = mask(secret(own))
    for form in forms(other):
        assert masked.mask_text_bytes(json.dumps({"data": form}).encode()) == json.dumps({"data": form}).encode()
    for form in forms(own):
        text = masked.mask_text_bytes(json.dumps({"data": f"<{form}>"}).encode()).decode()
        lines = own.split("\n")[1:-2]
        assert not any(line in text for line in lines)
        assert not any(base64.b64encode(own.encode()).decode()[i : i + 40] in text for i in range(40, 1000, 100))
