"""`render` and `render_application`: tool selection, inputs, field origins and limits for every kind of source."""

from __future__ import annotations

import pickle

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.application import Application, Source, read_source
from argosy.gitops.application.step_results import Checkout, FieldOrigin, RenderInput
from argosy.gitops.render import BuildSettings, RenderLimits, are_inputs_unchanged, render, render_application
from argosy.kube.resource_key import ResourceKey
from support.file_trees import TextTree
from support.helm_engines import needs_one

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
TREE = TextTree(
    {
        "over/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n",
        "over/a.yaml": MAP,
        "plain/a.yaml": MAP
        + "---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]\n",
    }
)
CHECKOUT = Checkout(TREE, "1" * 40)


def test_source_is_rendered_by_the_detected_tool() -> None:
    result = render(CHECKOUT, Application("shop"), Source(path="over"))
    assert (result.tool, [manifest["metadata"]["name"] for manifest in result.manifests]) == ("Kustomize", ["x-a"])
    rendering = render(CHECKOUT, Application("shop"), Source(path="plain"))
    assert (rendering.tool, [manifest["metadata"]["name"] for manifest in rendering.manifests]) == (
        "Directory",
        ["a", "p"],
    )


def test_render_result_can_be_pickled() -> None:
    result = render(CHECKOUT, Application("shop"), Source(path="over"))
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.manifests, copy.inputs, copy.tool) == (result.manifests, result.inputs, result.tool)


def test_only_sources_with_a_path_are_rendered() -> None:
    sources = (Source(path="over"), Source(alias="values"), Source(path="plain", alias="both"))
    results = render_application(Application("shop", sources=sources), [CHECKOUT] * 3)
    assert [result.tool for result in results] == ["Kustomize", "Directory"]


@pytest.mark.parametrize("path", ["over", "plain"])
def test_manifests_over_count_or_byte_limit_raise_limit_error(path: str) -> None:
    for limits, message in (
        (RenderLimits(manifests=0), "exceed the limit of 0"),
        (RenderLimits(manifest_bytes=10), "10 bytes"),
    ):
        with pytest.raises(LimitError, match=message):
            render(CHECKOUT, Application("shop"), Source(path=path), BuildSettings(limits=limits))


def test_disallowed_kustomize_option_fails_only_kustomize_sources() -> None:
    settings = BuildSettings(kustomize_options=("--enable-exec",))
    assert render(CHECKOUT, Application("shop"), Source(path="plain"), settings).manifests
    with pytest.raises(RenderError, match="'--enable-exec' is not allowed"):
        render(CHECKOUT, Application("shop"), Source(path="over"), settings)


def test_kustomize_options_are_applied_and_used_variables_become_inputs() -> None:
    options = {
        "namePrefix": "y-",
        "commonAnnotations": {"at": "$ARGOCD_APP_REVISION"},
        "commonAnnotationsEnvsubst": True,
    }
    source = read_source({"path": "over", "kustomize": options})
    result = render(CHECKOUT, Application("shop"), source)
    assert result.manifests[0]["metadata"] == {"name": "y-a", "annotations": {"at": "1" * 40}}
    assert result.inputs[RenderInput("env", "ARGOCD_APP_REVISION")] == "1" * 40
    plain = render(CHECKOUT, Application("shop"), Source(path="over"))
    assert not [render_input for render_input in plain.inputs if render_input.scope == "env"]


def test_remote_bases_are_fetched_and_recorded_as_inputs_of_their_repository() -> None:
    remote = TextTree({"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": MAP})
    tree = TextTree({"k/kustomization.yaml": "resources: ['https://git.example/o/r//base?ref=v1']\n"})
    fetch_calls = []

    def fetch(url: str, ref: str) -> TextTree:
        fetch_calls.append((url, ref))
        return remote

    result = render(Checkout(tree, ""), Application("shop"), Source(path="k"), fetch=fetch)
    assert fetch_calls == [("https://git.example/o/r", "v1")]
    scope = "https://git.example/o/r@v1"
    assert RenderInput(scope, "base/a.yaml") in result.inputs
    assert are_inputs_unchanged(result.inputs, {"": tree, scope: remote}, {})
    changed = TextTree({**remote.files, "base/a.yaml": MAP + "# new\n"})
    assert not are_inputs_unchanged(result.inputs, {"": tree, scope: changed}, {})
    for candidate in (result, pickle.loads(pickle.dumps(result))):
        origin = candidate.origins.find(ResourceKey("", "ConfigMap", "", "a"), "/metadata/name")
        assert origin is not None and origin.repository.startswith("https://git.example/o/r")
    assert len(fetch_calls) == 1
    with pytest.raises(RenderError, match="is remote"):
        render(Checkout(tree, ""), Application("shop"), Source(path="k"))


def test_field_origin_in_plain_file_has_line_and_adds_no_input() -> None:
    result = render(CHECKOUT, Application("shop"), Source(path="plain"))
    before = dict(result.inputs)
    origins = pickle.loads(pickle.dumps(result)).origins
    for field_origins in (result.origins, origins):
        assert field_origins.find(ResourceKey("", "ConfigMap", "", "a"), "/metadata/name") == FieldOrigin(
            "plain/a.yaml", 3
        )
        assert field_origins.find(ResourceKey("", "Pod", "", "p"), "/metadata/name") == FieldOrigin("plain/a.yaml", 7)
        assert field_origins.find(ResourceKey("", "Pod", "", "q"), "/metadata/name") is None
    assert result.inputs == before


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "chart/values.yaml": "soup: none\n",
    "chart/templates/a.yaml": MAP + "data: {soup: {{ .Values.soup }}, app: {{ .Release.Name }}}\n",
}


@needs_one
def test_chart_uses_values_of_another_source_and_records_them_as_inputs() -> None:
    source = read_source(
        {
            "path": "chart",
            "helm": {"valueFiles": ["$v/$ARGOCD_APP_NAME.yaml", "more.yaml"], "ignoreMissingValueFiles": True},
        }
    )
    app = Application("shop", sources=(source, Source(alias="v")))
    values = TextTree({"shop.yaml": "soup: leek\n", "other.yaml": ""})
    [result] = render_application(app, [Checkout(TextTree(CHART), ""), Checkout(values, "")])
    assert (result.tool, result.manifests[0]["data"]) == ("Helm", {"soup": "leek", "app": "shop"})
    origin = pickle.loads(pickle.dumps(result)).origins.find(ResourceKey("", "ConfigMap", "", "a"), "/data")
    assert origin is not None and origin.file == "chart/templates/a.yaml"
    environment = {"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_REVISION": "2"}

    def is_current(chart: dict[str, str], files: dict[str, str | bytes]) -> bool:
        trees = {"": TextTree({**CHART, **chart}), "$v": TextTree({**values.files, **files})}
        return are_inputs_unchanged(result.inputs, trees, environment)

    assert is_current({}, {"other.yaml": "new"})
    assert is_current({"README.md": "new"}, {})
    assert not is_current({"chart/more.yaml": "soup: pea"}, {})
    assert not is_current({"chart/templates/a.yaml": MAP}, {})
    assert not is_current({"chart/templates/new.yaml": ""}, {})
    assert not is_current({}, {"shop.yaml": "soup: pea"})


@needs_one
def test_kustomization_inflates_chart_only_with_enable_helm() -> None:
    files = {f"k/charts/{path}": text for path, text in CHART.items()}
    files["k/kustomization.yaml"] = "helmCharts: [{name: chart, releaseName: r}]\nnamePrefix: x-\n"
    checkout = Checkout(TextTree(files), "")
    settings = BuildSettings(kustomize_options=("--enable-helm",))
    [manifest] = render(checkout, Application("shop"), Source(path="k"), settings).manifests
    assert (manifest["metadata"]["name"], manifest["data"]) == ("x-a", {"soup": "none", "app": "r"})
    with pytest.raises(RenderError, match="helmCharts need --enable-helm"):
        render(checkout, Application("shop"), Source(path="k"))


def test_field_origin_in_kustomization_has_line_and_overridden_origin() -> None:
    result = render(CHECKOUT, Application("shop"), Source(path="over"))
    for candidate in (result, pickle.loads(pickle.dumps(result))):
        origin = candidate.origins.find(ResourceKey("", "ConfigMap", "", "x-a"), "/metadata/name")
        assert origin == FieldOrigin("over/kustomization.yaml", 2, overrides=FieldOrigin("over/a.yaml", 3))
