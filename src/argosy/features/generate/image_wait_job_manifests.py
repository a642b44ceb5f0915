"""Job that blocks a sync until an image is built. In: an image stream tag, a wave. Out: the Job and, if requested,
its RBAC. Never: builds a Job without a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.generate.wait_job_builder import (
    MAX_SHOWN_CHARACTERS,
    WaitJob,
    build_job,
    build_rbac,
    check_dns_label_flag,
    check_image,
    check_name,
    check_seconds,
    check_wave,
    is_tag,
    load_script,
)
from argosy.kube.objects import Manifest
from argosy.kube.schema.name_label_address_syntax import check_dns_subdomain

DEFAULT_IMAGE: Final = "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest"
FINISHED_JOB_TTL_SECONDS: Final = 300
READ_VERBS: Final = ["get", "list", "watch"]


@dataclass(frozen=True)
class ImageWait:
    """`name` is that of the BuildConfig; `image_tag` is `STREAM:TAG`."""

    name: str
    image_tag: str
    namespace: str
    wave: int = -3
    service_account: str = ""  # empty: its own account, with the name of the Job
    timeout: int = 3600
    interval: int = 30
    image: str = DEFAULT_IMAGE
    starts_build: bool = False
    has_rbac: bool = False

    def build_manifests(self) -> list[Manifest]:
        """Build the manifests in apply order."""
        self._validate()
        waiter = self._build_waiter()
        rbac_manifests = build_rbac(waiter, self.build_rules()) if self.has_rbac else []
        return [*rbac_manifests, build_job(waiter)]

    @property
    def job_name(self) -> str:
        return f"wait-for-{self.name}-image"

    @property
    def account(self) -> str:
        return self.service_account or self.job_name

    def build_rules(self) -> list[dict[str, Any]]:
        """Build the RBAC rules that the service account needs."""
        streams = ["imagestreams", "imagestreamtags"]
        rbac_rules: list[dict[str, Any]] = [
            {"apiGroups": ["image.openshift.io"], "resources": streams, "verbs": READ_VERBS},
            {"apiGroups": ["build.openshift.io"], "resources": ["builds"], "verbs": READ_VERBS},
        ]
        if self.starts_build:
            instantiate = ["buildconfigs/instantiate"]
            rbac_rules.append({"apiGroups": ["build.openshift.io"], "resources": instantiate, "verbs": ["create"]})
        return rbac_rules

    def _build_waiter(self) -> WaitJob:
        environment = {
            "BUILD_CONFIG": self.name,
            "IMAGE_TAG": self.image_tag,
            "NAMESPACE": self.namespace,
            "TIMEOUT": str(self.timeout),
            "INTERVAL": str(self.interval),
            "AUTO_START": "true" if self.starts_build else "false",
        }
        return WaitJob(
            name=self.job_name,
            namespace=self.namespace,
            wave=self.wave,
            service_account=self.account,
            container="wait",
            image=self.image,
            script=load_script("wait-for-image.sh"),
            environment=environment,
            timeout=self.timeout,
            finished_ttl_seconds=FINISHED_JOB_TTL_SECONDS,
        )

    def _validate(self) -> None:
        check_name("--name", self.name)
        check_dns_label_flag("the Job's name", self.job_name)  # k8s: it becomes a label of its Pods
        check_dns_label_flag("--namespace", self.namespace)
        check_name("--service-account", self.account)
        check_seconds("--timeout", self.timeout)
        check_seconds("--interval", self.interval)
        check_wave("--sync-wave", self.wave)
        check_image("--image", self.image)
        stream, _, tag = self.image_tag.partition(":")
        if check_dns_subdomain(stream) or not is_tag(tag):
            problem = f"--image-tag {self.image_tag[:MAX_SHOWN_CHARACTERS]!r} is not an image stream tag"
            raise UserError(f"{problem}; write STREAM:TAG, as in {self.name}:latest")
