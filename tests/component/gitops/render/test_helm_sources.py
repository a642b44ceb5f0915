"""Helm sources rendered with `render`: values of other sources, override files, build variables and recorded inputs."""

from __future__ import annotations

import json
from typing import Any

from argosy.gitops.application import read_application
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.render import BuildSettings, render
from argosy.kube.objects import key_of
from support.file_trees import TextTree
from support.helm_engines import CHART, SHOWN, needs_one

FILES: dict[str, str | bytes] = {
    "chart/Chart.yaml": CHART, "chart/values.yaml": "a: chart\n", "chart/templates/a.yaml": SHOWN,
    "envs/prod.yaml": "b: prod\n", "unrelated.txt": "x",
}  # fmt: skip
VALUES = Checkout(TextTree({"team/values.yaml": "c: other\n", "team/unused.yaml": "d: 1\n"}), "r2")


def rendered(helm: dict[str, Any] | None, files: dict[str, str | bytes] | None = None) -> RenderResult:
    source = {"repoURL": "https://git.example.com/a", "path": "chart", **({"helm": helm} if helm else {})}
    manifest = {"metadata": {"name": "web"}, "spec": {"destination": {"namespace": "shop"}, "sources": [source]}}
    app = read_application(manifest)
    checkout = Checkout(TextTree({**FILES, **(files or {})}), "r1abcdef0123")
    return render(checkout, app, app.sources[0], BuildSettings(), refs={"values": VALUES})


def read_rendered_values(result: RenderResult) -> Any:
    return json.loads(result.manifests[0]["data"]["values"])


@needs_one
def test_folder_with_chart_yaml_is_rendered_by_helm() -> None:
    result = rendered(None)
    assert result.tool == "Helm"
    assert read_rendered_values(result) == {"a": "chart"}
    origin = result.origins.find(key_of(result.manifests[0]), "/data/values")
    assert origin and (origin.file, origin.line) == ("chart/templates/a.yaml", 5)


@needs_one
def test_values_come_from_repository_other_sources_and_build_variables() -> None:
    parameter = {"name": "d", "value": "$ARGOCD_APP_NAME-${ARGOCD_APP_REVISION_SHORT}"}
    result = rendered({"valueFiles": ["/envs/prod.yaml", "$values/team/values.yaml"], "parameters": [parameter]})
    assert read_rendered_values(result) == {"a": "chart", "b": "prod", "c": "other", "d": "web-r1abcde"}


@needs_one
def test_argocd_source_override_file_is_applied() -> None:
    result = rendered(None, {"chart/.argocd-source-web.yaml": "helm: {parameters: [{name: a, value: over}]}\n"})
    assert read_rendered_values(result) == {"a": "over"}


@needs_one
def test_inputs_contain_only_files_that_were_read() -> None:
    result = rendered({"valueFiles": ["/envs/prod.yaml", "$values/team/values.yaml"]})
    read = {
        (render_input.scope, render_input.path)
        for render_input, id in result.inputs.items()
        if id and not render_input.path.endswith("/")
    }
    assert {("", "chart/templates/a.yaml"), ("", "envs/prod.yaml"), ("$values", "team/values.yaml")} <= read
    assert not {("", "unrelated.txt"), ("$values", "team/unused.yaml")} & read


def test_chart_is_read_as_plain_files_if_helm_is_disabled() -> None:
    app = read_application({"metadata": {"name": "web"}, "spec": {"source": {"path": "chart", "helm": {}}}})
    settings = BuildSettings(disabled_tools=frozenset({"Helm"}))
    result = render(Checkout(TextTree(FILES), "r1"), app, app.sources[0], settings)
    assert result.tool == "Directory" and not result.manifests, "templates are in a folder below"
    assert "helm.enable" in result.warnings[0]
