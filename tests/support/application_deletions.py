"""Deletes an Application of an embedded cluster by calling `advance_deletion` until no finalizer is left.

In: live objects, hooks and finalizers. Out: the steps of the deletion. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.gitops.application import Application, read_application
from argosy.gitops.sync.app_deletion import advance_deletion
from argosy.gitops.sync.deletion_step import DeletionChecks, DeletionStep
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.sync_operations import Stage, finish_jobs, judge

ALL_FINALIZERS = (
    "pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup",
    "resources-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup",
)  # fmt: skip


@dataclass
class Deletion:
    """Calls `advance_deletion` with the live objects and keeps the finalizers that it returns."""

    cluster: Cluster
    hooks: list[Manifest] = field(default_factory=list)
    finalizers: tuple[str, ...] = ALL_FINALIZERS
    annotations: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    may_delete: Callable[[Manifest], str] = lambda _: ""
    may_run_hook: Callable[[ResourceKey], str] = lambda _: ""
    is_foreign: Callable[[Manifest], str] = lambda _: ""
    engine: Cluster | None = None
    well: bool = True
    errors: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def app(self) -> Application:
        metadata = {"name": "demo", "namespace": "argocd", "uid": "u", "finalizers": list(self.finalizers),
                    "deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": self.annotations}  # fmt: skip
        return read_application({"metadata": metadata, "spec": {"syncPolicy": {"syncOptions": self.options}}})

    @property
    def checks(self) -> DeletionChecks:
        return DeletionChecks(self.may_delete, self.may_run_hook, self.is_foreign)

    async def step(self) -> DeletionStep:
        live = await Stage(self.cluster).live()
        answer = await advance_deletion(
            self.app, live, self.hooks, cluster=self.engine or self.cluster, assess_all=judge, checks=self.checks,
        )  # fmt: skip
        self.finalizers = answer.finalizers
        self.messages += [answer.message] if answer.message else []
        self.errors += [answer.error] if answer.error else []
        return answer

    async def finish(self, most: int = 60) -> None:
        for _ in range(most):
            if not self.finalizers:
                return
            await self.step()
            await finish_jobs(self.cluster, well=self.well)
            await asyncio.sleep(0)
        raise AssertionError(f"still {self.finalizers}: {self.messages}")
