"""List flattening, build variables, source overrides in Git, and build settings."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import Application, Destination, HelmOptions, Source, read_source
from argosy.gitops.render.build_environment import build_environment, substitute
from argosy.gitops.render.manifest_lists import flatten_lists
from argosy.gitops.render.settings import BuildSettings, PluginCommand, RenderLimits, read_build_settings
from argosy.gitops.render.source_override_files import apply_source_overrides
from support.file_trees import TextTree

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_nested_lists_are_flattened() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [POD]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, POD]}
    assert list(flatten_lists([POD, outer])) == [POD, POD, POD]


def test_list_item_inherits_the_kind_of_its_list() -> None:
    listing = {"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "d"}}]}
    assert list(flatten_lists([listing])) == [
        {"metadata": {"name": "d"}, "apiVersion": "apps/v1", "kind": "Deployment"}
    ]


def test_empty_list_is_dropped_and_an_object_with_a_spec_is_not() -> None:
    menu = {"apiVersion": "x/v1", "kind": "Menu", "items": None, "spec": {}}
    assert list(flatten_lists([{"apiVersion": "v1", "kind": "ConfigMapList", "items": None}, menu])) == [menu]
    assert list(flatten_lists([{"apiVersion": "v1", "kind": "List", "items": []}])) == []


def test_list_item_that_is_not_an_object_is_an_error() -> None:
    with pytest.raises(RenderError, match=r"contains a List whose items\[0\] is not a Kubernetes object"):
        list(flatten_lists([{"apiVersion": "v1", "kind": "List", "items": ["x"]}]))


def test_build_environment_describes_application_source_and_cluster() -> None:
    app = Application("shop", project="sales", destination=Destination(namespace="prod"))
    source = Source("https://git.example/shop.git", "deploy", "main")
    environment = build_environment(app, source, "0123456789abcdef", BuildSettings("1.31.2", ("v1", "apps/v1")))
    assert environment == {
        "ARGOCD_APP_NAME": "shop",
        "ARGOCD_APP_NAMESPACE": "prod",
        "ARGOCD_APP_PROJECT_NAME": "sales",
        "ARGOCD_APP_REVISION": "0123456789abcdef",
        "ARGOCD_APP_REVISION_SHORT": "0123456",
        "ARGOCD_APP_REVISION_SHORT_8": "01234567",
        "ARGOCD_APP_SOURCE_PATH": "deploy",
        "ARGOCD_APP_SOURCE_REPO_URL": "https://git.example/shop.git",
        "ARGOCD_APP_SOURCE_TARGET_REVISION": "main",
        "KUBE_VERSION": "1.31.2",
        "KUBE_API_VERSIONS": "v1,apps/v1",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$A", "1"),
        ("${A}", "1"),
        ("x${A}y$B_2.z", "x1y2.z"),
        ("$$A", "$A"),
        ("$$$A", "$1"),
        ("${$}A", "$A"),
        ("$UNKNOWN|${UNKNOWN}", "|"),
        ("cost: 5$", "cost: 5$"),
        ("$ A $/ $.", "$ A $/ $."),
        ("${}x", "x"),
        ("${A", "A"),
        ("$1x", "x"),
    ],
)
def test_variables_are_substituted_like_in_a_shell(text: str, expected: str) -> None:
    assert substitute(text, {"A": "1", "B_2": "2"}) == expected


def source_with(files: dict[str, str], wire: dict[str, Any], app: str = "shop") -> Source:
    return apply_source_overrides(TextTree(files), "app", read_source({"path": "app", "repoURL": "r", **wire}), app)


def test_override_in_git_is_merged_into_the_source() -> None:
    wire = {"helm": {"releaseName": "r", "valueFiles": ["a.yaml"], "valuesObject": {"x": {"y": 1}, "z": 1}}}
    files = {"app/.argocd-source.yaml": "helm:\n  valueFiles: [b.yaml]\n  valuesObject: {x: {w: 2}, z: null}\n"}
    assert source_with(files, wire).helm == HelmOptions(
        release_name="r", value_files=("b.yaml",), values_object={"x": {"y": 1, "w": 2}, "z": 1}
    )


def test_override_of_the_application_is_applied_last() -> None:
    files = {
        "app/.argocd-source.yaml": "kustomize: {namePrefix: a-, nameSuffix: -a}",
        "app/.argocd-source-shop.yaml": "kustomize: {namePrefix: b-}",
        "app/.argocd-source-other.yaml": "kustomize: {namePrefix: c-}",
    }
    kustomize = source_with(files, {}).kustomize
    assert kustomize is not None and (kustomize.name_prefix, kustomize.name_suffix) == ("b-", "-a")


def test_override_cannot_change_repository_path_or_revision() -> None:
    text = "repoURL: evil\npath: ../x\ntargetRevision: evil\nchart: evil\nref: evil\nhelm: {releaseName: x}\n"
    source = source_with({"app/.argocd-source.yaml": text}, {"targetRevision": "main"})
    assert (source.repo_url, source.path, source.ref, source.chart, source.alias) == ("r", "app", "main", "", "")
    assert source.helm == HelmOptions(release_name="x")


@pytest.mark.parametrize("text", ["helm: 3", "helm: {valueFiles: x}", "- a", "helm: ["])
def test_invalid_override_error_names_its_file(text: str) -> None:
    with pytest.raises(RenderError, match=r"^app/\.argocd-source\.yaml"):
        source_with({"app/.argocd-source.yaml": text}, {})


def test_override_may_be_empty_or_a_folder() -> None:
    assert source_with({"app/.argocd-source.yaml": "# later\n", "app/.argocd-source-shop.yaml/x": ""}, {}).helm is None


def test_build_settings_are_read_from_both_config_maps() -> None:
    argocd = {
        "helm.enable": "false",
        "kustomize.enable": "true",
        "jsonnet.enable": "FALSE",
        "kustomize.buildOptions": "--enable-helm --load-restrictor LoadRestrictionsNone",
        "kustomize.path.v4.5.7": "/usr/local/bin/kustomize-4.5.7",
    }
    argosy = {
        "kustomize.binary.v5.0.0": "/opt/kustomize",
        "render.plugin.cue": "generate: [cue, export]\ninit: [cue, vet]\nfiles: ['*.cue']\nseconds: 5\n",
        "render.limit.manifests": "10",
        "render.limit.bytes": "1000",
    }
    settings = read_build_settings(argocd, argosy, kube_version="1.30.1")
    assert settings == BuildSettings(
        kube_version="1.30.1",
        disabled_tools=frozenset({"Helm", "Jsonnet"}),
        kustomize_options=("--enable-helm", "--load-restrictor=LoadRestrictionsNone"),
        kustomize_binaries={"v4.5.7": "/usr/local/bin/kustomize-4.5.7", "v5.0.0": "/opt/kustomize"},
        plugins={"cue": PluginCommand(("cue", "export"), ("cue", "vet"), ("*.cue",), 5.0)},
        limits=RenderLimits(manifests=10, manifest_bytes=1000),
    )
    assert settings.is_helm_enabled and settings.can_read_outside_folder
    settings.check_kustomize_options()


def test_empty_config_maps_give_the_default_settings() -> None:
    assert read_build_settings({}, {}) == BuildSettings()
    assert not BuildSettings().is_helm_enabled and not BuildSettings().can_read_outside_folder


@pytest.mark.parametrize("options", ["--enable-alpha-plugins", "--enable-exec", "--network", "--load-restrictor none"])
def test_unknown_kustomize_option_is_refused_by_name(options: str) -> None:
    with pytest.raises(RenderError, match=f"^kustomize.buildOptions: '{options.split()[0]}"):
        read_build_settings({"kustomize.buildOptions": options}).check_kustomize_options()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("render.limit.bytes", "much"),
        ("render.limit.manifests", "0"),
        ("render.plugin.x", "init: [a]"),
        ("render.plugin.x", "generate: sh -c x"),
        ("render.plugin.x", "generate: [a]\nshell: true"),
        ("render.plugin.x", "generate: [a]\nseconds: 9999"),
        ("render.plugin.x", "[]"),
        ("render.plugin.x", "a: ["),
    ],
)
def test_invalid_setting_error_names_its_key(key: str, text: str) -> None:
    with pytest.raises(RenderError, match=f"^argosy-cm: {key}"):
        read_build_settings({}, {key: text})
