"""What OpenShift AI adds to a cluster: its operator, which keeps Gateways as it wants them, and that of Docling.

In: nothing. Out: controllers by kind, and definitions. Never: knows of models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from argosy.kube.controller import Controller
from argosy.kube.names import GroupKind
from argosy.sandbox.simulators.openshift_ai.constants import DATA_SCIENCE_CLUSTER, DOCLING_SERVE
from argosy.sandbox.simulators.openshift_ai.data_science_clusters import DataScienceClusters
from argosy.sandbox.simulators.openshift_ai.docling_serves import DoclingServes

PLAYED: Final[dict[GroupKind, Callable[[], Controller]]] = {
    DATA_SCIENCE_CLUSTER: DataScienceClusters,
    DOCLING_SERVE: DoclingServes,
}
NEEDS: Final[dict[GroupKind, tuple[str, ...]]] = {
    DATA_SCIENCE_CLUSTER: (
        "datascienceclusters.datasciencecluster.opendatahub.io",
        "gateways.networking.istio.io",
        # A cluster for models has these as well; they are kept as they are written, and nobody plays them.
        "servicemeshcontrolplanes.maistra.io",
        "clusterpolicies.nvidia.com",
        "nodefeaturediscoveries.nfd.openshift.io",
    ),
    DOCLING_SERVE: ("doclingserves.docling.io",),
}
__all__ = ["NEEDS", "PLAYED"]
