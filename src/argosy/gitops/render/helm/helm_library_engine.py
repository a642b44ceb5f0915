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

from argosy.gitops.render.helm.engine_interface import HelmDocument, HelmFailure, HelmRelease
from argosy.gitops.render.helm.limits import HELM_LIMITS, HELM_OUTPUT_LIMITS
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import list_python_paths, run
from argosy.kube.objects import YamlDialect, read_yaml, read_yaml_documents

_WORKER_SCRIPT: Final = str(Path(__file__).with_name("worker.py"))  # run by path: importing argosy would be slow
_INSTALL_ORDER: Final = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy"),
    *("PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod"),
    *("ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob"),
    *("IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)
_INSTALL_INDEX: Final = {kind: index for index, kind in enumerate(_INSTALL_ORDER)}
_HOOK_EVENTS: Final = frozenset(
    f"{when}-{action}" for when in ("pre", "post") for action in ("install", "upgrade", "delete", "rollback")
) | {"test", "test-success"}
_TEST_EVENTS: Final = {"test", "test-success"}
_DOCUMENT_SEPARATOR: Final = re.compile(r"(?:^|\s*\n)---\s*")


class HelmLibrary:
    name = "helm-python-sdk"

    def __init__(self, limits: ProgramLimits = HELM_LIMITS) -> None:
        self._limits = limits

    def run(self, chart: Path, work: Path, release: HelmRelease) -> list[HelmDocument]:
        request = {
            **asdict(release),
            "profile": release.profile.value,
            "chart": str(chart),
            "values": [[item.where, item.content.decode("utf-8", "replace")] for item in release.values],
            "settings": [list(item) for item in release.settings],
            "api_versions": list(release.api_versions),
        }
        result = run(
            (sys.executable, "-I", "-B", "-X", "utf8", _WORKER_SCRIPT),
            folder=chart,
            readable=(work, *list_python_paths()),
            stdin=json.dumps(request).encode(),
            limits=self._limits,
        )
        answer = _read_answer(result.stdout)
        if answer is None:
            last_line = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise HelmFailure(f"the library failed with code {result.code}: {last_line}")
        if "error" in answer:
            raise HelmFailure(answer["error"])
        return list(_list_documents(answer, release))


def _read_answer(text: bytes) -> Mapping[str, Any] | None:
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _list_documents(answer: Mapping[str, Any], release: HelmRelease) -> Iterator[HelmDocument]:
    for source, text in answer["crds"]:
        crds = read_yaml_documents(text, dialect=release.profile, where=source, limits=HELM_OUTPUT_LIMITS)
        yield from (HelmDocument(source, crd) for crd in crds if crd)
    manifests, hooks = [], []
    for source, text in sorted(answer["templates"].items()):
        if _is_manifest_template(source):
            for document in _split_documents(source, text, release.profile):
                events = _read_hook_events(document.value)
                if not events:
                    manifests.append(document)
                elif events <= _HOOK_EVENTS and not (release.skip_tests and events & _TEST_EVENTS):
                    hooks.append(document)
    yield from sorted(manifests, key=_install_order_key)
    if not release.skip_hooks:
        yield from sorted(hooks, key=_install_order_key)


def _is_manifest_template(source: str) -> bool:
    name = source.rpartition("/")[2]
    return not name.startswith("_") and name != "NOTES.txt"


def _split_documents(source: str, text: str, profile: YamlDialect) -> Iterator[HelmDocument]:
    for part in _DOCUMENT_SEPARATOR.split(text):
        if not part.strip():
            continue
        value = read_yaml(part, dialect=profile, where=source, limits=HELM_OUTPUT_LIMITS)
        if value is not None:
            yield HelmDocument(source, value)


def _read_hook_events(value: Any) -> set[str]:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    hook_text = annotations.get("helm.sh/hook") if isinstance(annotations, dict) else None
    return {event.strip().lower() for event in hook_text.split(",")} if isinstance(hook_text, str) else set()


def _install_order_key(document: HelmDocument) -> tuple[int, str]:
    """Sort key of Helm's install order; kinds that Helm does not list come last, by name."""
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    index = _INSTALL_INDEX.get(str(kind))
    return (len(_INSTALL_INDEX), str(kind)) if index is None else (index, "")
