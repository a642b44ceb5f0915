"""Loading of kustomizations: fields, resources, bases, components and links."""

from __future__ import annotations

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"


def names(files: dict[str, str], path: str = "", **options: str) -> list[str]:
    return [
        f"{manifest['kind']}/{manifest['metadata']['name']}" for manifest in build(TextTree(files), path, **options)
    ]


def refusal(files: dict[str, str], path: str = "") -> str:
    with pytest.raises((RenderError, LimitError)) as caught:
        build(TextTree(files), path)
    return str(caught.value)


def test_kustomization_fields_are_case_insensitive() -> None:
    [manifest] = build(
        TextTree({"kustomization.yaml": "Resources: [a.yaml]\nNAMESPACE: one\n", "a.yaml": CONFIG_MAP}), ""
    )
    assert manifest["metadata"] == {"name": "a", "namespace": "one"}


@pytest.mark.parametrize(
    ("kustomization", "said"),
    [
        ("resources: []\nfoo: 1\n", "unknown field foo"),
        ("kind: Kustomization\n", "add resources"),
        ("", "empty"),
        ("resources: a.yaml\n", "must be a list"),
        ("namePrefix: 12\n", "must be a string"),
        ("kind: Other\nresources: []\n", "Kustomization or Component"),
        ("apiVersion: other/v1\nresources: []\n", "v1beta1"),
        ("resources: [zz.yaml]\n", "zz.yaml does not exist"),
        ("resources: ['']\n", "is empty"),
        ("resources: [../../x.yaml]\n", "out of the repository"),
        ("resources: [/etc/passwd]\n", "absolute"),
        ("resources: ['https://example.com/x']\n", "remote"),
        ("resources: [.]\n", "cycle"),
        ("resources: [\n", "kustomization.yaml:2: "),
        ("resources: []\nsortOptions: {}\n", "legacy or fifo"),
        ("helmCharts: [{name: x}]\n", "Helm source"),
        ("resources: []\nvalidators: [v.yaml]\n", "not allowed"),
    ],
)
def test_invalid_kustomization_is_refused_with_file_and_cause(kustomization: str, said: str) -> None:
    message = refusal({"app/kustomization.yaml": kustomization}, "app")
    assert message.startswith("app/kustomization.yaml:")
    assert said in message


def test_two_kustomization_files_in_a_folder_are_refused() -> None:
    assert "several" in refusal({"kustomization.yaml": "resources: []\n", "Kustomization": "resources: []\n"})


def test_file_outside_the_kustomization_folder_is_refused() -> None:
    files = {"a.yaml": CONFIG_MAP, "b/kustomization.yaml": "resources: [../a.yaml]\n"}
    assert "outside the kustomization's folder" in refusal(files, "b")


def test_base_in_another_folder_is_read_and_a_cycle_is_refused() -> None:
    files = {"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": CONFIG_MAP}
    files["top/kustomization.yaml"] = "resources: [../base]\nnamePrefix: p-\n"
    assert names(files, "top") == ["ConfigMap/p-a"]
    files["base/kustomization.yaml"] = "resources: [../top]\n"
    assert "cycle" in refusal(files, "top")


def test_symlink_is_followed_inside_the_tree_only() -> None:
    files = {"kustomization.yaml": "resources: [l.yaml]\n", "a.yaml": CONFIG_MAP}
    assert build(TextTree(files, {"l.yaml": "a.yaml"}), "")[0]["metadata"]["name"] == "a"
    for target in ("../../etc/passwd", "/etc/passwd", "l.yaml"):
        with pytest.raises(RenderError):
            build(TextTree(files, {"l.yaml": target}), "")


def test_duplicate_id_error_names_both_files() -> None:
    files = {"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": CONFIG_MAP, "b.yaml": CONFIG_MAP}
    assert "in a.yaml and b.yaml" in refusal(files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Foo\nmetadata: {name: a\n", "a.yaml:3: "),
        ("kind: Foo\n", "metadata.name"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "no kind"),
        ("- a\n", "not a Kubernetes object"),
        ("kind: A\nmetadata: {name: a}\nx: 1\nx: 2\n", "a.yaml:4: "),
    ],
)
def test_invalid_manifest_is_refused_with_file_and_cause(text: str, said: str) -> None:
    message = refusal({"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text})
    assert message.startswith("a.yaml:")
    assert said in message


def test_list_items_come_after_the_other_documents_of_the_file() -> None:
    text = "kind: List\nitems:\n- {kind: A, metadata: {name: q}}\n---\nkind: B\nmetadata: {name: w}\n"
    files = {"kustomization.yaml": "resources: [l.yaml]\n", "l.yaml": text}
    assert names(files, order="fifo") == ["B/w", "A/q"]


def test_component_transforms_the_resources_of_its_user() -> None:
    files = {"kustomization.yaml": "resources: [a.yaml]\ncomponents: [c]\n", "a.yaml": CONFIG_MAP}
    files["c/kustomization.yaml"] = f"{COMPONENT}namePrefix: z-\n"
    assert names(files) == ["ConfigMap/z-a"]
    assert "Component" in refusal({**files, "kustomization.yaml": "resources: [c]\n"})
    assert "not a Component" in refusal({**files, "c/kustomization.yaml": "resources: []\n"})


def test_resources_are_sorted_by_kind_unless_fifo_is_requested() -> None:
    kinds = ("Deployment", "Service", "ConfigMap", "Namespace", "ValidatingWebhookConfiguration", "Zebra")
    text = "---\n".join(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n" for kind in kinds)
    files = {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text}
    kinds_in_order = [name.split("/")[0] for name in names(files)]
    assert kinds_in_order == [
        "Namespace",
        "ConfigMap",
        "Service",
        "Deployment",
        "Zebra",
        "ValidatingWebhookConfiguration",
    ]
    files["kustomization.yaml"] += "sortOptions: {order: fifo}\n"
    assert [name.split("/")[0] for name in names(files)] == list(kinds)


def test_local_config_resources_are_left_out() -> None:
    text = CONFIG_MAP.replace("{name: a}", "{name: a, annotations: {config.kubernetes.io/local-config: 'true'}}")
    assert names({"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text}) == []


def test_annotation_values_are_converted_to_strings() -> None:
    text = "kind: A\nmetadata:\n  name: a\n  annotations:\n    n: 1.0\n    b:\n    t: true\n"
    [manifest] = build(TextTree({"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text}), "")
    assert manifest["metadata"]["annotations"] == {"n": "1.0", "b": "", "t": "true"}


def test_changing_a_result_does_not_affect_the_next_build() -> None:
    tree = TextTree({"kustomization.yaml": "resources: [a.yaml]\ncommonLabels: {a: b}\n", "a.yaml": CONFIG_MAP})
    first = build(tree, "")
    first[0]["data"]["x"] = "changed"
    assert build(tree, "")[0]["data"] == {"x": "1"}


def test_too_deeply_nested_kustomizations_are_refused() -> None:
    files = {f"k{number}/kustomization.yaml": f"resources: [../k{number + 1}]\n" for number in range(60)}
    assert "flatten" in refusal(files, "k0")


def test_build_metadata_adds_origin_and_transformer_annotations() -> None:
    files = {"base/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: p-\n", "base/a.yaml": CONFIG_MAP}
    files["top/kustomization.yaml"] = (
        "resources: [../base]\nbuildMetadata: [originAnnotations, transformerAnnotations]\n"
    )
    [manifest] = build(TextTree(files), "top")
    assert manifest["metadata"]["annotations"] == {
        "config.kubernetes.io/origin": "path: ../base/a.yaml\n",
        "alpha.config.kubernetes.io/transformations": (
            "- configuredIn: ../base/kustomization.yaml\n"
            "  configuredBy:\n    apiVersion: builtin\n    kind: PrefixTransformer\n"
        ),
    }
