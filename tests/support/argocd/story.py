"""One story: a repository, an Application of it, and what the user does, played on both sides of a pair.

In: a pair, the name of the story. Out: an assertion that both programs gave the same. Never: uses the namespace, the
repository or the Application of another story.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from argosy.kube.objects import Manifest
from support.argocd.comparison import Difference
from support.argocd.known_differences import find_unexplained
from support.argocd.pair import CONTROL, Pair, Side
from support.deadlines import wait_until
from support.engine import Repository

# The kinds that stories deliver, by `group/kind` with the path of their list.
KINDS: Final = {
    "ConfigMap": "/api/v1/configmaps",
    "Secret": "/api/v1/secrets",
    "Service": "/api/v1/services",
    "ServiceAccount": "/api/v1/serviceaccounts",
    "apps/Deployment": "/apis/apps/v1/deployments",
    "batch/Job": "/apis/batch/v1/jobs",
    "rbac/Role": "/apis/rbac.authorization.k8s.io/v1/roles",
}
# Made by controllers of the cluster in every namespace.
OBJECTS_OF_THE_CLUSTER: Final = frozenset({"ConfigMap kube-root-ca.crt", "ServiceAccount default"})


@dataclass
class Story:
    pair: Pair
    name: str
    folder: Path
    repository: Repository = field(init=False)

    def __post_init__(self) -> None:
        self.repository = Repository(self.folder / "repository")

    @property
    def namespace(self) -> str:
        return self.name

    def push(self, files: Mapping[str, str | Manifest | None]) -> str:
        """Commit files below `app/`."""
        return self.repository.push({f"app/{name}": content for name, content in files.items()})

    def build_application(
        self,
        *,
        automated: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        source: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Manifest:
        sync_policy = {
            "syncOptions": ["CreateNamespace=true", *options],
            **({"automated": dict(automated)} if automated is not None else {}),
            **(policy or {}),
        }
        default_source = {"repoURL": self.repository.url, "path": "app", "targetRevision": "HEAD", **(source or {})}
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": self.name, "namespace": CONTROL, **(metadata or {})},
            "spec": {
                "project": "default",
                **({} if "sources" in spec else {"source": default_source}),
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.namespace},
                "syncPolicy": sync_policy,
                **spec,
            },
        }

    def deliver(self, **settings: Any) -> None:
        """Create the Application on both sides, and wait until it was compared."""
        self.pair.apply(self.build_application(**settings))
        self.pair.wait_until_settled(self.name)

    def sync(self, **operation: Any) -> None:
        self.pair.sync(self.name, **operation)

    def refresh(self, kind: str = "normal") -> None:
        self.pair.refresh(self.name, kind)

    def edit(self, path: str, patch: Mapping[str, Any]) -> None:
        """Change a live object in the namespace of the story by a merge patch; `path` as in KINDS, with the name."""
        self.pair.patch(_in_namespace(path, self.namespace), patch)

    def delete(self, path: str) -> None:
        self.pair.delete(_in_namespace(path, self.namespace))

    def wait_for_object(self, path: str) -> None:
        for side in self.pair.sides:
            wait_until(lambda side=side: side.get(path) is not None, f"{side.name} has {path}")

    def delete_application(self, options: Mapping[str, Any] | None = None) -> None:
        self.pair.delete(self.pair.find_path(self.name), options)

    def wait_until_deleted(self) -> None:
        for side in self.pair.sides:
            wait_until(lambda side=side: self.name not in side.list_applications(), f"{side.name} deletes {self.name}")

    def wait_for_retry(self) -> None:
        """Wait until the operation waits for its next attempt on both sides."""
        for side in self.pair.sides:
            wait_until(lambda side=side: self._read_retries(side) > 0, f"{side.name} retries {self.name}")

    def _read_retries(self, side: Side) -> int:
        status = side.list_applications()[self.name].get("status") or {}
        return int((status.get("operationState") or {}).get("retryCount", 0))

    def confirm_deletion(self) -> None:
        """Confirm deletions and prunes as `argocd app confirm-deletion` does."""
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.pair.patch_application(
            self.name, {"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": time}}}
        )

    def check(self) -> None:
        """Wait until both sides are quiet, and compare the Application and the objects of its namespace."""
        self.pair.wait_until_quiet([self.name])
        self._check(
            [
                *self.pair.compare_application(self.name),
                *self._compare_objects(),
                *self.pair.compare_events(self.name),
            ]
        )

    def check_objects(self) -> None:
        """Compare the objects of the namespace, and nothing else."""
        self._check(self._compare_objects())

    def _compare_objects(self) -> list[Difference]:
        return [
            difference
            for difference in self.pair.compare_namespace(self.namespace, KINDS)
            if difference.subject not in OBJECTS_OF_THE_CLUSTER
        ]

    def _check(self, differences: Sequence[Difference]) -> None:
        unexplained = find_unexplained(self.name, differences)
        assert not unexplained, "\n".join(map(str, unexplained))


def _in_namespace(path: str, namespace: str) -> str:
    prefix, plural, name = path.rsplit("/", 2)
    return f"{prefix}/namespaces/{namespace}/{plural}/{name}"
