"""Unexpected behavior of kustomize that argosy reproduces; each case was found by comparison with kustomize."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: '2'}\n"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  template:
    spec:
      tolerations: [{key: old}]
      volumes: [{name: v, emptyDir: {}}, {name: w}]
      containers: [{name: c, image: nginx, ports: [{containerPort: 5, protocol: TCP, name: old}]}]
"""
HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"


def built(kustomization: str, **more: str) -> dict[str, Any]:
    files = {"a.yaml": CONFIG_MAP, "d.yaml": DEPLOYMENT, "kustomization.yaml": kustomization}
    files |= {name.replace("__", "/").replace("_", "."): text for name, text in more.items()}
    return {manifest["kind"]: manifest for manifest in build(TextTree(files), "")}


def refusal(kustomization: str, **more: str) -> str:
    with pytest.raises(RenderError) as caught:
        built(kustomization, **more)
    return str(caught.value)


def patched(patch: str, target: str = "") -> dict[str, Any]:
    entry = f"resources: [d.yaml]\npatches: [{{path: p.yaml{target}}}]\n"
    deployment: dict[str, Any] = built(entry, p_yaml=patch)["Deployment"]
    return deployment


def operated(operations: str) -> dict[str, Any]:
    return patched(operations, ", target: {kind: Deployment}")


def pod(patch: str) -> dict[str, Any]:
    spec: dict[str, Any] = patched(f"{HEAD}spec: {{template: {{spec: {{{patch}}}}}}}\n")["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    ("written", "read"),
    [("yes", True), ("on", True), ("n", False), ("2020-01-01", "2020-01-01"), ("'yes'", "yes"), ("{yes: x}",
    {"true": "x"}),
     ("{1: 2}", {"1": 2}), ("{a: 1, a: 2}", {"a": 2}), (">\n    a\n      b\n    c\n", "a\n  b\nc\n"), ("{a: }",
     {"a": None})],
)  # fmt: skip
def test_json_patch_in_yaml_is_parsed_like_kubernetes_yaml(written: str, read: Any) -> None:
    assert operated(f"- op: add\n  path: /spec/x\n  value: {written}\n")["spec"]["x"] == read


def test_only_the_first_document_of_a_json_patch_counts() -> None:
    deployment = operated("- {op: add, path: /x, value: 1}\n---\n- {op: add, path: /y, value: 1}\n")
    assert "x" in deployment and "y" not in deployment


@pytest.mark.parametrize(
    "text", ["[{op: remove, path: /spec}]", '[{"op": "remove", "path": "/spec"},]', "[] # c", "[]"]
)
def test_json_patch_that_starts_with_a_bracket_must_be_non_empty_json(text: str) -> None:
    assert "p.yaml" in refusal("resources: [d.yaml]\npatches: [{path: p.yaml, target: {name: d}}]\n", p_yaml=text)
    entry = "resources: [d.yaml]\npatchesJson6902: [{path: p.yaml, target: {kind: Deployment, name: d}}]\n"
    assert "p.yaml" in refusal(entry, p_yaml=text)


@pytest.mark.parametrize("path", ["/kind", "/metadata/name", "/metadata"])
def test_json_patch_cannot_remove_kind_or_name(path: str) -> None:
    with pytest.raises(RenderError, match="removes kind"):
        operated(f"- {{op: remove, path: {path}}}\n")


def test_empty_patch_file_changes_nothing_if_it_has_a_target() -> None:
    assert operated("")["spec"]["replicas"] == 2
    assert "empty" in refusal("resources: [d.yaml]\npatches: [{path: p.yaml}]\n", p_yaml="")


def test_annotation_with_a_list_value_becomes_empty() -> None:
    deployment = operated("- {op: add, path: /metadata/annotations, value: {a: [1], b: 5}}\n")
    assert deployment["metadata"]["annotations"] == {"a": "", "b": "5"}


def test_patch_directive_in_a_list_without_merge_keys_is_an_element() -> None:
    assert pod("tolerations: [{key: new}, {$patch: delete}]")["tolerations"] == [{"key": "new"}, {"$patch": "delete"}]


def test_replace_directive_stays_as_an_element_of_a_new_list() -> None:
    assert pod("imagePullSecrets: [{name: x}, {$patch: replace}]")["imagePullSecrets"] == [{"$patch": "replace"}]


def test_replace_directive_of_an_element_leaves_it_unchanged() -> None:
    pod_spec = pod("volumes: [{name: v, $patch: replace, hostPath: {path: /}}, {name: z, $patch: replace}]")
    assert pod_spec["volumes"] == [{"name": "v", "emptyDir": {}}, {"name": "z"}, {"name": "w"}]
    port = "{containerPort: 5, protocol: TCP, name: new, $patch: replace}"
    assert pod(f"containers: [{{name: c, ports: [{port}]}}]")["containers"][0]["ports"][0]["name"] == "old"


def test_patch_of_a_common_label_changes_every_place_where_it_was_written() -> None:
    base = "resources: [d.yaml]\ncommonLabels: {k: v1}\n"
    patch = HEAD + "spec: {template: {metadata: {labels: {k: v2}}}}\n"
    deployment = built("resources: [b]\npatches: [{path: p.yaml}]\n", b__kustomization_yaml=base, b__d_yaml=DEPLOYMENT,
                  p_yaml=patch)["Deployment"]  # fmt: skip
    assert deployment["metadata"]["labels"] == {"k": "v2"}
    assert deployment["spec"]["selector"]["matchLabels"] == {"k": "v2"}


def test_leading_slash_of_a_field_path_is_ignored() -> None:
    entry = "resources: [a.yaml]\ncommonLabels: {k: v}\nconfigurations: [c.yaml]\n"
    manifests = built(entry, c_yaml="commonLabels: [{path: /spec/x, create: true}]\n")
    assert manifests["ConfigMap"]["spec"] == {"x": {"k": "v"}}


@pytest.mark.parametrize("path", ["", "spec/x/", "spec//x"])
def test_field_path_with_an_empty_name_is_refused(path: str) -> None:
    entry = "resources: [a.yaml]\ncommonLabels: {k: v}\nconfigurations: [c.yaml]\n"
    error = refusal(entry, c_yaml=f"commonLabels: [{{path: '{path}', create: true}}]\n")
    assert "empty field name" in error


def test_star_in_a_replacement_path_selects_list_elements_only() -> None:
    targets = "[{select: {kind: ConfigMap}, fieldPaths: [data.*]}]"
    entry = f"resources: [a.yaml, d.yaml]\nreplacements: [{{source: {{kind: Deployment}}, targets: {targets}}}]\n"
    assert "selects list elements" in refusal(entry)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_generator_merge_of_two_empty_maps_has_no_data(kind: str) -> None:
    entry = f"resources: [r.yaml]\n{kind[0].lower()}{kind[1:]}Generator: [{{name: r, behavior: merge}}]\n"
    assert "data" not in built(entry, r_yaml=f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: r}}\ndata: {{}}\n")[kind]


def test_file_with_an_empty_list_has_no_resources() -> None:
    assert built("resources: [a.yaml, e.yaml]\n", e_yaml="[]\n").keys() == {"ConfigMap"}


def test_namespace_is_not_written_over_a_map() -> None:
    text = "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t, namespace: n}\n"
    text += "fieldSpecs: [{path: data}]\n"
    assert "not a single value" in refusal("resources: [a.yaml]\ntransformers: [t.yaml]\n", t_yaml=text)


def test_labels_entry_counts_as_two_transformations() -> None:
    entry = "resources: [a.yaml]\nlabels: [{pairs: {a: b}}]\nbuildMetadata: [transformerAnnotations]\n"
    notes = built(entry)["ConfigMap"]["metadata"]["annotations"]["alpha.config.kubernetes.io/transformations"]
    assert notes.count("LabelTransformer") == 2


def test_pod_reference_to_a_service_account_of_another_namespace_is_unchanged() -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n"
    away = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: away}\nspec: {serviceAccountName: sa}\n"
    manifests = built("resources: [s.yaml, p.yaml]\nnameSuffix: -x\n", s_yaml=account, p_yaml=away)
    assert manifests["ServiceAccount"]["metadata"]["name"] == "sa-x"
    assert manifests["Pod"]["spec"]["serviceAccountName"] == "sa"


def test_replace_directive_of_a_whole_resource_leaves_it_unchanged() -> None:
    assert patched(f"$patch: replace\n{HEAD}spec: {{x: 1}}\n")["spec"]["replicas"] == 2


def test_delete_directive_in_an_element_of_a_new_list_applies() -> None:
    pod_spec = pod("initContainers: [{name: i, volumeMounts: [{mountPath: /a}, {$patch: delete}]}]")
    assert pod_spec["initContainers"] == [{"name": "i"}]


@pytest.mark.parametrize(("field", "value"), [("spec.replicas", "x"), ("spec.replicas", "1.5"), ("spec.paused", "2")])
def test_replacement_that_does_not_fit_the_type_of_its_target_is_refused(field: str, value: str) -> None:
    targets = f"[{{select: {{kind: Deployment}}, fieldPaths: [{field}]}}]"
    entry = f"resources: [d.yaml, v.yaml]\nreplacements: [{{source: {{kind: V, fieldPath: v}}, targets: {targets}}}]\n"
    text = f"apiVersion: x/v1\nkind: V\nmetadata: {{name: v}}\nv: '{value}'\n"
    error = refusal(entry, v_yaml=text, d_yaml=DEPLOYMENT.replace("spec:\n", "spec:\n  paused: true\n", 1))
    assert "cannot replace" in error


def test_prefix_transformer_needs_field_specs() -> None:
    text = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: t}\nprefix: p-\n"
    assert "fieldSpecs are missing" in refusal("resources: [a.yaml]\ntransformers: [t.yaml]\n", t_yaml=text)


def test_namespace_transformer_uses_only_the_namespace_of_its_metadata() -> None:
    text = "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t}\nnamespace: n\nfieldSpecs: []\n"
    manifests = built("resources: [a.yaml]\ntransformers: [t.yaml]\n", t_yaml=text)
    assert "namespace" not in manifests["ConfigMap"]["metadata"]


@pytest.mark.parametrize(
    ("transformer", "spec"),
    [("images: [{name: x}]", "images"), ("replicas: [{name: a}]", "replicas"), ("namePrefix: p-", "namePrefix")],
)
def test_transformer_of_scalars_refuses_a_map(transformer: str, spec: str) -> None:
    entry = f"resources: [a.yaml]\nconfigurations: [c.yaml]\n{transformer}\n"
    assert "not a single value" in refusal(entry, c_yaml=f"{spec}: [{{path: data}}]\n")


def test_dash_in_a_replacement_path_is_a_field_name() -> None:
    targets = "[{select: {kind: ConfigMap}, fieldPaths: [q.-], options: {create: true}}]"
    entry = f"resources: [a.yaml]\nreplacements: [{{source: {{kind: ConfigMap}}, targets: {targets}}}]\n"
    assert built(entry)["ConfigMap"]["q"] == {"-": "a"}
    assert "q" in refusal(entry, a_yaml=f"{CONFIG_MAP}q: [a]\n")


def test_no_patch_directive_remains_in_added_fields() -> None:
    pod_spec = pod("securityContext: {sub: {$patch: merge, a: 1}}, initContainers: [{name: i, env: [{$patch: merge}]}]")
    assert pod_spec["securityContext"] == {"sub": {"a": 1}}
    assert pod_spec["initContainers"] == [{"name": "i", "env": []}]


def test_string_data_of_a_secret_is_dropped_by_a_generator_merge() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {x: y}\n"
    manifests = built(
        "resources: [s.yaml]\nsecretGenerator: [{name: s, behavior: merge, literals: [a=b]}]\n", s_yaml=text
    )
    assert "stringData" not in manifests["Secret"] and manifests["Secret"]["data"] == {"a": "Yg=="}
