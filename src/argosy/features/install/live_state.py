"""Live state of an installation, and its predicted state after an apply.

In: a cluster, options. Out: live objects, and everything that an uninstall must consider. Never: writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError
from argosy.features.install.manifests import every_key, manifests
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import Found, is_changed_here
from argosy.gitops.application.install_labels import MANAGER
from argosy.gitops.application.project import BUDGETS_CONFIG_MAP
from argosy.gitops.policy.delivery_engine import Engines
from argosy.kube.client import Cluster
from argosy.kube.controller.sharding.leases import PREFIX
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

APPLICATION, PROJECT = GroupKind("argoproj.io", "Application"), GroupKind("argoproj.io", "AppProject")
LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
LEADS: Final = "argosy-application-controller"


@dataclass(frozen=True)
class Remains:
    """The live objects that an uninstall must consider."""

    live: Found
    applications: Sequence[Manifest]  # in all namespaces
    projects: Sequence[Manifest]
    leases: Sequence[Manifest]
    engines: Engines  # other delivery engines with a running controller
    budgets: Manifest | None = None  # the ConfigMap that lists projects over their budgets

    @property
    def has_argocd(self) -> bool:
        """True if the cluster has an Argo CD, or if that is unknown."""
        return bool(self.engines.argocd) or not self.engines.is_known

    def is_theirs(self, app: Manifest) -> bool:
        """Return True if an Argo CD reconciles the Application, or if that is unknown."""
        return bool(self.engines.over(app["metadata"]["namespace"])) or not self.engines.is_known

    def is_delivered(self, app: Manifest) -> bool:
        """Return True if argosy delivers the Application; argosy ignores the finalizers of all others."""
        metadata = app["metadata"]
        return self.engines.deliverer(metadata.get("annotations") or {}, metadata["namespace"]).is_argosy

    @property
    def is_delivering(self) -> bool:
        """True if a controller of argosy runs or stopped a moment ago, according to its Leases."""
        return any((each.get("spec") or {}).get("holderIdentity") for each in self.leases)


async def survey(cluster: Cluster, options: InstallOptions) -> Found:
    found = await _live(cluster, options)
    predicted = {}
    for wanted in manifests(options):
        key = key_of(wanted)
        if key in found and is_changed_here(wanted, found[key]):
            predicted[key] = await cluster.apply(wanted, manager=MANAGER, force=True, dry_run=True)
    return Found(found, predicted)


async def survey_remains(cluster: Cluster, options: InstallOptions, engines: Engines) -> Remains:
    return Remains(
        Found(await _live(cluster, options)),
        await _all(cluster, APPLICATION),
        await _all(cluster, PROJECT),
        [each for each in await _all(cluster, LEASE, namespace=options.namespace) if _is_of_engines(each)],
        engines,
        await cluster.get(ResourceKey("", "ConfigMap", options.namespace, BUDGETS_CONFIG_MAP)),
    )


async def _live(cluster: Cluster, options: InstallOptions) -> dict[ResourceKey, Manifest]:
    found = {key: await cluster.get(key) for key in every_key(options)}
    return {key: live for key, live in found.items() if live is not None}


async def _all(cluster: Cluster, kind: GroupKind, *, namespace: str = "") -> Sequence[Manifest]:
    """List all objects of a kind; empty if the cluster does not serve the kind."""
    try:
        return (await cluster.list(kind, namespace=namespace)).items
    except ClusterError as error:
        if error.code != 404:
            raise
        return ()


def _is_of_engines(lease: Manifest) -> bool:
    name = str(lease["metadata"]["name"])
    return name == LEADS or name.startswith(PREFIX)
