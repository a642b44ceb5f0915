"""Content of the demo: its repository, settings and Applications.

In: files that ship with argosy. Out: commits and manifests. Never: differs from llmops-via-argocd/ at its last commit,
but for a newer runtime in dev, which waits to be promoted.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from argosy.annotations import PART_OF, SIMULATED
from argosy.features.init.template_files import DEFAULT_REPO_URL, list_llmops_via_argocd_files
from argosy.gitops.delivery_file.delivery_value_types import FILE_NAME
from argosy.gitops.source.repository_access_settings import CONFIG_MAP as SETTINGS
from argosy.gitops.source.repository_access_settings import MIRRORS_SETTING
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from argosy.gitops.workspace.hosted_bare_repository import BareRepository, CommitAuthor, CommitContent
from argosy.kube.objects import Manifest, read_manifests

REPOSITORY: Final = "llmops-demo.git"
DEV, STAGING, PRODUCTION = "llmops-dev", "llmops-staging", "llmops-production"
FOLDER: Final = "llmops-via-argocd"
OVERLAYS: Final = f"{FOLDER}/deploy_model/overlays"
STAGING_OVERLAY: Final = f"{OVERLAYS}/staging/kustomization.yaml"
DEV_OVERLAY: Final = f"{OVERLAYS}/dev/kustomization.yaml"
APPLICATIONS: Final = tuple(
    f"{FOLDER}/argocd-apps/{name}-application.yaml" for name in ("dev", "staging", "production")
)
ANN: Final = CommitAuthor("Ann Engineer", "ann@example.com")
BEN: Final = CommitAuthor("Ben Scientist", "ben@example.com")
HOUR_SECONDS: Final = 3600
SIMULATED_BY: Final = "simulated by argosy"
NOTEBOOK_SYSTEM: Final = "jupyter-notebook-validator-system"
NOTEBOOK_OPERATOR: Final = "jupyter-notebook-validator-operator-controller-manager"

RUNTIME_PATCH: Final = """\
  - target:
      kind: ServingRuntime
      name: qwen25-05b-instruct
    patch: |-
      - op: replace
        path: /spec/containers/0/image
        value: registry.redhat.io/rhaii/vllm-cuda-rhel9:{tag}
"""
NEXT_RUNTIME_PATCH: Final = RUNTIME_PATCH.format(tag="3.3.0")  # only dev has it, until it is promoted

# The promotion pipeline, with gates that a demo of a few minutes can pass.
DELIVERY_YAML: Final = f"""\
# How changes get from one environment to the next: argosy promote status
apiVersion: argosy.dev/v1
kind: Delivery
repository:
  url: {DEFAULT_REPO_URL}
  ref: main
environments:
  dev:
    application: {DEV}
    path: {OVERLAYS}/dev
    sync: auto
  staging:
    application: {STAGING}
    path: {OVERLAYS}/staging
    sync: manual
    after: dev
    gates:
      - check: true
      - healthy: 5s # here so short because it is a demo; 10m is usual
  production:
    application: {PRODUCTION}
    namespace: llmops-prod
    path: {OVERLAYS}/production
    sync: manual
    after: staging
    gates:
      - check: true
      - healthy: 5s
      - soak: 10s
      - approval: release-managers
rbac:
  roles:
    release-managers:
      groups: [carol@example.com, "system:masters"] # you, in the demo
      may: [get, sync]
      applications: default/llmops-*
"""

# Earlier versions of the staging overlay: (old text, new text) of each commit.
FIRST_MEMORY_CHANGE: Final = ("requests/memory\n        value: 6Gi", "requests/memory\n        value: 4Gi")
SECOND_CPU_CHANGE: Final = ('limits/cpu\n        value: "3"', 'limits/cpu\n        value: "2"')


def create_demo_repository(folder: Path) -> BareRepository:
    """Create the repository: staging has one commit that is not synced yet, dev a runtime that is not promoted yet."""
    repository = BareRepository(folder)
    if repository.exists:
        return repository
    repository.create()
    now_seconds = int(time.time())
    final_files = {file.path: file for file in list_llmops_via_argocd_files()}
    staging, dev = final_files[STAGING_OVERLAY], final_files[DEV_OVERLAY]
    second_overlay = _replace_text(staging, SECOND_CPU_CHANGE)
    first_overlay = _replace_text(second_overlay, FIRST_MEMORY_CHANGE)
    repository.commit(
        [
            CommitContent(
                [
                    *(item for item in final_files.values() if item != staging),
                    first_overlay,
                    RepositoryFile(FILE_NAME, DELIVERY_YAML.encode()),
                ],
                "Begin: a model in three environments",
                ANN,
                now_seconds - 50 * HOUR_SECONDS,
            ),
            CommitContent(
                [second_overlay],
                "staging: ask for 6Gi, 4Gi were not enough\n\nLoading the weights took the Pod over its request.",
                BEN,
                now_seconds - 26 * HOUR_SECONDS,
            ),
            CommitContent(
                [staging],
                "staging: allow three CPUs\n\nThe first token took too long under load.",
                ANN,
                now_seconds - 2 * HOUR_SECONDS,
            ),
            CommitContent(
                [RepositoryFile(DEV_OVERLAY, dev.content + NEXT_RUNTIME_PATCH.encode())],
                "dev: try the next vLLM\n\nIt starts in half the time. If dev is content with it, it can be promoted.",
                BEN,
                now_seconds - HOUR_SECONDS,
            ),
        ]
    )
    return repository


def _replace_text(file: RepositoryFile, replacement: tuple[str, str]) -> RepositoryFile:
    text = file.content.decode()
    if text.count(replacement[0]) != 1:
        raise AssertionError(f"{file.path} does not hold {replacement[0]!r} once")
    return RepositoryFile(file.path, text.replace(*replacement).encode())


def build_settings(namespace: str, mirrors: str) -> Manifest:
    """Build argosy-cm with the only key that the demo sets."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SETTINGS, "namespace": namespace, "labels": {PART_OF: "argocd"}},
        "data": {MIRRORS_SETTING: mirrors},
    }


def add_mirror(mirrors: str, url: str, repository: Path) -> str:
    """Add a mirror line from `url`, a placeholder in the manifests, to the demo's repository.

    Lines of users are kept, even one for this URL. A line of a demo whose folder was moved or copied is replaced: its
    path ends like the new one.
    """
    lines, has_line = [], False
    for line in mirrors.splitlines():
        address, _, target = line.strip().partition(" ")
        if address == url:
            has_line = True
            if Path(target.strip()).parts[-2:] == repository.parts[-2:]:
                line = f"{url} file://{repository}"
        lines.append(line)
    if not has_line:
        lines.append(f"{url} file://{repository}")
    return "".join(f"{line}\n" for line in lines)


def build_notebook_operator() -> list[Manifest]:
    """Simulated operator Deployment, as users expect it; its Pod's log shows what argosy's notebook controller logs."""
    labels = {"app.kubernetes.io/name": NOTEBOOK_OPERATOR}
    metadata = {"annotations": {SIMULATED: SIMULATED_BY}, "labels": labels}
    container = {"name": "manager", "image": "simulated.argosy.invalid/notebooks"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    names = {"name": NOTEBOOK_OPERATOR, "namespace": NOTEBOOK_SYSTEM}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NOTEBOOK_SYSTEM}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**names, **metadata}, "spec": spec},
    ]


def read_applications(repository: BareRepository, namespace: str) -> list[Manifest]:
    manifests = [
        manifest for path in APPLICATIONS for manifest in read_manifests(repository.read_file(path), where=path)
    ]
    return [{**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}} for manifest in manifests]
