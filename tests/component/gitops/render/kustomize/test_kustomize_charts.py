"""Helm charts inflated by a kustomization, compared with kubectl 1.32 and its Helm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.helm import inflate
from argosy.gitops.render.helm.helm_binary_engine import HelmProgram
from argosy.gitops.render.kustomize import build
from argosy.gitops.render.kustomize.build_restrictions_and_cluster_versions import FixedKustomizeSettings
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree
from support.paths import VENV
from support.tiers import IN_TEST_ALL

KUBECTL, HELM = VENV / "kubectl-1.32" / "kubectl", VENV / "helm" / "helm"
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-cm, labels: {yes: "1"}}
data:
  namespace: {{ .Release.Namespace | quote }}
  values: {{ .Values | toJson | quote }}
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
  api: {{ .Capabilities.APIVersions.Has "my/v1" | quote }}
  odd: yes
  mode: 0644
"""
HOOK = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {helm.sh/hook: %s}}\n"
CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.my.io}\n"
VALUES = "size: 1\nnested: {a: 1, b: 2}\nlist: [1, 2]\nflag: true\nempty: ''\n"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "values.yaml": VALUES,
    "templates/cm.yaml": TEMPLATE,
    "templates/hook.yaml": HOOK % ("hook", "pre-install"),
    "templates/test.yaml": HOOK % ("test", "test"),
    "crds/crd.yaml": CRD,
}
FILES = {
    **{f"charts/web/{path}": text for path, text in CHART.items()},
    **{f"charts/web-1.2.3/web/{path}": text.replace("size: 1", "size: 123") for path, text in CHART.items()},
    **{f"elsewhere/web/{path}": text.replace("size: 1", "size: 77") for path, text in CHART.items()},
    "own.yaml": "size: 9\n",
    "more.yaml": "size: 10\n",
    "null.yaml": "size: null\nnested:\n  a:\nlist: []\n",
    "empty.yaml": "",
    "generator.yaml": (
        "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: web\nreleaseName: rel\n"
        "skipHooks: true\nunknown: field\nvaluesInline: {z: 1}\n"
    ),
}
HELM_ON = FixedKustomizeSettings(is_helm_enabled=True)


class Inflated:
    """A fake inflate function that records its calls and returns a ConfigMap named after the release."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, tree: FileTree, chart: str, **options: Any) -> list[Any]:
        self.asked.append({"chart": chart, **options})
        name = f"{options['release_name']}-cm"
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}]


class ByHelm:
    """Renders charts with the same Helm binary that kubectl uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self,
        tree: FileTree,
        chart: str,
        *,
        release_name: str = "",
        namespace: str = "",
        values: Sequence[str | Mapping[str, Any]] = (),
        include_crds: bool = False,
        skip_hooks: bool = False,
        skip_tests: bool = False,
        kube_version: str = "",
        api_versions: Sequence[str] = (),
    ) -> list[Any]:
        words = ["template", release_name or "release-name", str(self.folder / chart)]
        for number, values_entry in enumerate(values):
            file = self.folder / (values_entry if isinstance(values_entry, str) else f"values-{number}.json")
            if not isinstance(values_entry, str):
                file.write_text(json.dumps(values_entry))
            words += ["-f", str(file)]
        flags = {"--include-crds": include_crds, "--no-hooks": skip_hooks, "--skip-tests": skip_tests}
        words += [flag for flag, is_set in flags.items() if is_set]
        words += ["--namespace", namespace] if namespace else []
        words += ["--kube-version", kube_version] if kube_version else []
        words += [word for version in api_versions for word in ("--api-versions", version)]
        done = subprocess.run([HELM, *words], capture_output=True, check=True, env={"HOME": str(self.folder)})
        return [document for document in read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE) if document]


def written(files: Mapping[str, str], folder: Path) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def refusal(kustomization: str, settings: FixedKustomizeSettings = HELM_ON) -> str:
    tree = TextTree({**FILES, "kustomization.yaml": kustomization})
    with pytest.raises(RenderError) as caught:
        build(tree, "", settings=settings, inflate=Inflated())
    return str(caught.value)


QUIET = "releaseName: r, skipHooks: true"
CASES = {
    "no name of a release": "helmCharts: [{name: web}]\n",
    "crds, namespace": "helmCharts: [{name: web, releaseName: r, namespace: ns, includeCRDs: true, skipHooks: true}]\n",
    "tests, capabilities": "helmCharts: [{name: web, skipTests: true, apiVersions: [my/v1], kubeVersion: '1.20'}]\n",
    "a plain name template": "helmCharts: [{name: web, nameTemplate: abc, skipHooks: true}]\n",
    "files": f"helmCharts: [{{name: web, {QUIET}, valuesFile: own.yaml, additionalValuesFiles: [more.yaml]}}]\n",
    "override": f"helmCharts: [{{name: web, {QUIET}, valuesInline: {{size: 5, nested: {{a: 7, c: 8}}, list: [9]}}}}]\n",
    "null overrides": f"helmCharts: [{{name: web, {QUIET}, valuesInline: {{nested: {{a: null}}, list: null}}}}]\n",
    "merge": f"helmCharts: [{{name: web, {QUIET}, valuesMerge: merge, valuesInline: {{size: 5, z: 0, list: [9]}}}}]\n",
    "replace": f"helmCharts: [{{name: web, {QUIET}, valuesMerge: replace, valuesInline: {{nested: {{a: null}}}}}}]\n",
    "nulls of a file": f"helmCharts: [{{name: web, {QUIET}, valuesFile: null.yaml}}]\n",
    "nulls under values": f"helmCharts: [{{name: web, {QUIET}, valuesFile: null.yaml, valuesInline: {{z: 1}}}}]\n",
    "nulls over values": (
        f"helmCharts: [{{name: web, {QUIET}, valuesFile: null.yaml, valuesMerge: merge, valuesInline: {{size: 4}}}}]\n"
    ),
    "an empty file": f"helmCharts: [{{name: web, {QUIET}, valuesFile: empty.yaml}}]\n",
    "a folder of its own": f"helmGlobals: {{chartHome: elsewhere}}\nhelmCharts: [{{name: web, {QUIET}}}]\n",
    "a version": f"helmCharts: [{{name: web, version: 1.2.3, repo: 'https://none.invalid', {QUIET}}}]\n",
    "a version without a repository": f"helmCharts: [{{name: web, version: 9.9.9, {QUIET}}}]\n",
    "the old form": (
        "helmChartInflationGenerator:\n"
        "- {chartName: web, chartHome: elsewhere, releaseName: r, values: own.yaml, valuesLocal: {z: 1}}\n"
    ),
    "a generator": "generators: [generator.yaml]\n",
    "transformers": f"namespace: outer\nnamePrefix: p-\nhelmCharts: [{{name: web, {QUIET}}}]\n",
    "two charts and a patch": (
        f"helmCharts: [{{name: web, {QUIET}}}, {{name: web, releaseName: s, skipHooks: true}}]\n"
        "configMapGenerator: [{name: made, literals: [a=b]}]\n"
        "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: s-cm}, data: {more: data}}'}]\n"
    ),
}


IN_MAKE_TEST = {"override", "a generator"}


@pytest.mark.parametrize(
    "kustomization",
    [pytest.param(text, id=name, marks=() if name in IN_MAKE_TEST else IN_TEST_ALL) for name, text in CASES.items()],
)
def test_inflated_charts_match_kubectl_output(kustomization: str, tmp_path: Path) -> None:
    files = {**FILES, "kustomization.yaml": kustomization}
    expected = by_kubectl(files, tmp_path)
    assert build(TextTree(files), "", settings=HELM_ON, inflate=ByHelm(tmp_path)) == expected


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("no name of a release", marks=IN_TEST_ALL),
        "override",
        pytest.param("nulls of a file", marks=IN_TEST_ALL),
        pytest.param("two charts and a patch", marks=IN_TEST_ALL),
    ],
)
def test_charts_inflated_by_our_helm_engine_match_kubectl_output(case: str, tmp_path: Path) -> None:
    files = {**FILES, "kustomization.yaml": CASES[case]}
    expected = by_kubectl(files, tmp_path)
    own = partial(inflate, engine=HelmProgram(str(HELM)))
    assert build(TextTree(files), "", settings=HELM_ON, inflate=own) == expected


def by_kubectl(files: Mapping[str, str], folder: Path) -> list[Any]:
    if not KUBECTL.is_file() or not HELM.is_file():
        pytest.skip("kubectl 1.32 or its helm is not here: make install")
    words = [KUBECTL, "kustomize", "--enable-helm", "--helm-command", HELM, written(files, folder)]
    return read_yaml_documents(
        subprocess.run(words, capture_output=True, check=True).stdout, dialect=YamlDialect.KUSTOMIZE
    )


@pytest.mark.parametrize(
    ("kustomization", "said"),
    [
        ("helmCharts: [{releaseName: r}]\n", "has no name"),
        ("helmCharts: [{name: gone}]\n", "there is no chart gone in charts"),
        (
            "helmCharts: [{name: gone, repo: 'https://x.invalid', version: 1.0.0}]\n",
            "`helm pull gone --untar --untardir charts/gone-1.0.0 --repo https://x.invalid --version 1.0.0`",
        ),
        ("helmCharts: [{name: web, repo: 'https://x.invalid', version: 9.9.9}]\n", "no chart web in charts/web-9.9.9"),
        ("helmCharts: [{name: web, valuesMerge: foo}]\n", "valuesMerge is 'foo'"),
        ("helmCharts: [{name: web, valuesFile: gone.yaml}]\n", "gone.yaml does not exist"),
        ("helmCharts: [{name: web, additionalValuesFiles: [gone.yaml]}]\n", "gone.yaml does not exist"),
        ("helmCharts: [{name: web, valuesFile: empty.yaml, valuesInline: {a: 1}}]\n", "must be a mapping"),
        ("helmCharts: [{name: web, valuesInline: {nested: 5}}]\n", "nested is a map, but"),
        ("helmCharts: [{name: web, valuesInline: [5]}]\n", "valuesInline must be a map"),
        ("helmCharts: [{name: web, nameTemplate: 'x-{{ 1 }}'}]\n", "is not supported"),
        ("helmCharts: [{name: web, nameTemplate: x, releaseName: z}]\n", "keep one of them"),
        ("helmCharts: [{name: web, foo: y}]\n", "unknown field helmCharts[0].foo"),
        ("helmGlobals: {foo: y}\nhelmCharts: [{name: web}]\n", "unknown field helmGlobals.foo"),
        ("helmGlobals: {chartHome: ../x}\nhelmCharts: [{name: web}]\n", "leads out of the repository"),
        ("resources: [r.yaml]\nhelmCharts: [{name: web, releaseName: r}]\n", "r.yaml does not exist"),
    ],
)
def test_invalid_helm_charts_entry_is_rejected_with_a_reason(kustomization: str, said: str) -> None:
    assert said in refusal(kustomization)


@pytest.mark.parametrize("kustomization", ["helmCharts: [{name: web}]\n", "generators: [generator.yaml]\n"])
def test_helm_charts_need_the_enable_helm_option(kustomization: str) -> None:
    assert "need --enable-helm" in refusal(kustomization, FixedKustomizeSettings())


def test_chart_values_outside_the_folder_need_load_restrictions_none() -> None:
    chart = "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: web, releaseName: r}]\n"
    tree = TextTree({**FILES, "app/kustomization.yaml": chart})
    with pytest.raises(RenderError, match="outside the kustomization's folder"):
        build(tree, "app", settings=HELM_ON, inflate=Inflated())
    anywhere = FixedKustomizeSettings(is_helm_enabled=True, can_read_outside_folder=True)
    inflate = Inflated()
    assert build(tree, "app", settings=anywhere, inflate=inflate)
    assert inflate.asked[0]["values"] == ["charts/web/values.yaml"]


def test_unversioned_chart_folder_is_used_if_its_version_matches() -> None:
    files = {path: text for path, text in FILES.items() if "web-1.2.3" not in path}
    chart = "helmCharts: [{name: web, version: 1.2.3, repo: 'https://x.invalid', releaseName: r}]\n"
    inflate = Inflated()
    build(TextTree({**files, "kustomization.yaml": chart}), "", settings=HELM_ON, inflate=inflate)
    assert inflate.asked[0]["chart"] == "charts/web"


def test_kube_version_precedence_is_chart_then_application_then_settings() -> None:
    settings = FixedKustomizeSettings(is_helm_enabled=True, kube_version="1.30.0", api_versions=("a/v1",))
    charts = "helmCharts: [{name: web, releaseName: r}, {name: web, releaseName: s, kubeVersion: '1.20'}]\n"
    tree = TextTree({**FILES, "kustomization.yaml": charts})
    inflate = Inflated()
    build(tree, "", settings=settings, inflate=inflate)
    options = KustomizeOptions(kube_version="1.31", api_versions=("b/v1",))
    build(tree, "", settings=settings, inflate=inflate, options=options)
    versions = [(call["kube_version"], call["api_versions"]) for call in inflate.asked]
    assert versions == [("1.30.0", ("a/v1",)), ("1.20", ("a/v1",)), ("1.31", ("b/v1",)), ("1.20", ("b/v1",))]


def test_chart_of_remote_base_is_inflated_from_the_remote_repository() -> None:
    remote = TextTree({**FILES, "kustomization.yaml": f"helmCharts: [{{name: web, {QUIET}}}]\n"})
    trees: list[FileTree] = []

    def inflate(tree: FileTree, chart: str, **options: Any) -> list[Any]:
        trees.append(tree)
        return Inflated()(tree, chart, **options)

    tree = TextTree({"kustomization.yaml": "resources: [github.com/org/repo]\n"})
    assert build(tree, "", settings=HELM_ON, inflate=inflate, fetch=lambda url, ref: remote)
    assert trees == [remote]


def test_helm_error_names_the_file_in_the_remote_base() -> None:
    def inflate(tree: FileTree, chart: str, **options: Any) -> list[Any]:
        raise RenderError("template error", where=f"{chart}/templates/cm.yaml", line=3)

    remote = TextTree({**FILES, "kustomization.yaml": f"helmCharts: [{{name: web, {QUIET}}}]\n"})
    tree = TextTree({"kustomization.yaml": "resources: [github.com/org/repo]\n"})
    with pytest.raises(RenderError, match=r"github\.com/org/repo//charts/web/templates/cm\.yaml\?ref=HEAD"):
        build(tree, "", settings=HELM_ON, inflate=inflate, fetch=lambda url, ref: remote)
