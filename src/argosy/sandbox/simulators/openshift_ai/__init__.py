"""Simulates OpenShift AI: its operator, which owns Istio Gateways, and the Docling operator.

In: nothing. Out: controllers by kind, and CRDs. Never: handles models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from argosy.kube.controller import Controller
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import DATA_SCIENCE_CLUSTER
from argosy.sandbox.simulators.openshift_ai.data_science_clusters import DataScienceClusterController
from argosy.sandbox.simulators.openshift_ai.docling_serves import DoclingServeController
from argosy.sandbox.simulators.openshift_ai.kinds_and_field_managers import DOCLING_SERVE

CONTROLLERS_BY_KIND: Final[dict[GroupKind, Callable[[], Controller]]] = {
    DATA_SCIENCE_CLUSTER: DataScienceClusterController,
    DOCLING_SERVE: DoclingServeController,
}
REQUIRED_CRDS: Final[dict[GroupKind, tuple[str, ...]]] = {
    DATA_SCIENCE_CLUSTER: (
        "datascienceclusters.datasciencecluster.opendatahub.io",
        "gateways.networking.istio.io",
        # Model clusters have these kinds too; they are stored but not simulated.
        "servicemeshcontrolplanes.maistra.io",
        "clusterpolicies.nvidia.com",
        "nodefeaturediscoveries.nfd.openshift.io",
    ),
    DOCLING_SERVE: ("doclingserves.docling.io",),
}
__all__ = ["CONTROLLERS_BY_KIND", "REQUIRED_CRDS"]
