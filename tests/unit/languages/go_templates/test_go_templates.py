"""Notification templates: rendered text, errors and limits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from argosy.errors import LimitError, UserError
from argosy.languages.go_templates import TemplateError, compile_template
from argosy.languages.notification_functions import build_function_namespaces

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
APP = {
    "metadata": {"name": "wine", "labels": {"b": "1", "a": "2"}},
    "spec": {"sources": [{"repoURL": "one"}, {"repoURL": "two"}]},
    "status": {
        "sync": {"status": "Synced", "revision": "abcdef0"},
        "operationState": {"startedAt": "2026-01-01T00:00:00Z"},
        "conditions": [{"type": "SyncError", "message": "no"}],
    },
}
VALUES = {
    "app": APP,
    "serviceType": "slack",
    "context": {"argocdUrl": "https://argocd"},
    **build_function_namespaces(NOW),
}

MADE = [
    ("Application {{.app.metadata.name}} is {{ .app.status.sync.status }}.", "Application wine is Synced."),
    ('{{if eq .serviceType "slack"}}:ok:{{end}} done', ":ok: done"),
    (
        '{{- if .app.spec.source }} "R" {{- else if .app.spec.sources }} "{{- range $index, $source := '
        '.app.spec.sources }}{{ if $index }}\\n{{ end }}:up: {{ $source.repoURL }}{{- end }}" {{- end }},',
        ' ":up: one\\n:up: two",',
    ),
    ("{{range $c := .app.status.conditions}}* {{$c.message}}{{else}}none{{end}}", "* no"),
    ("{{range .app.status.nothing}}x{{else}}none{{end}}", "none"),
    ('{{(call .time.Parse .app.status.operationState.startedAt).Local.Format "2.1.2006 MST"}}', "1.1.2026 UTC"),
    ("{{.app.nothing.here}}", "<no value>"),
    ("{{.app.metadata.labels}} {{.app.spec.sources}}", "map[a:2 b:1] [map[repoURL:one] map[repoURL:two]]"),
    ("{{.app.metadata.name | upper | quote}}", '"WINE"'),
    ('{{printf "%s-%d-%5.2f|%-4s|%04d|%q" "a" 3 2.0 "x" 42 "q"}}', 'a-3- 2.00|x   |0042|"q"'),
    ("{{with $x := .app.metadata}}{{$x.name}} {{.name}} {{$.serviceType}}{{end}}", "wine wine slack"),
    ('{{define "T"}}<{{.}}>{{end}}{{template "T" .app.metadata.name}}', "<wine>"),
    ('{{block "B" .app.metadata}}{{.name}}{{end}}', "wine"),
    ("{{range $k, $v := .app.metadata.labels}}{{$k}}={{$v}};{{end}}", "a=2;b=1;"),
    ("{{range until 9}}{{if eq . 1}}{{continue}}{{end}}{{if gt . 3}}{{break}}{{end}}{{.}}{{end}}", "023"),
    ("{{$a := 1}}{{if true}}{{$a = 2}}{{end}}{{$a}}", "2"),
    ("a {{- /* nothing */ -}} b", "ab"),
    ('{{default "d" .nope}} {{.app.status.sync.revision | trunc 3}}', "d abc"),
    ("{{toJson .app.metadata.labels}}", '{"a":"2","b":"1"}'),
    ('{{index .app.metadata.labels "a"}}{{(index .app.spec.sources 1).repoURL}}', "2two"),
    ('{{and true "x"}} {{or "" "z"}} {{not 0}} {{len .app.spec.sources}}', "x z true 2"),
    ("{{1.0}} {{1e30}} {{3.14}} {{1e21}} {{123456789.0}} {{0.00001}}", "1 1e+30 3.14 1e+21 1.23456789e+08 1e-05"),
    ('{{regexReplaceAll "a(b)" "xaby" "<$1>"}} {{"a b" | replace " " "-"}}', "x<b>y a-b"),
    ('{{regexReplaceAll "(?P<n>a)(b)" "ab" "$2$n$$ $1x"}} {{regexQuoteMeta "a-b c.d"}}', "ba$  a-b c\\.d"),
    ('{{regexFind "[[:alpha:]]+" "1ab"}} {{regexSplit "," "a,b" -1}} {{regexFindAll "a|" "ba" -1}}', "ab [a b] [ a]"),
    ('{{regexMatch "(?=a)" "a"}} {{regexMatch "^a$" "a\\n"}} {{mustRegexMatch "a" "a"}}', "false false true"),
    ('{{now | date "2006-01-02T15:04Z07:00"}} {{ago (toDate "2006" "2025-12-31")}}', "2026-01-01T00:10Z 24h10m0s"),
    ('{{ternary "y" "n" (eq 1 1)}} {{semverCompare ">=1.2.0 <2" "v1.5.0"}}', "y true"),
    ("{{ `raw` }}{{ \"a\\tb\" }}{{ 'x' }}", "rawa\tb120"),
    ("{{- range .app.spec.sources -}} [{{.repoURL}}] {{- end -}}", "[one][two]"),
    ('{{if and .app.metadata (ne .serviceType "email")}}yes{{else}}no{{end}}', "yes"),
    ('{{dict "a" (list 1 2) | toJson}} {{list "b" "a" | sortAlpha | join ","}}', '{"a":[1,2]} a,b'),
    ("{{add 1 2 3}} {{div 7 2}}", "6 3"),
    ('{{"a" | b64enc | b64dec}} {{"x" | sha256sum | trunc 6}} {{"FooBar baz" | snakecase}}', "a 2d7116 foo_bar_baz"),
]


@pytest.mark.parametrize(("text", "expected"), MADE)
def test_template_renders_like_in_go(text: str, expected: str) -> None:
    assert compile_template(text).render(VALUES, now=NOW) == expected


REFUSED = [
    ("{{nope}}", "'nope' not defined"),
    ("{{if}}", "line 1"),
    ("\n{{ .app", "line 2"),
    ("{{.app.metadata.name.foo}}", "cannot evaluate field foo"),
    ("{{end}}", "unexpected {{end}}"),
    ("{{if true}}", "{{end}} is missing"),
    ("{{$x}}", "undefined variable $x"),
    ('{{template "none"}}', "undefined template"),
    ('{{eq 1 "1"}}', "incompatible types"),
    ("{{index .app.spec.sources 9}}", "out of range"),
    ("{{break}}", "outside of range"),
    ('{{fail "stop"}}', "stop"),
    ('{{mustRegexMatch "(?=a)" "a"}}', "invalid or unsupported Perl syntax"),
    ('{{regexFind "(a)\\\\1" "aa"}}', "invalid escape sequence"),
    ('{{regexFind "(a|b)*c{900}" (repeat 90000 "a")}}', "too long for the pattern"),
    ('{{env "HOME"}}', "not defined"),
    ('{{getHostByName "x"}}', "not defined"),
    ("{{.app.metadata.name.__class__}}", "cannot evaluate field"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_invalid_template_raises_template_error(text: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        compile_template(text).render(VALUES, now=NOW)
    assert isinstance(caught.value, TemplateError)
    assert why in str(caught.value)


DEAR = [
    '{{repeat 100000000 "abc"}}',
    '{{define "R"}}{{template "R" .}}{{end}}{{template "R" .}}',
    "{{range until 1000}}{{range until 1000}}x{{end}}{{end}}",
    "{{range until 100000000}}x{{end}}",
    "{{" + "(" * 300 + "1" + ")" * 300 + "}}",
    "{{if true}}" * 300 + "{{end}}" * 300,
    '{{$x := "aaaaaaaaaa"}}{{range until 40}}{{$x = print $x $x}}{{end}}',
    "x" * 200_000,
    '{{$d := dict}}{{$_ := set $d "d" $d}}{{$d}}',
]


@pytest.mark.parametrize("text", DEAR, ids=range(len(DEAR)))
def test_template_that_exceeds_a_limit_is_stopped(text: str) -> None:
    with pytest.raises(LimitError):
        compile_template(text).render(VALUES, now=NOW)
