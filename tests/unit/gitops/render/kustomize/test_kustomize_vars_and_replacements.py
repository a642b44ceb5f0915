"""Vars, replacements and name patterns of kustomize, and refused values; each case was compared with kustomize."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {spec: {containers: [{name: a, image: nginx, args: ["$(X)", "a$(X)b"]}, {name: b, image: busybox}]}}
"""
SOURCE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from}\ndata: {k: v}\n"


def built(kustomization: str, **more: str) -> dict[str, Any]:
    files = {"web.yaml": WEB, "from.yaml": SOURCE, "kustomization.yaml": kustomization}
    files |= {name.replace("_", "."): text for name, text in more.items()}
    return {manifest["kind"]: manifest for manifest in build(TextTree(files), "")}


def refusal(kustomization: str, **more: str) -> RenderError:
    with pytest.raises(RenderError) as caught:
        built(kustomization, **more)
    return caught.value


def replaced(path: str, *, field: str = "data.k", options: str = "{}") -> dict[str, Any]:
    spec: dict[str, Any] = built(
        "resources: [web.yaml, from.yaml]\nreplacements:\n"
        f"- source: {{kind: ConfigMap, fieldPath: {field}}}\n"
        f"  targets: [{{select: {{kind: Deployment}}, fieldPaths: ['{path}'], options: {options}}}]\n"
    )["Deployment"]["spec"]
    return spec


@pytest.mark.parametrize(
    ("value", "whole", "within"),
    [("5", 5, "a5b"), ("true", True, "atrueb"), ("null", "null", "anullb"), ("1234567.5", 1234567.5, "a1.2345675e+06b"),
     ("1.5", 1.5, "a1.5b"), ("{a: b}", "$(X)", "a$(X)b"), ("[1]", "$(X)", "a$(X)b"), ("{}", "$(X)", "a$(X)b")],
)  # fmt: skip
def test_var_is_replaced_by_a_scalar_and_never_by_a_map_or_a_list(value: str, whole: Any, within: str) -> None:
    variable = "{name: X, objref: {kind: ConfigMap, name: from, apiVersion: v1}, fieldref: {fieldPath: x}}"
    manifests = built(f"resources: [web.yaml, from.yaml]\nvars: [{variable}]\n", from_yaml=f"{SOURCE}x: {value}\n")
    assert manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"] == [whole, within]


@pytest.mark.parametrize(
    ("number", "read"),
    [("9007199254740993", 9007199254740992), ("1234567890123456789", 1234567890123456800), ("5.0", 5), ("0.1", 0.1),
     ("18446744073709551615", 1.8446744073709552e19), ("9007199254740991", 9007199254740991)],
)  # fmt: skip
def test_json_patch_converts_every_number_through_a_float(number: str, read: float) -> None:
    patch = f'[{{"op": "add", "path": "/z", "value": [{number}]}}]'
    entry = f"resources: [from.yaml]\npatches: [{{target: {{kind: ConfigMap}}, patch: '{patch}'}}]\n"
    config_map = built(entry, from_yaml=f"{SOURCE}x: {number}\n")["ConfigMap"]
    assert repr([config_map["x"], *config_map["z"]]) == repr([read, read])


@pytest.mark.parametrize(
    "path", ["spec..x", "spec.", "spec.selector.matchLabels.[app]", "spec.[].x", "spec.template.spec.containers.-"]
)
def test_invalid_replacement_path_is_refused(path: str) -> None:
    with pytest.raises(RenderError) as caught:
        replaced(path, options="{create: true}")
    assert path in str(caught.value) and caught.value.line == 4


def test_replacing_a_string_by_a_map_empties_it_and_a_number_is_refused() -> None:
    containers = replaced("spec.template.spec.containers.0.image", field="data")["template"]["spec"]["containers"]
    assert containers[0]["image"] == ""
    with pytest.raises(RenderError, match="cannot replace"):
        replaced("spec.replicas", field="data")


def test_empty_selector_value_matches_every_list_element() -> None:
    containers = replaced("spec.template.spec.containers.[name=].image")["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == ["v", "v"]


def test_created_list_element_has_the_type_that_its_selector_looks_like() -> None:
    ports = replaced("spec.ports.[port=80].name", options="{create: true}")["ports"]
    assert ports == [{"name": "v", "port": 80}]


@pytest.mark.parametrize(
    ("kustomization", "message", "line"),
    [
        ("resources: [from.yaml]\nopenapi: {version: v1.21.2, path: x.json}\n", "both a version and a path", 2),
        ("resources: [from.yaml]\nreplacements:\n- path: x.json\n  source: {kind: ConfigMap}\n", "has a path and", 3),
        ("resources: [from.yaml]\nsortOptions:\n  order: fifo\n  legacySortOptions: {}\n", "legacySortOptions", 3),
        ("resources: [from.yaml]\ncrds: [crd.yaml]\n", "apiVersion is not a definition", 1),
        ("resources: [from.yaml]\ntransformers: [sort.yaml]\n", "not a built-in kind", 1),
    ],
)  # fmt: skip
def test_invalid_fields_are_refused_at_their_line(kustomization: str, message: str, line: int) -> None:
    error = refusal(
        kustomization,
        x_json="{}",
        crd_yaml="apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n",
        sort_yaml="apiVersion: builtin\nkind: SortOrderTransformer\nmetadata: {name: x}\n",
    )
    assert message in str(error) and error.line == line


def test_iam_policy_generator_creates_a_service_account() -> None:
    generator = """apiVersion: builtin
kind: IAMPolicyGenerator
metadata: {name: x}
cloud: gke
kubernetesService: {namespace: here, name: mine}
serviceAccount: {name: theirs, projectId: project}
"""
    metadata = built("generators: [g.yaml]\n", g_yaml=generator)["ServiceAccount"]["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("here", "mine")
    assert metadata["annotations"] == {"iam.gke.io/gcp-service-account": "theirs@project.iam.gserviceaccount.com"}


def test_metadata_alone_is_valid_and_unknown_build_metadata_is_ignored() -> None:
    assert built("metadata: {name: x}\n") == {}
    assert set(built("resources: [from.yaml]\nbuildMetadata: [nonsense]\n")) == {"ConfigMap"}


@pytest.mark.parametrize(
    "name", ["(a+)+b", "((a+)x?)+b", "(a|aa)*b", "((a|aa)x?)*b", "a*a*a*a*a*a*a*a*a*b", "(a?a?)*b", "(.*a){20}b"]
)
def test_pattern_on_which_python_would_backtrack_is_matched_as_in_go(name: str) -> None:
    """Kustomize accepts these patterns; none of them matches the name."""
    patch = '[{"op": "add", "path": "/x", "value": 1}]'
    entry = f"resources: [from.yaml]\npatches: [{{target: {{name: '{name}'}}, patch: '{patch}'}}]\n"
    assert "x" not in built(entry, from_yaml=SOURCE.replace("from", "a" * 5000))["ConfigMap"]


@pytest.mark.parametrize(("name", "reason"), [("a" * 1001, "too expensive"), ("(a{900}){2}", "invalid repeat count")])
def test_too_large_pattern_is_refused(name: str, reason: str) -> None:
    patch = '[{"op": "add", "path": "/x", "value": 1}]'
    entry = f"resources: [from.yaml]\npatches: [{{target: {{name: '{name}'}}, patch: '{patch}'}}]\n"
    assert reason in str(refusal(entry))


@pytest.mark.parametrize(
    "name", ["fr.*", "f.*o.*", "(from|to)", "(?:fr|x)om", "fr(a|o)m", "f[a-z]+m", "(f?r?)om", ".{4}"]
)
def test_ordinary_pattern_matches(name: str) -> None:
    patch = '[{"op": "add", "path": "/x", "value": 1}]'
    entry = f"resources: [from.yaml]\npatches: [{{target: {{name: '{name}'}}, patch: '{patch}'}}]\n"
    assert built(entry)["ConfigMap"]["x"] == 1


def test_replacements_into_their_own_source_use_the_old_value_and_are_limited() -> None:
    one = "- source: {kind: ConfigMap, fieldPath: x}\n  targets: [{select: {kind: ConfigMap}, "
    two = "fieldPaths: [x.y%d, x.z%d], options: {create: true}}]\n"
    entries = [one + two % (number, number) for number in range(30)]
    text = f"{SOURCE}x: {{a: b}}\n"
    value = built("resources: [from.yaml]\nreplacements:\n" + entries[0], from_yaml=text)["ConfigMap"]["x"]
    assert value == {"a": "b", "y0": {"a": "b"}, "z0": {"a": "b"}}
    with pytest.raises(LimitError, match="use a smaller value"):
        built("resources: [from.yaml]\nreplacements:\n" + "".join(entries), from_yaml=text)


def test_expanded_vars_are_limited_in_size() -> None:
    variable = "{name: X, objref: {kind: ConfigMap, name: from, apiVersion: v1}, fieldref: {fieldPath: data.k}}"
    with pytest.raises(LimitError, match="fewer"):
        built(
            f"resources: [web.yaml, from.yaml]\nvars: [{variable}]\n",
            from_yaml=SOURCE.replace("k: v", f"k: {'v' * 5000}"),
            web_yaml=WEB.replace("a$(X)b", "$(X)" * 5000),
        )


def test_alternatives_in_an_image_name_are_not_grouped() -> None:
    containers = built("resources: [web.yaml]\nimages: [{name: 'ngi|box', newTag: '9'}]\n")["Deployment"]["spec"]
    assert [container["image"] for container in containers["template"]["spec"]["containers"]] == [
        "nginx:9",
        "busybox:9",
    ]
