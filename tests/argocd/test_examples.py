"""The examples of this repository, delivered by Argo CD and by argosy: environments, stages, notebooks."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from argosy.features.demo.stages_example_repository import (
    APPLICATIONS_FOLDER,
    REPOSITORY_URL,
    ROOT_FILE,
    add_later_commits,
    create_stages_repository,
)
from argosy.gitops.workspace.hosted_bare_repository import BareRepository
from argosy.kube.objects import Manifest
from argosy.kube.schema.bundled_crds import load_definition
from support.argocd.known_differences import find_unexplained
from support.argocd.pair import APPLICATIONS, CONTROL, Pair
from support.argocd.story import KINDS, OBJECTS_OF_THE_CLUSTER, Story
from support.engine import Repository
from support.paths import ROOT

pytestmark = pytest.mark.tier("argocd")

MODEL_KINDS: Final = {
    **KINDS,
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "serving.kserve.io/InferenceService": "/apis/serving.kserve.io/v1beta1/inferenceservices",
    "serving.kserve.io/ServingRuntime": "/apis/serving.kserve.io/v1alpha1/servingruntimes",
    "mlops.mlops.dev/NotebookValidationJob": "/apis/mlops.mlops.dev/v1alpha1/notebookvalidationjobs",
    "route.openshift.io/Route": "/apis/route.openshift.io/v1/routes",
    "docling.io/DoclingServe": "/apis/docling.io/v1alpha1/doclingserves",
}


def check(pair: Pair, namespaces: Mapping[str, str]) -> None:
    """Compare Applications, by name with their namespaces, and the objects there."""
    pair.wait_until_quiet(list(namespaces))
    unexplained = []
    for name, namespace in namespaces.items():
        differences = pair.compare_application(name)
        differences += [
            difference
            for difference in pair.compare_namespace(namespace, MODEL_KINDS)
            if difference.subject not in OBJECTS_OF_THE_CLUSTER
        ]
        unexplained += find_unexplained(f"examples/{name}", differences)
    assert not unexplained, "\n".join(map(str, unexplained))


def read_application(file: Path, url: str) -> dict[str, Any]:
    """Read an Application, with another repository and the control namespace of both sides."""
    application: dict[str, Any] = yaml.safe_load(file.read_text())
    application["metadata"]["namespace"] = CONTROL
    application["spec"]["source"]["repoURL"] = url
    return application


class Environments:
    """`llmops-via-argocd`: one model in dev, staging and production."""

    NAMESPACES: Final = {
        "llmops-dev": "llmops-dev",
        "llmops-staging": "llmops-staging",
        "llmops-production": "llmops-prod",
    }

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.repository = Repository(folder)
        shutil.copytree(ROOT / "llmops-via-argocd", folder / "llmops-via-argocd")
        self.repository.push({})

    def check(self) -> None:
        check(self.pair, self.NAMESPACES)

    def refresh(self) -> None:
        for name in self.NAMESPACES:
            self.pair.refresh(name)

    def change(self, **changes: tuple[str, str]) -> str:
        """Replace a text in the kustomizations of environments, in one commit; return the commit."""
        files: dict[str, str | Manifest | None] = {}
        for environment, (old, new) in changes.items():
            file = f"llmops-via-argocd/deploy_model/overlays/{environment}/kustomization.yaml"
            text = (self.repository.path / file).read_text()
            assert old in text
            files[file] = text.replace(old, new)
        return self.repository.push(files)


def test_model_in_three_environments(pair: Pair, tmp_path: Path) -> None:
    environments = Environments(pair, tmp_path / "repository")
    first_commit = environments.repository.head
    for file in sorted((ROOT / "llmops-via-argocd/argocd-apps").glob("*.yaml")):
        application = read_application(file, environments.repository.url)
        pair.apply(application)
        pair.wait_until_settled(application["metadata"]["name"])
    environments.check()

    for name in ("llmops-staging", "llmops-production"):
        pair.sync(name)
    environments.check()

    # Development syncs itself; production waits.
    environments.change(
        dev=('limits/cpu\n        value: "2"', 'limits/cpu\n        value: "3"'), production=("value: 2", "value: 3")
    )
    environments.refresh()
    environments.check()
    pair.sync("llmops-production")
    environments.check()

    # Back to the first commit, as `argocd app rollback` does.
    pair.sync("llmops-production", revision=first_commit)
    environments.check()

    # Only development reverts a manual change.
    model = "/apis/serving.kserve.io/v1beta1/namespaces/{}/inferenceservices/{}"
    pair.patch(model.format("llmops-dev", "dev-qwen25-05b-instruct"), {"spec": {"predictor": {"maxReplicas": 5}}})
    pair.patch(
        model.format("llmops-staging", "staging-qwen25-05b-instruct"), {"spec": {"predictor": {"maxReplicas": 5}}}
    )
    environments.check()


@pytest.fixture
def stages(pair: Pair, tmp_path: Path) -> Iterator[tuple[BareRepository, dict[str, dict[str, Any]]]]:
    """The repository of `examples/stages` before its later commits, and its Applications by name."""
    repository = create_stages_repository(tmp_path / "stages.git")
    url = f"file://{repository.folder}"
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", url, str(checkout)], check=True)
    files = [*sorted((checkout / APPLICATIONS_FOLDER).rglob("*.yaml")), checkout / ROOT_FILE]
    for file in files:  # the Applications that the root creates must have the same repository
        text = file.read_text()
        assert REPOSITORY_URL in text
        file.write_text(text.replace(REPOSITORY_URL, url).replace("openshift-gitops", CONTROL))
    identity = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    subprocess.run(["git", "-C", str(checkout), *identity, "commit", "-qam", "use this repository"], check=True)
    subprocess.run(["git", "-C", str(checkout), "push", "--quiet"], check=True)
    applications = [yaml.safe_load(file.read_text()) for file in files]
    yield repository, {application["metadata"]["name"]: application for application in applications}
    for name in applications:
        pair.delete(f"{APPLICATIONS}/{name['metadata']['name']}")


def test_eight_stages(pair: Pair, stages: tuple[BareRepository, dict[str, dict[str, Any]]]) -> None:
    repository, applications = stages
    namespaces = {name: item["spec"]["destination"]["namespace"] for name, item in applications.items()}
    for name, application in applications.items():  # in turn, because two share an object; the root is the last
        pair.apply(application)
        pair.wait_until_settled(name)
    check(pair, namespaces)

    # One branch loses files, the other changes a selector.
    add_later_commits(repository)
    for name in applications:
        pair.refresh(name)
    check(pair, namespaces)

    # The documented corrections: the main branch, and fields that the cluster owns.
    root = copy.deepcopy(applications)
    root["stage01-model-serving"]["spec"]["source"]["targetRevision"] = "main"
    root["stage02-model-alignment"]["spec"]["source"]["targetRevision"] = "main"
    root["stage02-model-alignment"]["spec"]["ignoreDifferences"] = [
        {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/selector", "/spec/template/metadata/labels"]},
        {"group": "docling.io", "kind": "DoclingServe", "jsonPointers": ["/status", "/spec/replicas"]},
    ]
    fields = ["/spec/host", "/spec/tls/insecureEdgeTerminationPolicy", "/status"]
    root["stage00-minio"]["spec"]["ignoreDifferences"] = [
        {"group": "route.openshift.io", "kind": "Route", "jsonPointers": fields}
    ]
    for name in ("stage01-model-serving", "stage02-model-alignment", "stage00-minio"):
        pair.apply(root[name])
    check(pair, namespaces)


NOTEBOOK_HEALTH = """\
local phase = obj.status ~= nil and obj.status.phase or nil
if phase == "Succeeded" then
  return {status = "Healthy", message = "Notebook validation succeeded"}
end
if phase == "Failed" then
  return {status = "Degraded", message = obj.status.message or "Notebook validation failed"}
end
return {status = "Progressing", message = phase or "Initializing notebook validation"}
"""


def build_notebook(name: str, wave: str) -> dict[str, Any]:
    return {
        "apiVersion": "mlops.mlops.dev/v1alpha1",
        "kind": "NotebookValidationJob",
        "metadata": {"name": name, "annotations": {"argocd.argoproj.io/sync-wave": wave}},
        "spec": {
            "notebook": {"git": {"url": "https://git.example/pipeline", "ref": "main"}, "path": f"{name}.ipynb"},
            "podConfig": {"containerImage": "quay.example/notebook:latest"},
        },
    }


@pytest.fixture
def notebook_health(pair: Pair) -> Iterator[None]:
    pair.apply(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    key = "resource.customizations.health.mlops.mlops.dev_NotebookValidationJob"
    path = f"/api/v1/namespaces/{CONTROL}/configmaps/argocd-cm"
    pair.patch(path, {"data": {key: NOTEBOOK_HEALTH}})
    yield
    pair.patch(path, {"data": {key: None}})


@pytest.mark.usefixtures("notebook_health")
@pytest.mark.parametrize("last_phase", ["Succeeded", "Failed"])
def test_model_is_served_after_its_notebooks(story: Story, last_phase: str) -> None:
    """Waves of notebooks before an InferenceService. The test writes the status that an operator would write."""
    model = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "fraud-detection", "annotations": {"argocd.argoproj.io/sync-wave": "4"}},
        "spec": {"predictor": {"sklearn": {"storageUri": "pvc://ml-model-storage/fraud-detection"}}},
    }
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "training", "annotations": {"argocd.argoproj.io/sync-wave": "0"}},
    }
    names = ("preprocessing", "training", "validation")
    notebooks = {f"{name}.yaml": build_notebook(name, str(wave)) for wave, name in enumerate(names, 1)}
    story.push({"settings.yaml": settings, **notebooks, "model.yaml": model})
    story.deliver()
    story.sync()
    path = f"/apis/mlops.mlops.dev/v1alpha1/namespaces/{story.namespace}/notebookvalidationjobs"
    for name in names:
        story.wait_for_object(f"{path}/{name}")
        for phase in ("ValidationRunning", last_phase if name == "validation" else "Succeeded"):
            story.pair.patch(f"{path}/{name}/status", {"status": {"phase": phase}})
    check(story.pair, {story.name: story.namespace})
