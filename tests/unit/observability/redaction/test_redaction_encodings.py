"""Secret values are found in every encoding, and no secret value breaks or masks public text."""

from __future__ import annotations

import base64
import html
import json
import secrets
import string
import tracemalloc
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.observability.redaction.secret_mask import SecretMask
from support.counted_calls import calls_of
from support.examples import examples
from support.page_site import StillLookout

MARK = "++++++++"
APP = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "shop", "namespace": "argocd"},
    "spec": {"source": {"repoURL": "https://git.example.com/team/shop", "path": "deploy"}},
}


def secret(name: str = "s", kind: str = "Opaque", **values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": name, "namespace": "n", "resourceVersion": secrets.token_hex(4)}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data}


def mask(*values: str) -> SecretMask:
    return build_mask(StillLookout([APP, *(secret(f"s{number}", v=value) for number, value in enumerate(values))]))


def test_names_of_kinds_and_containers_are_public() -> None:
    spec = {"initContainers": [{"name": "storage-initializer"}], "containers": [{"name": "postgresql"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "namespace": "n"}, "spec": spec}
    route = {"apiVersion": "route.openshift.io/v1", "kind": "RouteOfAKind", "metadata": {"name": "r", "namespace": "n"}}
    values = ["postgresql", "storage-initializer", "RouteOfAKind", "of-nobody-0f5d4c"]
    lookout = StillLookout([APP, pod, route, *(secret(f"s{number}", v=value) for number, value in enumerate(values))])
    text = " ".join(values).encode()
    assert build_mask(lookout).mask_text_bytes(text).decode() == f"postgresql storage-initializer RouteOfAKind {MARK}"


BREAKING = [
    '"metadata":', '"items":', '":[{"', '"},{"', "<!doctype html>", "</body>", '<li class="', "https://", '="/static/',
    "argoproj.io/v1alpha1", "https://kubernetes.default.svc", "https://git.example.com/", "\\u0022\\u0022",
]  # fmt: skip


@pytest.mark.parametrize("value", BREAKING)
def test_secret_value_does_not_break_public_documents(value: str) -> None:
    hidden = mask(value)
    document = {"apiVersion": "v1", "metadata": {"name": "a"}, "items": [{"a": 1}, APP], "server": BREAKING[10]}
    assert json.loads(hidden.mask_json(json.dumps(document).encode())) == document
    tags = '<!doctype html><body class="a"><ul><li class="b">x</li></ul><link href="/static/a.css"></body>'
    assert hidden.mask_html(tags.encode()).decode() == tags
    event = b'event: patch\ndata: {"parts":{"a":"<li class=\\"b\\">x</li>"},"at":"1"}\n\n'
    assert hidden.mask_chunk(event) == event


@given(st.text(min_size=8, max_size=24), st.text(max_size=8), st.text(max_size=8))
@settings(max_examples=examples(150), deadline=None)
def test_masked_json_stays_valid_with_the_same_structure(value: str, before: str, after: str) -> None:
    document = {"a": [f"{before}{value}{after}", {f"{value}": before}], "b": after}
    masked = mask(value).mask_json(json.dumps(document, ensure_ascii=False).encode())
    parsed = json.loads(masked)
    assert set(parsed) == {"a", "b"}
    assert len(parsed["a"]) == 2


ODD = [
    'pa"ss<w>ord\\123', "with 'one' and \"two\"", "a&b;c=d&e<f>gh", "tab\tand\nline 22", "schlüssel-ß-€uro",
    "päss wörd/+?=", "!@#$%^&*()", "back\\slash\\\\es", "it''s/quoted", "emoji-\U0001f511-key", "{{ 7 * 7 }}",
    "percent%20%2Fpercent",
]  # fmt: skip


def in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def in_go(text: str) -> str:
    return in_json(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def in_html(text: str) -> str:
    return f"<td>{html.escape(text)}</td>"


HOW: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": in_json,
    "ASCII": json.dumps,
    "Go": in_go,
    "JSON in JSON": lambda text: in_json(in_json(text)),
    "JSON of Go in JSON": lambda text: in_json(in_go(text)),
    "HTML": in_html,
    "HTML in JSON": lambda text: in_json(in_html(text)),
    "JSON in HTML": lambda text: in_html(in_json(text)),
    "JSON in JSON in HTML": lambda text: in_html(in_json(in_json(text))),
    "YAML": lambda text: "'" + text.replace("'", "''") + "'",
    "an address": lambda text: f"https://u:{quote(text, safe='')}@h/",
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "url-safe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 further on": lambda text: base64.b64encode(b"u:" + text.encode() + b"xyz").decode(),
    "hexadecimal": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("value", ODD)
def test_value_is_masked_in_every_encoding(value: str, how: str) -> None:
    message = f"before {HOW[how](value)} after"
    masked = mask(value).mask_text(message)
    assert MARK in masked
    assert HOW[how](value).strip("'\"") not in masked


@pytest.mark.parametrize("value", ODD)
def test_value_is_masked_in_json_html_and_event_streams(value: str) -> None:
    hidden, inner = mask(value), json.dumps({"data": {"k": value}})
    masked = hidden.mask_json(json.dumps({"manifest": inner, "plain": value, value: 1}).encode())
    assert json.loads(masked)["plain"] == MARK
    assert value not in json.loads(masked)
    assert json.loads(json.loads(masked)["manifest"])["data"]["k"] == MARK
    piece = f'<p title="{html.escape(value)}">{html.escape(value)}</p>'
    assert hidden.mask_html(piece.encode()).decode() == f'<p title="{MARK}">{MARK}</p>'
    event = b"event: lines\ndata: " + json.dumps({"html": piece}).encode() + b"\n\n"
    assert json.loads(hidden.mask_chunk(event)[19:])["html"] == f'<p title="{MARK}">{MARK}</p>'
    line = json.dumps({"result": {"content": value}}).encode() + b"\n"
    assert json.loads(hidden.mask_chunk(line)) == {"result": {"content": MARK}}


FILES = {
    "DB_USER=ml\nDB_PASS=hunter22x\n": "hunter22x",
    'export TOKEN="tok-3n-of-it"\nX=1\n': "tok-3n-of-it",
    "[db]\npassword = hunter22x\n": "hunter22x",
    "db:\n  password: 'hunter22x'\n  port: 1\n": "hunter22x",
    '{"db": {"password": "hunter22x"}}': "hunter22x",
    '  [{"token": "hunter22x"}]': "hunter22x",
    "postgres://ml:hunter22x@db/prod": "hunter22x",
    "https://ghp-0123456789abcdef@git.example.com/a": "ghp-0123456789abcdef",
    "Server=db;Password=hunter22x;Port=1": "hunter22x",
    'password: "hunter22x",': "hunter22x",
}


@pytest.mark.parametrize("file", FILES)
def test_values_inside_a_file_in_a_secret_are_masked(file: str) -> None:
    assert mask(file).mask_text(f"it is {FILES[file]}.") == f"it is {MARK}."


LETTERS = string.ascii_letters + string.digits


@pytest.mark.parametrize("size", [1025, 5_000, 70_000])
def test_long_value_is_masked_to_its_end(size: int) -> None:
    value = "".join(secrets.choice(LETTERS) for _ in range(size))
    hidden = mask(value)
    assert hidden.mask_text(f"a {value} b") == f"a {MARK} b"
    encoded = base64.b64encode(value.encode()).decode()
    assert hidden.mask_text(f"a {encoded} b") == f"a {MARK} b"
    piece = value[-max(600, size // 200) :]
    assert hidden.mask_text(f"a {piece} b") == f"a {MARK} b"
    assert json.loads(hidden.mask_json(json.dumps({"a": value, "b": "c"}).encode())) == {"a": MARK, "b": "c"}


def test_password_in_a_url_is_masked_and_the_url_is_not() -> None:
    address = {"repoURL": "https://bot:pa55-of-app@git.example.com/a"}
    declared = secret("d", url="https://bot:pa55-of-repo@git.example.com/b")
    declared["metadata"]["labels"] = {"argocd.argoproj.io/secret-type": "repository"}
    hidden = build_mask(StillLookout([{**APP, "spec": {"source": address}}, declared]))
    message = "https://bot:pa55-of-app@git.example.com/a https://bot:pa55-of-repo@git.example.com/b"
    assert hidden.mask_text(message) == f"https://bot:{MARK}@git.example.com/a https://bot:{MARK}@git.example.com/b"


def test_separator_lines_and_short_values_are_not_masked() -> None:
    message = "-------- ======== 00000000 short ++++++++"
    assert mask(*message.split()).mask_text(message) == message


def release(number: int) -> dict[str, Any]:
    return secret(f"sh.helm.release.v1.r.v{number}", "helm.sh/release.v1", release=secrets.token_hex(32_000))


def test_helm_releases_need_little_memory_and_only_changed_ones_are_reread() -> None:
    lookout = StillLookout([release(number) for number in range(300)])
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    hidden = build_mask(lookout)
    cost = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert cost < 12 << 20, f"{cost / 2**20:.1f} MB for 300; 1,500 may cost 60"
    lookout.put(release(7))
    assert calls_of(hidden.mask_text, "an ordinary line") < 3_000  # reading all of them takes a hundred thousand
