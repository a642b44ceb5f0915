"""Live state of an installation, and its predicted state after an apply.

In: a cluster, options. Out: live objects, and everything that an uninstall must consider. Never: writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError
from argosy.features.install.manifests import build_manifests, list_all_keys
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import InstallState, needs_dry_run
from argosy.gitops.application.argosy_component_labels import INSTALL_FIELD_MANAGER
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.kube.client import Cluster
from argosy.kube.controller.sharding.member_lease_format import LEASE_NAME_PREFIX
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION, CONFIG_MAP, LEASE

LEADER_LEASE_NAME: Final = "argosy-application-controller"


@dataclass(frozen=True)
class UninstallState:
    """The live objects that an uninstall must consider."""

    live: InstallState
    applications: Sequence[Manifest]  # in all namespaces
    projects: Sequence[Manifest]
    leases: Sequence[Manifest]
    engines: DeliveryEngines  # other delivery engines with a running controller
    budgets: Manifest | None = None  # the ConfigMap that lists projects over their budgets

    @property
    def has_argocd(self) -> bool:
        """True if the cluster has an Argo CD, or if that is unknown."""
        return bool(self.engines.controller_names) or not self.engines.is_known

    def is_reconciled_by_argocd(self, app: Manifest) -> bool:
        """Return True if an Argo CD reconciles the Application, or if that is unknown."""
        return bool(self.engines.list_watching_controllers(app["metadata"]["namespace"])) or not self.engines.is_known

    def is_delivered_by_argosy(self, app: Manifest) -> bool:
        """Return True if argosy delivers the Application; argosy ignores the finalizers of all others."""
        metadata = app["metadata"]
        return self.engines.find_deliverer(metadata.get("annotations") or {}, metadata["namespace"]).is_argosy

    @property
    def has_running_controller(self) -> bool:
        """True if a controller of argosy runs or stopped a moment ago, according to its Leases."""
        return any((lease.get("spec") or {}).get("holderIdentity") for lease in self.leases)


async def load_install_state(cluster: Cluster, options: InstallOptions) -> InstallState:
    live_objects = await _load_live(cluster, options)
    predicted = {}
    for manifest in build_manifests(options):
        key = key_of(manifest)
        if key in live_objects and needs_dry_run(manifest, live_objects[key]):
            predicted[key] = await cluster.apply(manifest, manager=INSTALL_FIELD_MANAGER, force=True, dry_run=True)
    return InstallState(live_objects, predicted)


async def load_uninstall_state(cluster: Cluster, options: InstallOptions, engines: DeliveryEngines) -> UninstallState:
    return UninstallState(
        InstallState(await _load_live(cluster, options)),
        await _list_all(cluster, APPLICATION),
        await _list_all(cluster, APP_PROJECT),
        [
            lease
            for lease in await _list_all(cluster, LEASE, namespace=options.namespace)
            if _is_controller_lease(lease)
        ],
        engines,
        await cluster.get(ResourceKey(*CONFIG_MAP, options.namespace, BUDGETS_CONFIG_MAP)),
    )


async def _load_live(cluster: Cluster, options: InstallOptions) -> dict[ResourceKey, Manifest]:
    objects = {key: await cluster.get(key) for key in list_all_keys(options)}
    return {key: live for key, live in objects.items() if live is not None}


async def _list_all(cluster: Cluster, kind: GroupKind, *, namespace: str = "") -> Sequence[Manifest]:
    """List all objects of a kind; empty if the cluster does not serve the kind."""
    try:
        return (await cluster.list(kind, namespace=namespace)).items
    except ClusterError as error:
        if error.code != 404:
            raise
        return ()


def _is_controller_lease(lease: Manifest) -> bool:
    name = str(lease["metadata"]["name"])
    return name == LEADER_LEASE_NAME or name.startswith(LEASE_NAME_PREFIX)
