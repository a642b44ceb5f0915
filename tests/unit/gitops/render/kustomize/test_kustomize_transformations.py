"""Effects of kustomize transformers, generators, patches and references on manifests."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  blank:
  said: null
  template:
    spec:
      tolerations: [{key: a}]
      containers:
      - name: x
        image: nginx:1
        env: [{name: A, value: '1'}, {name: B, value: '2'}]
        envFrom: [{configMapRef: {name: a}}]
      - {name: y, image: 'reg:5000/nginx@sha256:abc'}
"""
FILES = {"a.yaml": CONFIG_MAP, "s.yaml": SERVICE, "d.yaml": DEPLOYMENT}


def built(kustomization: str, **more: str) -> dict[str, Any]:
    files = {**FILES, "kustomization.yaml": kustomization}
    files |= {name.replace("_", "."): text for name, text in more.items()}
    return {manifest["kind"]: manifest for manifest in build(TextTree(files), "")}


def refusal(kustomization: str, **more: str) -> str:
    with pytest.raises(RenderError) as caught:
        built(kustomization, **more)
    return str(caught.value)


def containers(manifests_by_kind: dict[str, Any]) -> list[Any]:
    listed: list[Any] = manifests_by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    return listed


def test_name_prefix_and_suffix_change_references_too() -> None:
    manifests = built("resources: [a.yaml, d.yaml]\nnamePrefix: p-\nnameSuffix: -s\nnamespace: one\n")
    assert manifests["ConfigMap"]["metadata"] == {"name": "p-a-s", "namespace": "one"}
    assert containers(manifests)[0]["envFrom"] == [{"configMapRef": {"name": "p-a-s"}}]


def test_namespace_transformer_renames_the_namespace_and_skips_cluster_roles() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: old}\n---\n"
    text += "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"
    manifests = built("resources: [n.yaml]\nnamespace: one\nnamePrefix: p-\n", n_yaml=text)
    assert manifests["Namespace"]["metadata"] == {"name": "one"}
    assert manifests["ClusterRole"]["metadata"] == {"name": "p-r"}


def test_namespace_that_gives_two_resources_the_same_id_is_refused() -> None:
    text = CONFIG_MAP.replace("{name: a}", "{name: a, namespace: other}")
    assert "gives two resources the same id" in refusal("resources: [a.yaml, b.yaml]\nnamespace: one\n", b_yaml=text)


def test_labels_change_selectors_only_if_requested() -> None:
    manifests = built("resources: [d.yaml, s.yaml]\nlabels: [{pairs: {k: v}, includeTemplates: true}]\n")
    assert "selector" not in manifests["Deployment"]["spec"]
    assert manifests["Deployment"]["spec"]["template"]["metadata"] == {"labels": {"k": "v"}}
    by_kind = built("resources: [d.yaml, s.yaml]\ncommonLabels: {k: v}\ncommonAnnotations: {b: c}\n")
    assert by_kind["Deployment"]["spec"]["selector"] == {"matchLabels": {"k": "v"}}
    assert by_kind["Service"]["spec"]["selector"] == {"k": "v"}
    assert by_kind["Service"]["metadata"]["annotations"] == {"b": "c"}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("{name: nginx, newTag: v2}", ["nginx:v2", "reg:5000/nginx@sha256:abc"]),
        ("{name: nginx, newName: other, digest: 'sha256:1'}", ["other@sha256:1", "reg:5000/nginx@sha256:abc"]),
        ("{name: 'reg:5000/nginx', newTag: v3}", ["nginx:1", "reg:5000/nginx:v3"]),
        ("{name: nginx, tagSuffix: -x}", ["nginx:1-x-x", "reg:5000/nginx@sha256:abc"]),
        ("{name: '(?i)NG.*', newTag: v4}", ["nginx:v4", "reg:5000/nginx@sha256:abc"]),
        ("{name: 'ng|x', newTag: v5}", ["nginx:v5", "reg:5000/nginx:v5"]),  # k8s: without brackets
        ("{name: '[[:alpha:]]+', newTag: v6}", ["nginx:v6", "reg:5000/nginx@sha256:abc"]),
    ],
)
def test_images_are_changed_by_name(image: str, expected: list[str]) -> None:
    manifests = built(f"resources: [d.yaml]\nimages: [{image}]\n")
    assert [container["image"] for container in containers(manifests)] == expected


def test_replicas_need_a_resource_of_that_name() -> None:
    assert built("resources: [d.yaml]\nreplicas: [{name: d, count: 5}]\n")["Deployment"]["spec"]["replicas"] == 5
    assert "named zz" in refusal("resources: [d.yaml]\nreplicas: [{name: zz, count: 5}]\n")


def test_generated_name_ends_in_a_hash_that_references_use() -> None:
    manifests = built(
        "resources: [d.yaml]\nconfigMapGenerator: [{name: a, literals: [\"x='q'\"], files: [k=f.txt]}]\n", f_txt="t\n"
    )
    assert manifests["ConfigMap"]["data"] == {"x": "q", "k": "t\n"}
    name = manifests["ConfigMap"]["metadata"]["name"]
    assert len(name) == len("a-") + 10
    assert containers(manifests)[0]["envFrom"][0]["configMapRef"]["name"] == name


def test_name_hash_equals_that_of_kustomize() -> None:
    manifests = built(
        "configMapGenerator: [{name: bob, literals: [fruit=Indian Gooseberry, year=2020, crisis=true]}]\n"
    )
    assert manifests["ConfigMap"]["metadata"]["name"] == "bob-79t79mt227"


def test_generated_secret_values_are_base64_encoded_and_wrapped() -> None:
    options = "options: {disableNameSuffixHash: true, immutable: true, labels: {l: m}}"
    secret = built(f"secretGenerator: [{{name: s, literals: [a=b, long={'x' * 60}], {options}}}]\n")["Secret"]
    assert secret["metadata"] == {"name": "s", "labels": {"l": "m"}}
    assert (secret["type"], secret["immutable"], secret["data"]["a"]) == ("Opaque", True, "Yg==")
    assert [len(line) for line in secret["data"]["long"].split("\n")] == [70, 10, 0]


def test_env_file_lines_become_config_map_entries() -> None:
    manifests = built("configMapGenerator: [{name: e, envs: [e.env]}]\n", e_env="\ufeff# c\n A=1\nB\nC=x=y \n")
    assert manifests["ConfigMap"]["data"] == {"A": "1", "B": "", "C": "x=y "}


def test_generator_merge_and_replace_need_an_existing_resource() -> None:
    merge = "resources: [a.yaml]\nconfigMapGenerator: [{name: a, behavior: merge, literals: [y=2]}]\n"
    assert built(merge)["ConfigMap"]["data"] == {"x": "1", "y": "2"}
    assert built(merge.replace("merge", "replace"))["ConfigMap"]["data"] == {"y": "2"}
    assert "already exists" in refusal(merge.replace("merge", "create"))
    assert "does not exist" in refusal(merge.replace("a.yaml", "d.yaml"))


def test_strategic_merge_patch_merges_by_keys_and_puts_its_elements_first() -> None:
    patch = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec:
      replicas: null
      template:
        spec:
          tolerations: [{key: b}]
          containers:
          - {name: y, $patch: delete}
          - {name: z, image: z}
          - {name: x, env: [{name: B, value: '3'}, {name: C, value: '4'}]}
    """
    manifests = built("resources: [d.yaml]\npatches: [{path: p.yaml}]\n", p_yaml=patch)
    assert [container["name"] for container in containers(manifests)] == ["z", "x"]
    assert [variable["name"] for variable in containers(manifests)[1]["env"]] == ["B", "C", "A"]
    spec = manifests["Deployment"]["spec"]
    assert spec["template"]["spec"]["tolerations"] == [{"key": "b"}]
    assert "replicas" not in spec
    assert "blank" not in spec
    assert spec["said"] is None


def test_list_with_two_merge_keys_keeps_its_order() -> None:
    service = SERVICE.replace("[{port: 80}]", "[{port: 80}, {port: 53, protocol: UDP}, {port: 53, protocol: TCP}]")
    patch = SERVICE.replace("[{port: 80}]", "[{port: 53, protocol: TCP, name: dns}, {port: 90}]")
    manifests = built("resources: [t.yaml]\npatches: [{path: p.yaml}]\n", t_yaml=service, p_yaml=patch)
    assert [port["port"] for port in manifests["Service"]["spec"]["ports"]] == [90, 80, 53, 53]
    assert manifests["Service"]["spec"]["ports"][3] == {"port": 53, "protocol": "TCP", "name": "dns"}


def test_json_patch_applies_to_every_matching_target() -> None:
    patch = "patches: [{target: {name: '[as]'}, patch: '- {op: replace, path: /metadata/labels, value: {k: v}}'}]\n"
    manifests = built(f"resources: [a.yaml, s.yaml, d.yaml]\n{patch}")
    assert [kind for kind, manifest in manifests.items() if manifest["metadata"].get("labels")] == [
        "ConfigMap",
        "Service",
    ]


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("{patch: '- {op: remove, path: /zz}', target: {kind: ConfigMap}}", "patch of ConfigMap a"),
        ("{patch: '- {op: add, path: /zz, value: 1}'}", "needs a target"),
        ("{patch: '{data: {y: z}}'}", "no kind"),
        ("{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: zz}}'}", "no resource is ConfigMap zz"),
        ("{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: text}'}", "data is a map"),
        ("{path: a.yaml, patch: '[]'}", "either"),
        ("{patch: '[]', target: {kind: ConfigMap}}", "is empty"),
        ("{path: zz.yaml}", "zz.yaml does not exist"),
        ("{path: a.yaml, target: {name: '('}}", "not a valid regular expression"),
        ("{path: a.yaml, target: {name: 'a(?=b)'}}", "invalid or unsupported Perl syntax: `(?=`"),
    ],
)
def test_invalid_patch_is_refused_with_a_reason(patch: str, said: str) -> None:
    assert said in refusal(f"resources: [a.yaml]\npatches: [{patch}]\n")


def test_patch_directive_deletes_a_resource() -> None:
    patch = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, $patch: delete}"
    assert list(built(f"resources: [a.yaml, s.yaml]\npatches: [{{patch: '{patch}'}}]\n")) == ["Service"]


def test_replacement_keeps_the_type_of_its_target() -> None:
    source = "source: {kind: ConfigMap, fieldPath: data.x}"
    paths = "[spec.replicas, 'spec.template.spec.containers.[name=x].env.[name=A].value']"
    target = f"targets: [{{select: {{kind: Deployment}}, fieldPaths: {paths}}}]"
    manifests = built(f"resources: [a.yaml, d.yaml]\nreplacements: [{{{source}, {target}}}]\n")
    assert manifests["Deployment"]["spec"]["replicas"] == 1
    assert containers(manifests)[0]["env"][0]["value"] == "1"


def test_replacement_without_its_source_or_target_field_is_refused() -> None:
    target = "{select: {kind: ConfigMap}, fieldPaths: [q.r]}"
    text = f"resources: [a.yaml]\nreplacements: [{{source: {{kind: %s}}, targets: [{target}]}}]\n"
    assert "no resource matches the source" in refusal(text % "Zebra")
    assert "has no field q.r" in refusal(text % "ConfigMap")


def test_replacement_changes_a_part_of_a_string() -> None:
    options = "fieldPaths: ['spec.template.spec.containers.0.image'], options: {delimiter: ':', index: 1}"
    target = f"targets: [{{select: {{kind: Deployment}}, {options}}}]"
    source = "source: {kind: Service, fieldPath: spec.ports.0.port}"
    manifests = built(f"resources: [s.yaml, d.yaml]\nreplacements: [{{{source}, {target}}}]\n")
    assert containers(manifests)[0]["image"] == "nginx:80"


def test_vars_are_replaced_by_final_values() -> None:
    kustomization = """
    namePrefix: p-
    vars:
    - {name: V, objref: {apiVersion: v1, kind: ConfigMap, name: a}}
    - {name: R, objref: {apiVersion: apps/v1, kind: Deployment, name: d}, fieldref: {fieldpath: spec.replicas}}
    patches:
    - {target: {kind: Deployment}, path: args.yaml}
    resources: [a.yaml, d.yaml]
    """
    patch = (
        "- {op: add, path: /spec/template/spec/containers/0/args, value: ['$(V)', 'x$(R)', '$(R)', '$$(V)', '$(NO)']}"
    )
    manifests = built(kustomization, args_yaml=patch)
    assert containers(manifests)[0]["args"] == ["p-a", "x2", 2, "$(V)", "$(NO)"]


def test_configurations_add_name_reference_and_image_fields() -> None:
    config = "nameReference: [{kind: ConfigMap, fieldSpecs: [{path: spec/ref, kind: My}]}]\n"
    config += "images: [{path: spec/img, kind: My}]\n"
    custom_resource = "apiVersion: x/v1\nkind: My\nmetadata: {name: m}\nspec: {ref: a, img: im}\n"
    text = "resources: [a.yaml, m.yaml]\nnamePrefix: p-\nimages: [{name: im, newTag: v9}]\nconfigurations: [c.yaml]\n"
    assert built(text, m_yaml=custom_resource, c_yaml=config)["My"]["spec"] == {"ref": "p-a", "img": "im:v9"}
    assert "unknown field foo" in refusal(text, m_yaml=custom_resource, c_yaml="foo: 1\n")


def test_built_in_transformers_run_and_external_ones_are_refused() -> None:
    plugin = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: t}\n"
    plugin += "prefix: q-\nfieldSpecs: [{path: metadata/name}]\n"
    text = "resources: [a.yaml]\ntransformers: [t.yaml]\n"
    assert built(text, t_yaml=plugin)["ConfigMap"]["metadata"]["name"] == "q-a"
    assert "not allowed" in refusal(text, t_yaml=plugin.replace("builtin", "example.com/v1"))


def test_openapi_schema_defines_merge_keys_of_custom_resources() -> None:
    schema = """
    definitions:
      v1.My:
        properties:
          items:
            type: array
            x-kubernetes-patch-merge-key: name
            x-kubernetes-patch-strategy: merge
            items: {properties: {name: {type: string}}}
        x-kubernetes-group-version-kind: [{group: x, kind: My, version: v1}]
    """
    custom_resource = "apiVersion: x/v1\nkind: My\nmetadata: {name: m}\nitems: [{name: a, v: 1}, {name: b}]\n"
    patch = "apiVersion: x/v1\nkind: My\nmetadata: {name: m}\nitems: [{name: a, w: 2}]\n"
    text = "resources: [m.yaml]\npatches: [{path: p.yaml}]\n"
    assert built(text, m_yaml=custom_resource, p_yaml=patch)["My"]["items"] == [{"name": "a", "w": 2}]
    manifests = built(f"{text}openapi: {{path: s.json}}\n", m_yaml=custom_resource, p_yaml=patch, s_json=schema)
    assert manifests["My"]["items"] == [{"name": "a", "v": 1, "w": 2}, {"name": "b"}]


def test_crds_define_name_references() -> None:
    crd = """
    example.My:
      Schema:
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            properties:
              ref:
                type: object
                x-kubernetes-object-ref-api-version: v1
                x-kubernetes-object-ref-kind: ConfigMap
    """
    custom_resource = "apiVersion: x/v1\nkind: My\nmetadata: {name: m}\nspec: {ref: {name: a}}\n"
    manifests = built(
        "resources: [a.yaml, m.yaml]\nnamePrefix: p-\ncrds: [c.yaml]\n", m_yaml=custom_resource, c_yaml=crd
    )
    assert manifests["My"]["spec"]["ref"] == {"name": "p-a"}


@pytest.mark.parametrize("text", ["[{op: add, path: /x, value: 1}]", '[{"op": "add", "path": "/x", "value": 1}] # why'])
def test_json_patch_that_starts_with_a_bracket_must_be_json(text: str) -> None:
    patches = "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n"
    with pytest.raises(RenderError, match=r"p\.yaml.*must be JSON"):
        build(TextTree({"kustomization.yaml": patches, "a.yaml": CONFIG_MAP, "p.yaml": text}), "")
    assert build(TextTree({"kustomization.yaml": patches, "a.yaml": CONFIG_MAP, "p.yaml": f"\n{text}"}), "")
