"""Fuzz notification expressions, templates and settings: each input gives a value or an error, never a crash."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from argosy.features.notifications.default_templates import load_bundled_entries
from argosy.features.notifications.settings import (
    NotificationSettings,
    list_used_variables,
    read_settings,
    uses_notebook_jobs,
)
from argosy.features.notifications.subscriptions import NotificationDestination, list_destinations
from argosy.kube.objects import read_yaml
from argosy.languages.expr import builtins, compile_expression
from argosy.languages.go_templates import compile_template
from argosy.languages.go_templates.compiled_nodes import FUNCTIONS
from argosy.languages.go_templates.lexer import TemplateToken
from argosy.languages.notification_functions import build_function_namespaces
from support.fuzzer import Found, feed, made_up, mutated

pytestmark = pytest.mark.tier("test", "prove")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APP = {
    "metadata": {"name": "wine", "labels": {"b": "1"}, "generation": 3},
    "status": {"at": "2026-01-01T00:00:00Z", "n": 2.5, "ok": True, "null": None, "list": [1, "a", None, {"k": [2]}]},
}
EXPRESSIONS = [
    "app.status.n > 2 and app.metadata.name in ['wine', 'beer']",
    "time.Now().Sub(time.Parse(app.status.at)).Minutes() >= 5",
    "let s = app.status.list; filter(s, {# != nil}) | map(string(#)) | join(', ')",
    "app.status?.nothing?.here ?? (app.status.ok ? 'a' + 'b' : {a: 1, \"b\": [1, 2][0:1]})",
    "reduce(1..10, #acc + # * 2 ** 3 % 4) / -1.5e3",
    "'abc' matches '^a' && not ('x' contains 'y') || 'a' startsWith \"b\"",
    "sortBy(app.status.list, string(#), 'desc') == groupBy(1..3, # % 2)",
]
TEMPLATES = [
    '{{if eq .app.metadata.name "wine"}}{{.app.status.n | printf "%5.2f"}}{{else}}no{{end}}',
    "{{range $k, $v := .app.metadata.labels}}{{$k}}={{$v}};{{else}}-{{end}}",
    "{{- with $x := .app.status.list}}{{index $x 1}}{{len $x}}{{end -}}",
    '{{define "T"}}<{{.}}>{{end}}{{template "T" .app}}{{block "B" .}}{{end}}',
    '{{(call .time.Parse .app.status.at).Add 5}} {{now | date "2006-01-02"}}',
    '{{$a := dict "k" (list 1 2)}}{{$_ := set $a "d" 3}}{{toJson $a}}{{range until 3}}{{break}}{{end}}',
    '{{regexReplaceAll "a(b)" "xab" "${1}"}}{{/* c */}}{{`raw`}}{{\'c\'}}',
]
WORDS = [
    "app", ".", "?.", "[", "]", "(", ")", "{", "}", "{{", "}}", "{{-", "-}}", "|", ",", ":=", "=", "==", "!=",
    "<", ">=", " ", "\n", "'", '"', "`", "\\", "#", "$", "$x", "0", "1", "-1", "1.5", "1e308",
    "9223372036854775807", "0x1F", "nil", "true", "not ", " in ", " and ", " or ", "..", "**", "%", "/",
    "let a = 1; ", "else", "end", "if ", "range ", "with ", "define ", "template ", "break", "é", "\u2028",
    "\x00", "💩", "a(b)*", "%s", "%d", "%v", "%*d", "2006-01-02", "app.status.list", "app.status.null",
    "app.metadata", "time.Now()", "time.Hour", "1..100000",
]  # fmt: skip
NAMES = [*builtins.PLAIN_FUNCTIONS, *builtins.PREDICATE_FUNCTIONS, *FUNCTIONS]


def texts(rng: random.Random, good: list[str], count: int) -> Iterator[bytes]:
    for _ in range(count):
        text = rng.choice(good)
        for _ in range(rng.choice((1, 1, 2, 4, 8))):
            at = rng.randrange(len(text) + 1)
            end = min(len(text), at + rng.choice((0, 0, 1, 3, 10)))
            word = rng.choice(NAMES) + rng.choice(("(", " ", "")) if rng.random() < 0.4 else rng.choice(WORDS)
            if rng.random() < 0.2:
                other = rng.choice(good)
                word = other[rng.randrange(len(other)) :][:40]
            text = text[:at] + word + text[end:]
        yield text[:3000].encode("utf-8", "replace")


def calls(rng: random.Random, count: int) -> Iterator[bytes]:
    """Yield templates that call any function with arbitrary values."""
    values = [
        "0", "-1", "3", "1.5", '"a"', '"(a)"', '""', "(list 1 2)", '(dict "a" 1)', ".app", ".app.status.list",
        "nil", "now", "true", ".app.status.at", '"1h30m"', "99999999", '"%d%s"', "(list)", '"2006-01-02"',
    ]  # fmt: skip
    for _ in range(count):
        arguments = " ".join(rng.choices(values, k=rng.randrange(5)))
        yield f"{{{{ {rng.choice([*FUNCTIONS])} {arguments} }}}}".encode()


def check_expressions(rng: random.Random, count: int) -> None:
    values = {"app": APP, **build_function_namespaces(NOW)}

    def take(data: bytes) -> None:
        compile_expression(data.decode("utf-8", "replace")).evaluate(values, steps=20_000)

    refused = feed(texts(rng, EXPRESSIONS, count), take)
    assert refused < count, "nothing was understood"


def check_templates(rng: random.Random, count: int) -> None:
    def take(data: bytes) -> None:
        values = {"app": copy.deepcopy(APP), **build_function_namespaces(NOW)}
        text = compile_template(data.decode("utf-8", "replace")).render(values, now=NOW, steps=20_000)
        assert len(text) <= 1 << 20

    refused = feed(texts(rng, TEMPLATES, count), take)
    assert refused < count, "nothing was understood"
    refused = feed(calls(rng, count), take)
    assert refused < count, "no function was understood"


def test_malformed_expressions_evaluate_or_are_rejected(rng: random.Random, size: Callable[[int], int]) -> None:
    check_expressions(rng, size(100_000))


def test_malformed_templates_render_or_are_rejected(rng: random.Random, size: Callable[..., int]) -> None:
    check_templates(rng, size(100_000, test=500))


OTHERS = {
    "subscriptions": "- {recipients: ['slack:a', b], triggers: [on-drift], selector: 'team in (a, b),c!=d'}",
    "defaultTriggers": "[on-drift]",
    "defaultTriggers.slack": "[on-deployed]",
    "context": "argocdUrl: https://argocd",
    "service.slack": "token: $slack-token\nchannels: [a]",
    "service.webhook.a": "url: https://x/$path\nheaders: [{name: A, value: $b}]",
}


def check_settings(rng: random.Random, count: int) -> None:
    entries = {**load_bundled_entries(), **OTHERS}
    good = [entry.encode() for entry in entries.values()]

    def take(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        key = rng.choice([*entries, f"{rng.choice(('trigger', 'service', 'template'))}.{text[:10]}"])
        settings = read_settings({"data": {key: text}}, None)
        prefix = "notifications.argoproj.io"
        marks = {f"{prefix}/subscriptions": text, f"{prefix}/subscribe.{text[:20]}": text}
        list_destinations({"metadata": {"annotations": marks, "labels": {"team": "a"}}}, settings)
        for conditions in settings.triggers.values():
            uses_notebook_jobs(conditions)
            list_used_variables(conditions)

    texts = (made_up(rng) if rng.random() < 0.1 else mutated(rng, rng.choice(good), good) for _ in range(count))
    assert feed(texts, take) == 0


def test_malformed_settings_and_subscriptions_never_raise(rng: random.Random, size: Callable[..., int]) -> None:
    check_settings(rng, size(10_000, test=50))


def trust_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.languages.expr.compiled_nodes.compile_pattern", re.compile)


def trust_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def string_of(token: TemplateToken) -> str:
        return str(json.loads(f'"{token.value[1:-1]}"'))

    monkeypatch.setattr("argosy.languages.go_templates.parser.unquote_string", string_of)


def trust_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_yaml(text: str, settings: NotificationSettings) -> Iterator[tuple[str, NotificationDestination]]:
        for entry in read_yaml(text):
            yield entry["trigger"], NotificationDestination(entry["service"], entry["recipient"])

    monkeypatch.setattr("argosy.features.notifications.subscriptions._read_yaml_subscriptions", from_yaml)


@pytest.mark.parametrize(
    ("seed_bug", "check", "finding"),
    [
        (trust_patterns, check_expressions, r"^(error|PatternError): .* at position \d+"),
        (trust_escapes, check_templates, "^JSONDecodeError: "),
        (trust_annotations, check_settings, "^(TypeError|KeyError): "),
    ],
)
def test_fuzzer_detects_seeded_parser_bugs(
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    seed_bug: Callable[..., None],
    check: Callable[[random.Random, int], None],
    finding: str,
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(Found, match=finding):
        check(rng, 20_000)
