"""The Helm engine that uses the PyPI library in a confined process, for machines without the `helm` program.

In: a chart's folder and a HelmRelease. Out: documents in the order of `helm template`. Never: runs Go in this process.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from argosy.gitops.render.helm.limits import LIMITS, READ_LIMITS
from argosy.gitops.render.helm.release import Document, HelmFailed, Release
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.program import python_places, run
from argosy.kube.objects import Profile, load, load_all

_WORKER: Final = str(Path(__file__).with_name("worker.py"))  # run by path: importing argosy would be slow
_ORDER: Final = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy"),
    *("PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod"),
    *("ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob"),
    *("IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)
_PLACE: Final = {kind: place for place, kind in enumerate(_ORDER)}
_HOOKS: Final = frozenset(
    f"{when}-{what}" for when in ("pre", "post") for what in ("install", "upgrade", "delete", "rollback")
) | {"test", "test-success"}
_TESTS: Final = {"test", "test-success"}
_SPLIT: Final = re.compile(r"(?:^|\s*\n)---\s*")


class HelmLibrary:
    name = "helm-python-sdk"

    def __init__(self, limits: ProgramLimits = LIMITS) -> None:
        self._limits = limits

    def run(self, chart: Path, work: Path, release: Release) -> list[Document]:
        request = {
            **asdict(release),
            "profile": release.profile.value,
            "chart": str(chart),
            "values": [[each.where, each.content.decode("utf-8", "replace")] for each in release.values],
            "settings": [list(each) for each in release.settings],
            "api_versions": list(release.api_versions),
        }
        ended = run(
            (sys.executable, "-I", "-B", "-X", "utf8", _WORKER),
            folder=chart,
            readable=(work, *python_places()),
            stdin=json.dumps(request).encode(),
            limits=self._limits,
        )
        answer = _answer(ended.stdout)
        if answer is None:
            last = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise HelmFailed(f"the library failed with code {ended.code}: {last}")
        if "error" in answer:
            raise HelmFailed(answer["error"])
        return list(_documents(answer, release))


def _answer(text: bytes) -> Mapping[str, Any] | None:
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _documents(answer: Mapping[str, Any], release: Release) -> Iterator[Document]:
    for source, text in answer["crds"]:
        found = load_all(text, profile=release.profile, where=source, limits=READ_LIMITS)
        yield from (Document(source, each) for each in found if each)
    plain, hooks = [], []
    for source, text in sorted(answer["templates"].items()):
        if _makes_manifests(source):
            for document in _split(source, text, release.profile):
                events = _events(document.value)
                if not events:
                    plain.append(document)
                elif events <= _HOOKS and not (release.skip_tests and events & _TESTS):
                    hooks.append(document)
    yield from sorted(plain, key=_place)
    if not release.skip_hooks:
        yield from sorted(hooks, key=_place)


def _makes_manifests(source: str) -> bool:
    name = source.rpartition("/")[2]
    return not name.startswith("_") and name != "NOTES.txt"


def _split(source: str, text: str, profile: Profile) -> Iterator[Document]:
    for part in _SPLIT.split(text):
        if not part.strip():
            continue
        value = load(part, profile=profile, where=source, limits=READ_LIMITS)
        if value is not None:
            yield Document(source, value)


def _events(value: Any) -> set[str]:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    said = annotations.get("helm.sh/hook") if isinstance(annotations, dict) else None
    return {each.strip().lower() for each in said.split(",")} if isinstance(said, str) else set()


def _place(document: Document) -> tuple[int, str]:
    """Sort key of Helm's install order; kinds that Helm does not list come last, by name."""
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    known = _PLACE.get(str(kind))
    return (len(_PLACE), str(kind)) if known is None else (known, "")
