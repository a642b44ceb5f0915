"""spec.source.kustomize options of an Application, compared with kubectl 1.32 building the edited kustomization."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.render.kustomize import build
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree
from support.paths import VENV

KUBECTL = VENV / "kubectl-1.32" / "kubectl"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1"}
      - {name: side, image: "registry:5000/side@sha256:aa"}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
FILES = {
    "all.yaml": f"{DEPLOYMENT}---\n{SERVICE}",
    "one/kustomization.yaml": f"{COMPONENT}commonAnnotations: {{one: 'yes'}}\n",
    "two/kustomization.yaml": f"{COMPONENT}commonAnnotations: {{two: 'yes'}}\n",
}
OWN = "resources: [all.yaml]\n"


def built(kustomization: str, options: KustomizeOptions, environment: Mapping[str, str] | None = None) -> list[Any]:
    tree = TextTree({**FILES, "kustomization.yaml": kustomization})
    return build(tree, "", options=options, environment=environment)


def refusal(kustomization: str, options: KustomizeOptions) -> str:
    with pytest.raises(RenderError) as caught:
        built(kustomization, options)
    return str(caught.value)


CASES: list[tuple[str, KustomizeOptions, str, str]] = [
    ("prefix", KustomizeOptions(name_prefix="a-"), OWN + "namePrefix: old-\n", OWN + "namePrefix: a-\n"),
    ("suffix", KustomizeOptions(name_suffix="-a"), OWN, OWN + "nameSuffix: -a\n"),
    ("namespace", KustomizeOptions(namespace="a"), OWN + "namespace: old\n", OWN + "namespace: a\n"),
    ("tag", KustomizeOptions(images=("nginx:2",)), OWN, OWN + "images: [{name: nginx, newTag: '2'}]\n"),
    ("rename", KustomizeOptions(images=("nginx=h:5/n",)), OWN, OWN + "images: [{name: nginx, newName: 'h:5/n'}]\n"),
    (
        "rename and tag",
        KustomizeOptions(images=("nginx=host:5000/n:2",)),
        OWN,
        OWN + "images: [{name: nginx, newName: 'host:5000/n', newTag: '2'}]\n",
    ),
    (
        "digest",
        KustomizeOptions(images=("nginx@sha256:bb",)),
        OWN,
        OWN + "images: [{name: nginx, digest: 'sha256:bb'}]\n",
    ),
    (
        "tag and digest",
        KustomizeOptions(images=("nginx=new:3@sha256:bb",)),
        OWN,
        OWN + "images: [{name: nginx, newName: new, newTag: '3', digest: 'sha256:bb'}]\n",
    ),
    (
        "a registry with a port",
        KustomizeOptions(images=("registry:5000/side:7",)),
        OWN,
        OWN + "images: [{name: 'registry:5000/side', newTag: '7'}]\n",
    ),
    (
        "an image that the file has is replaced, others stay, in the order of their names",
        KustomizeOptions(images=("nginx:9",)),
        OWN + "images: [{name: nginx, newName: gone, newTag: '1'}, {name: a, newTag: '1'}]\n",
        OWN + "images: [{name: a, newTag: '1'}, {name: nginx, newTag: '9'}]\n",
    ),
    (
        "a star keeps what the file has",
        KustomizeOptions(images=("nginx=*:9",)),
        OWN + "images: [{name: nginx, newName: kept, newTag: '1'}]\n",
        OWN + "images: [{name: nginx, newName: kept, newTag: '9'}]\n",
    ),
    (
        "a star keeps nothing where the file has nothing",
        KustomizeOptions(images=("nginx=new:*",)),
        OWN,
        OWN + "images: [{name: nginx, newName: new}]\n",
    ),
    (
        "replicas",
        KustomizeOptions(replicas=(("web", 4),)),
        OWN + "replicas: [{name: web, count: 2}]\n",
        OWN + "replicas: [{name: web, count: 4}]\n",
    ),
    (
        "labels with selectors",
        KustomizeOptions(common_labels={"team": "a"}),
        OWN + "commonLabels: {x: one}\n",
        OWN + "commonLabels: {x: one, team: a}\n",
    ),
    (
        "labels by force",
        KustomizeOptions(common_labels={"team": "a"}, force_common_labels=True),
        OWN + "commonLabels: {team: old}\n",
        OWN + "commonLabels: {team: a}\n",
    ),
    (
        "labels without selectors",
        KustomizeOptions(common_labels={"team": "a"}, label_without_selector=True),
        OWN,
        OWN + "labels: [{pairs: {team: a}}]\n",
    ),
    (
        "labels without selectors, in templates",
        KustomizeOptions(common_labels={"team": "a"}, label_without_selector=True, label_include_templates=True),
        OWN + "labels: [{pairs: {team: b}}]\n",
        OWN + "labels: [{pairs: {team: b}}, {pairs: {team: a}, includeTemplates: true}]\n",
    ),
    (
        "labels without selectors by force",
        KustomizeOptions(common_labels={"t": "a", "u": "b"}, label_without_selector=True, force_common_labels=True),
        OWN + "labels: [{pairs: {t: old, v: w}}]\n",
        OWN + "labels: [{pairs: {t: a, v: w}}, {pairs: {u: b}}]\n",
    ),
    (
        "quotes around a value are taken off",
        KustomizeOptions(common_annotations={"a": '"b"', "c": "d:e"}),
        OWN,
        OWN + "commonAnnotations: {a: b, c: 'd:e'}\n",
    ),
    (
        "annotations by force",
        KustomizeOptions(common_annotations={"a": "b"}, force_common_annotations=True),
        OWN + "commonAnnotations: {a: old, c: d}\n",
        OWN + "commonAnnotations: {a: b, c: d}\n",
    ),
    (
        "patches come after the file's own",
        KustomizeOptions(
            patches=(
                {"target": {"kind": "Deployment"}, "patch": "- {op: replace, path: /spec/replicas, value: 9}"},
                {"patch": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort}\n"},
            )
        ),
        OWN + "patches: [{target: {kind: Deployment}, patch: '- {op: replace, path: /spec/replicas, value: 3}'}]\n",
        OWN
        + "patches:\n- {target: {kind: Deployment}, patch: '- {op: replace, path: /spec/replicas, value: 9}'}\n"
        + "- patch: '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort}}'\n",
    ),
    ("components", KustomizeOptions(components=("two", "one")), OWN, OWN + "components: [two, one]\n"),
    (
        "a component that the file has is not added again",
        KustomizeOptions(components=("one", "two")),
        OWN + "components: [two]\n",
        OWN + "components: [two, one]\n",
    ),
    ("components by pattern", KustomizeOptions(components=("[o-t][nw]?", "o*")), OWN, OWN + "components: [one, two]\n"),
    (
        "missing components are ignored",
        KustomizeOptions(components=("gone", "one", "https://github.com/org/repo//x"), ignore_missing_components=True),
        OWN,
        OWN + "components: [one]\n",
    ),
]


@pytest.mark.parametrize(("options", "own", "edited"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_options_match_build_of_the_edited_kustomization(options: KustomizeOptions, own: str, edited: str) -> None:
    assert built(own, options) == build(TextTree({**FILES, "kustomization.yaml": edited}), "")


@pytest.mark.parametrize(
    ("options", "own", "edited"),
    [
        pytest.param(*case[1:], id=case[0], marks=pytest.mark.tier("all") if number % 5 else ())
        for number, case in enumerate(CASES)
    ],
)
def test_options_match_kubectl_build_of_the_edited_kustomization(
    options: KustomizeOptions, own: str, edited: str, tmp_path: Path
) -> None:
    assert built(own, options) == kubectl({**FILES, "kustomization.yaml": edited}, tmp_path)


def kubectl(files: Mapping[str, str], folder: Path) -> list[Any]:
    if not KUBECTL.is_file():
        pytest.skip("kubectl 1.32 is not here: make install")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, check=True)
    return read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE)


class Asked(Mapping[str, str]):
    """An environment mapping that records which names were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values_by_name, self.asked = values, set[str]()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def test_build_variables_are_substituted_in_images_labels_and_annotations() -> None:
    environment = Asked({"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_REVISION": "abc", "KUBE_VERSION": "1"})
    options = KustomizeOptions(
        images=("nginx:${ARGOCD_APP_REVISION}",),
        common_labels={"app": "$ARGOCD_APP_NAME"},
        force_common_labels=True,
        common_annotations={"cost": "$$5 ${ARGOCD_APP_NAME}"},
        common_annotations_envsubst=True,
    )
    web = built(OWN, options, environment)[1]
    assert web["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:abc"
    assert web["metadata"] == {"name": "web", "labels": {"app": "shop"}, "annotations": {"cost": "$5 shop"}}
    assert environment.asked == {"ARGOCD_APP_NAME", "ARGOCD_APP_REVISION"}


def test_annotations_are_not_substituted_without_common_annotations_envsubst() -> None:
    environment = Asked({"A": "b"})
    [_, web] = built(OWN, KustomizeOptions(common_annotations={"cost": "$A"}), environment)
    assert web["metadata"]["annotations"] == {"cost": "$A"}
    assert not environment.asked


@pytest.mark.parametrize(
    ("options", "own", "said"),
    [
        (KustomizeOptions(images=("nginx",)), OWN, "source.kustomize.images: 'nginx' does not set"),
        (KustomizeOptions(common_labels={"a": "b"}), OWN + "commonLabels: {a: c}\n", "set forceCommonLabels"),
        (
            KustomizeOptions(common_labels={"a": "b"}, label_without_selector=True),
            OWN + "labels: [{pairs: {a: c}}]\n",
            "set forceCommonLabels",
        ),
        (KustomizeOptions(common_annotations={"a": "b"}), OWN + "commonAnnotations: {a: c}\n", "set forceCommonAnno"),
        (KustomizeOptions(common_labels={"a": "b"}, label_include_templates=True), OWN, "needs labelWithoutSelector"),
        (KustomizeOptions(replicas=(("gone", 1),)), OWN, "is named gone"),
        (KustomizeOptions(replicas=(("", 1),)), OWN, "invalid name"),
        (KustomizeOptions(components=("gone",)), OWN, "gone does not exist"),
        (KustomizeOptions(components=("gone*",)), OWN, "gone* does not exist"),
        (KustomizeOptions(components=("../../x",)), OWN, "leads out of the repository"),
        (KustomizeOptions(components=("https://github.com/org/repo//x",)), OWN, "is remote"),
        (KustomizeOptions(patches=({"foo": 1},)), OWN, "unknown field patches[0].foo"),
        (KustomizeOptions(patches=({"patch": "x: y"},)), OWN, "no kind"),
    ],
)
def test_invalid_options_are_rejected_with_a_reason(options: KustomizeOptions, own: str, said: str) -> None:
    assert said in refusal(own, options)


def test_options_do_not_change_the_kustomization_of_a_base() -> None:
    base = "namePrefix: b-\nresources: [a.yaml]\n"
    tree = TextTree({"kustomization.yaml": "resources: [b]\n", "b/kustomization.yaml": base, "b/a.yaml": SERVICE})
    [manifest] = build(tree, "", options=KustomizeOptions(name_prefix="a-"))
    assert manifest["metadata"]["name"] == "a-b-web"
