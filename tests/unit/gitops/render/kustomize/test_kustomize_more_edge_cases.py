"""More unexpected behavior of kustomize that argosy reproduces; each case was found by comparison with kustomize."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: y}\n  annotations: {x: y}\n"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 0
  template:
    spec:
      containers: [{name: c, image: nginx}]
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


NULLS = CONFIG_MAP.replace("labels: {x: y}", "labels: {x: null, n: 5}").replace("annotations: {x: y}", "annotations:")


def test_patch_with_a_target_cannot_delete_a_label() -> None:
    manifests = built("resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", p_yaml=NULLS)
    metadata = manifests["ConfigMap"]["metadata"]
    assert metadata["labels"] == {"x": "null", "n": "5"}
    assert metadata["annotations"] == {"x": "y"}


def test_patch_without_a_target_deletes_a_label() -> None:
    metadata = built("resources: [a.yaml]\npatches: [{path: p.yaml}]\n", p_yaml=NULLS)["ConfigMap"]["metadata"]
    assert metadata["labels"] == {"n": 5}
    assert "annotations" not in metadata


def test_merged_generator_keeps_only_data_labels_and_annotations() -> None:
    config_map = CONFIG_MAP + "immutable: true\ndata: {q: r}\n"
    entry = "resources: [m.yaml]\nconfigMapGenerator: [{name: a, behavior: merge, literals: [k=v]}]\n"
    merged = built(entry, m_yaml=config_map)["ConfigMap"]
    assert merged.keys() == {"apiVersion", "kind", "metadata", "data"}
    assert merged["data"] == {"q": "r", "k": "v"}
    assert merged["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{template: {spec: {containers: [{name: c, env: [A=b]}]}}}", "containers/env is 'A=b', not a map"),
        ("{template: {spec: {volumes: [{name: v, configMap: x}]}}}", "volumes/configMap is 'x', not a map"),
        ("{template: {spec: {serviceAccountName: {a: b}}}}", "serviceAccountName has a map without a name"),
        ("x", "spec is 'x', not a map"),
    ],
)
def test_reference_field_of_the_wrong_type_is_refused(spec: str, said: str) -> None:
    assert said in refusal("resources: [d.yaml]\n", d_yaml=f"{HEAD}spec: {spec}\n")


def test_subject_without_a_name_is_refused() -> None:
    text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: r}\n"
    assert "subjects has a map without a name" in refusal("resources: [r.yaml]\n", r_yaml=f"{text}subjects: [{{}}]")


def test_var_refers_only_to_resources_of_its_own_kustomization() -> None:
    entry = "resources: [a.yaml, b]\n"
    base = "vars: [{name: V, objref: {apiVersion: v1, kind: ConfigMap, name: a}}]\nresources: [d.yaml]\n"
    assert "there is no ConfigMap a" in refusal(entry, b__kustomization_yaml=base, b__d_yaml=DEPLOYMENT)


def test_strategic_merge_patches_count_as_one_transformation() -> None:
    patches = "patchesStrategicMerge: [a.yaml, p.yaml]\nbuildMetadata: [transformerAnnotations]\n"
    notes = built(f"resources: [a.yaml]\n{patches}", p_yaml=CONFIG_MAP)["ConfigMap"]["metadata"]["annotations"]
    assert notes["alpha.config.kubernetes.io/transformations"].count("PatchStrategicMerge") == 1


NAMESPACE = "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t, namespace: n}\nunsetOnly: true\n"


def test_transformer_annotation_contains_the_transformer_namespace() -> None:
    entry = "resources: [a.yaml]\ntransformers: [t.yaml]\nbuildMetadata: [transformerAnnotations]\n"
    notes = built(entry, t_yaml=NAMESPACE)["ConfigMap"]["metadata"]["annotations"]
    assert notes["alpha.config.kubernetes.io/transformations"].endswith("    name: t\n    namespace: n\n")


def test_unset_only_transformer_does_not_replace_zero() -> None:
    text = f"{NAMESPACE}fieldSpecs: [{{path: spec/replicas}}]\n"
    assert built("resources: [d.yaml]\ntransformers: [t.yaml]\n", t_yaml=text)["Deployment"]["spec"]["replicas"] == 0


def test_name_that_is_not_a_string_is_formatted_as_json() -> None:
    operation = "[{op: replace, path: /metadata/name, value: true}]"
    entry = f"resources: [a.yaml]\npatches: [{{target: {{kind: ConfigMap}}, patch: '- {operation[1:-1]}'}}]\n"
    manifests = built("resources: [b]\nnamePrefix: p-\n", b__kustomization_yaml=entry, b__a_yaml=CONFIG_MAP)
    assert manifests["ConfigMap"]["metadata"]["name"] == "p-true"


def patched(patch: str) -> dict[str, Any]:
    manifests = built("resources: [d.yaml]\npatches: [{path: p.yaml}]\n", p_yaml=HEAD + patch)
    return manifests["Deployment"]["spec"]["template"]  # type: ignore[no-any-return]


def test_patch_directives_apply_in_a_list_that_replaces_another() -> None:
    element = "{name: n, env: [{$patch: delete}], tty: null}"
    template = patched(f"spec: {{template: {{spec: {{containers: [{element}, {{$patch: replace}}]}}}}}}\n")
    assert template["spec"]["containers"] == [{"name": "n"}]


def test_patch_directives_apply_in_a_map_that_replaces_another() -> None:
    element = "{name: n, env: [{name: A, $patch: delete}, {name: B, value: x, $patch: replace}]}"
    template = patched(f"spec: {{template: {{$patch: replace, spec: {{containers: [{element}]}}}}}}\n")
    assert template == {"spec": {"containers": [{"name": "n", "env": [{"name": "B", "value": "x"}]}]}}


def test_patch_of_a_template_annotation_changes_the_common_annotation_too() -> None:
    deployment = built(
        "resources: [m]\npatches: [{path: p.yaml}]\n",
        m__kustomization_yaml="resources: [b]\nnamePrefix: p-\n",
        m__b__kustomization_yaml="resources: [d.yaml]\ncommonAnnotations: {k: v1}\n",
        m__b__d_yaml=DEPLOYMENT,
        p_yaml=f"{HEAD}spec: {{template: {{metadata: {{annotations: {{k: v2}}}}}}}}\n",
    )["Deployment"]
    assert deployment["metadata"]["annotations"] == {"k": "v2"}


@pytest.mark.parametrize("rest", ["---\n", "---\nnamePrefix: x-\n", "...\n", "--- # more\na: b: c\n"])
def test_only_the_first_document_of_a_kustomization_is_read(rest: str) -> None:
    assert built(f"# first\n---\nresources: [a.yaml]\n{rest}")["ConfigMap"]["metadata"]["name"] == "a"


def test_kustomization_with_an_empty_first_document_is_empty() -> None:
    assert "empty" in refusal("---\n# nothing\n---\nresources: [a.yaml]\n")


def test_file_that_starts_with_a_yaml_directive_is_refused() -> None:
    assert "directive" in refusal("resources: [a.yaml]\n", a_yaml=f"%YAML 1.1\n---\n{CONFIG_MAP}")


def test_var_without_a_name_is_accepted() -> None:
    entry = "resources: [a.yaml]\nvars: [{objref: {apiVersion: v1, kind: ConfigMap, name: a}}]\n"
    assert built(entry).keys() == {"ConfigMap"}


def test_namespace_transformer_needs_a_list_of_subjects() -> None:
    text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: r}\nsubjects: {name: x}\n"
    assert "subjects must be a list" in refusal("resources: [r.yaml]\nnamespace: ns\n", r_yaml=text)


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


@pytest.mark.parametrize(
    ("ports", "patch", "result"),
    [
        ("{port: 53, protocol: TCP}, {port: 53, name: a}", "", ["a"]),
        ("{port: 80, protocol: UDP, name: a}, {port: 53, name: b}", "{port: 53, name: c}", ["a", "c"]),
        ("{port: 80, protocol: UDP, name: a}, {port: 53}", "{port: 53, $patch: delete}", ["a", None]),
        ("{port: 53, name: a}", "{port: 53, protocol: TCP, name: b}", ["a"]),
        ("", "{port: 53, name: a}, {port: 53, protocol: TCP, name: b}", ["b"]),
    ],
)
def test_port_without_a_protocol_matches_any_port_of_its_number(ports: str, patch: str, result: list[Any]) -> None:
    files = {"s_yaml": f"{SERVICE}spec: {{ports: [{ports}]}}\n", "p_yaml": f"{SERVICE}spec: {{ports: [{patch}]}}\n"}
    if not patch:
        files["p_yaml"] = f"{SERVICE}spec: {{type: NodePort}}\n"
    service_ports = built("resources: [s.yaml]\npatches: [{path: p.yaml}]\n", **files)["Service"]["spec"]["ports"]
    assert [port.get("name") for port in service_ports] == result


def test_patch_with_an_empty_first_document_is_refused() -> None:
    error = refusal("resources: [a.yaml]\npatches: [{path: p.yaml}]\n", p_yaml=f"---\n---\n{CONFIG_MAP}")
    assert "first document is empty" in error


def test_list_that_may_contain_vars_must_contain_strings() -> None:
    entry = "resources: [a.yaml, d.yaml]\nvars: [{name: V, objref: {apiVersion: v1, kind: ConfigMap, name: a}}]\n"
    text = f"{HEAD}spec: {{template: {{spec: {{containers: [{{name: c, args: [--port, 80]}}]}}}}}}\n"
    assert "is not a string" in refusal(entry, d_yaml=text)


def test_patch_cannot_give_two_resources_the_same_name() -> None:
    other = CONFIG_MAP.replace("name: a", "name: b")
    patch = "{path: p.yaml, target: {kind: ConfigMap}, options: {allowNameChange: true}}"
    error = refusal(f"resources: [a.yaml, b.yaml]\npatches: [{patch}]\n", b_yaml=other, p_yaml=CONFIG_MAP)
    assert "two resources the same name" in error


def test_replacement_source_must_be_a_single_field() -> None:
    target = "{select: {kind: ConfigMap}, fieldPaths: [data.x]}"
    source = "{kind: Deployment, fieldPath: spec.template.spec.containers.*.image}"
    entry = f"resources: [a.yaml, d.yaml]\nreplacements: [{{source: {source}, targets: [{target}]}}]\n"
    assert "has a `*`" in refusal(entry)


def test_delete_directive_does_not_remain_in_a_new_container() -> None:
    element = "{name: n, ports: [{containerPort: 1, protocol: UDP}, {containerPort: 2, $patch: delete}]}"
    template = patched(f"spec: {{template: {{spec: {{containers: [{element}]}}}}}}\n")
    assert all("$patch" not in port for port in template["spec"]["containers"][0]["ports"])


def test_replace_directive_does_not_empty_the_ports_of_a_new_container() -> None:
    ports = "[{containerPort: 81, protocol: UDP}, {containerPort: 80}, {$patch: replace}]"
    template = patched(f"spec: {{template: {{spec: {{containers: [{{name: n, ports: {ports}}}]}}}}}}\n")
    assert [port["containerPort"] for port in template["spec"]["containers"][0]["ports"]] == [81, 80]
