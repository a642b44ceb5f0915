"""Job that blocks a sync until a notebook succeeded. In: a NotebookValidationJob and the wave to block. Out: the Job
and its RBAC. Never: uses a PreSync hook, which would wait for a notebook that is only created after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.generate.wait_job_builder import (
    WaitJob,
    build_job,
    build_rbac,
    check_dns_label_flag,
    check_image,
    check_name,
    check_seconds,
    check_wave,
    load_script,
)
from argosy.kube.objects import Manifest

DEFAULT_IMAGE: Final = "bitnami/kubectl:latest"


@dataclass(frozen=True)
class NotebookWait:
    """`name` is that of the NotebookValidationJob; nothing of wave `block_wave` is applied before it succeeded."""

    name: str
    namespace: str
    block_wave: int = 4
    notebook_wave: int | None = None
    service_account: str = "argocd-sync-waiter"
    timeout: int = 3600
    interval: int = 10
    image: str = DEFAULT_IMAGE
    has_rbac: bool = True

    @property
    def job_name(self) -> str:
        return f"wait-for-{self.name}-completion"

    @property
    def account(self) -> str:
        return self.service_account

    @property
    def wave(self) -> int:
        """The wave of the Job: the last one before the blocked wave."""
        # argo: everything of one wave is applied before anything of it is waited for, hooks too. In the blocked wave
        # itself the Job would start together with what it should hold back.
        return self.block_wave - 1

    def build_manifests(self) -> list[Manifest]:
        """Build the manifests in apply order."""
        self._validate()
        waiter = self._build_waiter()
        rbac_manifests = build_rbac(waiter, self.build_rules()) if self.has_rbac else []
        return [*rbac_manifests, build_job(waiter)]

    def build_rules(self) -> list[dict[str, Any]]:
        """Build the RBAC rules that the service account needs."""
        return [{"apiGroups": ["mlops.mlops.dev"], "resources": ["notebookvalidationjobs"], "verbs": ["get"]}]

    def _build_waiter(self) -> WaitJob:
        environment = {
            "NAME": self.name,
            "NAMESPACE": self.namespace,
            "TIMEOUT": str(self.timeout),
            "INTERVAL": str(self.interval),
        }
        return WaitJob(
            name=self.job_name,
            namespace=self.namespace,
            wave=self.wave,
            service_account=self.service_account,
            container="wait",
            image=self.image,
            script=load_script("wait-for-notebook.sh"),
            environment=environment,
            timeout=self.timeout,
        )

    def _validate(self) -> None:
        check_name("--name", self.name)
        check_dns_label_flag("the Job's name", self.job_name)  # k8s: it becomes a label of its Pods
        check_dns_label_flag("--namespace", self.namespace)
        check_name("--service-account", self.service_account)
        check_seconds("--timeout", self.timeout)
        check_seconds("--interval", self.interval)
        check_wave("--block-wave", self.block_wave)
        check_wave("--notebook-wave", self.notebook_wave or 0)
        check_image("--image", self.image)
        if self.notebook_wave is not None and self.notebook_wave >= self.block_wave:
            problem = (
                f"the notebook's wave {self.notebook_wave} does not come before the blocked wave {self.block_wave}"
            )
            raise UserError(f"{problem}, so the sync would never finish; put the notebook into an earlier wave")
