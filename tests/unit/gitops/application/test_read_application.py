"""Reading of Argo CD Applications; errors name the invalid field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.gitops.application import HelmParameter, ToolVariable, read_application, read_source
from argosy.gitops.application.sources import remove_empty_options


def application(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "models", "namespace": "argocd"}, "spec": spec}


def test_application_has_its_source_destination_and_project() -> None:
    app = read_application(
        application(
            project="ml",
            destination={"name": "in-cluster", "namespace": "prod"},
            source={"repoURL": "https://git.example/x", "path": "o/prod", "targetRevision": "v1", "ref": "values"},
        )
    )
    source = app.sources[0]
    assert (app.name, app.namespace, app.project) == ("models", "argocd", "ml")
    assert (app.destination.name, app.destination.namespace) == ("in-cluster", "prod")
    assert (source.repo_url, source.path, source.ref, source.alias) == (
        "https://git.example/x", "o/prod", "v1", "values",
    )  # fmt: skip
    assert source.helm is source.kustomize is source.directory is source.plugin is None


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"spec": {"project": "other"}},
        {"status": {"operationState": {"phase": "Failed"}}},
        {"status": {}},
        {"operation": {"sync": {"prune": True}}},
        {"metadata": {"name": "models", "annotations": {"a": "b"}}},
    ],
)
def test_reread_equals_a_fresh_read_and_reuses_unchanged_parts(change: dict[str, Any]) -> None:
    state = {"phase": "Succeeded", "syncResult": {"resources": [{"kind": "ConfigMap", "name": "a"}]}}
    manifest = {**application(source={"path": "a"}), "status": {"operationState": state}}
    first = read_application(manifest)
    after = copy.deepcopy({**manifest, **change})
    again = read_application(after, "", first)
    assert again == read_application(after)
    assert (again.sources is first.sources) == ("spec" not in change)
    assert (again.state is first.state) == ("status" not in change)


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.0)])
def test_reread_notices_values_that_are_equal_only_in_python(before: Any, after: Any) -> None:
    values = [application(source={"helm": {"valuesObject": {"gpu": value}}}) for value in (before, after)]
    again = read_application(values[1], "", read_application(values[0]))
    assert again.sources[0].helm is not None
    assert type((again.sources[0].helm.values_object or {})["gpu"]) is type(after)


def test_sources_take_precedence_over_source() -> None:
    app = read_application(application(source={"path": "a"}, sources=[{"path": "b"}, {"path": "c"}]))
    assert [source.path for source in app.sources] == ["b", "c"]


@pytest.mark.parametrize(
    ("spec", "limit"), [({}, 10), ({"revisionHistoryLimit": 3}, 3), ({"revisionHistoryLimit": 0}, 0)]
)
def test_history_limit_defaults_to_ten(spec: dict[str, Any], limit: int) -> None:
    assert read_application({"metadata": {"name": "a"}, "spec": spec}).history_limit == limit


def test_project_defaults_to_default() -> None:
    assert read_application(application()).project == "default"


def test_empty_helm_block_is_not_none() -> None:
    assert read_source({"helm": {}}).helm is not None


def test_helm_parameters_keep_force_string() -> None:
    source = read_source({"helm": {"parameters": [{"name": "port", "value": "80", "forceString": True}]}})
    assert source.helm is not None
    assert source.helm.parameters == (HelmParameter("port", "80", True),)


def test_jsonnet_variables_keep_the_code_flag() -> None:
    source = read_source({"directory": {"jsonnet": {"extVars": [{"name": "n", "value": "1+1", "code": True}]}}})
    assert source.directory is not None
    assert source.directory.jsonnet.external == (ToolVariable("n", "1+1", True),)


def test_kustomize_replicas_accept_numbers_and_strings() -> None:
    source = read_source({"kustomize": {"replicas": [{"name": "a", "count": 2}, {"name": "b", "count": "3"}]}})
    assert source.kustomize is not None
    assert source.kustomize.replicas == (("a", 2), ("b", 3))


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"path": 3}, "spec.source.path must be a string"),
        ({"helm": []}, "spec.source.helm must be a map"),
        ({"helm": {"valueFiles": "a.yaml"}}, "spec.source.helm.valueFiles must be a list"),
        ({"helm": {"valueFiles": [1]}}, "spec.source.helm.valueFiles must be a list of strings"),
        ({"helm": {"parameters": [{"name": "a", "value": 1}]}}, "helm.parameters[0].value must be a string"),
        ({"kustomize": {"replicas": [{"name": "a", "count": "x"}]}}, "replicas[0].count must be an integer"),
        ({"kustomize": {"commonLabels": {"a": 1}}}, "spec.source.kustomize.commonLabels.a must be a string"),
        ({"directory": {"recurse": "yes"}}, "spec.source.directory.recurse must be true or false"),
    ],
)
def test_wrong_field_type_is_reported_with_its_path(source: dict[str, Any], named: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_application(application(source=source), "app.yaml")
    assert named in str(caught.value)
    assert str(caught.value).startswith("app.yaml: ")


@pytest.mark.parametrize(
    "mark, parent",
    [
        ("root:argoproj.io/Application:argocd/models", "root"),
        ("argocd_root:argoproj.io/Application:team/models", "root"),
        ("models:argoproj.io/Application:argocd/models", ""),
        ("root", ""),
        ("", ""),
    ],
)
def test_parent_application_is_read_from_the_tracking_id(mark: str, parent: str) -> None:
    annotations = {"argocd.argoproj.io/tracking-id": mark}
    app = read_application({"metadata": {"name": "models", "annotations": annotations}, "spec": {}})
    assert app.parent == parent


@pytest.mark.parametrize(
    "destination, is_here",
    [
        ({"server": "https://kubernetes.default.svc"}, True),
        ({"name": "in-cluster"}, True),
        ({"namespace": "ml"}, True),
        ({"server": "https://elsewhere.example:6443"}, False),
        ({"name": "edge"}, False),
    ],
)
def test_in_cluster_destination_is_detected(destination: dict[str, str], is_here: bool) -> None:
    app = read_application({"metadata": {"name": "models"}, "spec": {"destination": destination}})
    assert app.destination.is_in_cluster is is_here


GIT_SOURCE = {"repoURL": "https://git.example/a", "path": "app"}


def test_tool_options_with_zero_values_only_are_no_options() -> None:
    source = {**GIT_SOURCE, "helm": {"parameters": [], "values": "", "valuesObject": None}, "kustomize": {}}
    source |= {"directory": {"recurse": False, "jsonnet": {"libs": []}}}
    assert remove_empty_options(source) == GIT_SOURCE
    others = {**GIT_SOURCE, "targetRevision": None, "plugin": {}}
    assert remove_empty_options({**others, "helm": None}) == others
    assert remove_empty_options({**GIT_SOURCE, "kustomize": {"include": "*.yaml"}}) == GIT_SOURCE
    flags = {"forceCommonLabels": True, "labelWithoutSelector": True}
    assert remove_empty_options({**GIT_SOURCE, "kustomize": flags}) == GIT_SOURCE  # argo: there is nothing to force


@pytest.mark.parametrize(
    "options",
    [
        {"helm": {"valuesObject": {}}},
        {"helm": {"valuesObject": {"replicas": 0, "debug": False}}},
        {"helm": {"values": "a: 1"}},
        {"helm": {"releaseName": "a"}},
        {"helm": {"parameters": [{"name": "", "value": ""}]}},
        {"helm": {"skipSchemaValidation": True}},
        {"kustomize": {"commonLabels": {"team": ""}}},
        {"kustomize": {"commonAnnotations": {"note": ""}}},
        {"kustomize": {"replicas": [{"name": "web", "count": 0}]}},
        {"kustomize": {"ignoreMissingComponents": True}},
        {"directory": {"recurse": True}},
        {"directory": {"include": "*.yaml"}},
        {"directory": {"exclude": "*.md", "disableExtensionFilter": True}},
        {"directory": {"jsonnet": {"extVars": [{"name": "", "value": ""}]}}},
    ],
)
def test_set_tool_options_stay_although_their_values_are_falsy(options: dict[str, Any]) -> None:
    assert remove_empty_options({**GIT_SOURCE, **options}) == {**GIT_SOURCE, **options}


def test_empty_directory_options_keep_only_the_selection_of_files() -> None:
    directory = {"recurse": False, "jsonnet": {"tlas": []}, "include": "*.yaml", "exclude": ""}
    assert remove_empty_options({"directory": directory}) == {"directory": {"include": "*.yaml"}}


def test_options_that_are_no_map_are_left_to_validation() -> None:
    assert remove_empty_options({"helm": "x", "directory": []}) == {"helm": "x", "directory": []}
