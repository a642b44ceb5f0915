"""Simulates OpenShift: Routes, builds, image streams, and the operator lifecycle manager.

In: nothing. Out: controllers by kind, CRDs, admission handlers, subresource extensions. Never: handles models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.kube.client import AdmissionHandler, SubresourceExtension
from argosy.kube.controller import Controller
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import BUILD, BUILD_CONFIG, CLUSTER_SERVICE_VERSION, ROUTE, SUBSCRIPTION
from argosy.sandbox.simulators.openshift import build_configs, build_requests, image_streams, routes
from argosy.sandbox.simulators.openshift.build_configs import BuildConfigController
from argosy.sandbox.simulators.openshift.builds import BuildController
from argosy.sandbox.simulators.openshift.image_streams import ImageStreamController
from argosy.sandbox.simulators.openshift.olm_subscriptions import (
    ClusterServiceVersionController,
    InstallPlanController,
    SubscriptionController,
)
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import (
    DEFAULT_DOMAIN,
    IMAGE_STREAM,
    INSTALL_PLAN,
)
from argosy.sandbox.simulators.openshift.routes import RouteController

CONTROLLERS_BY_KIND: Final[dict[GroupKind, Callable[[], Controller]]] = {
    ROUTE: RouteController,
    BUILD_CONFIG: BuildConfigController,
    BUILD: BuildController,
    IMAGE_STREAM: ImageStreamController,
    SUBSCRIPTION: SubscriptionController,
    INSTALL_PLAN: InstallPlanController,
    CLUSTER_SERVICE_VERSION: ClusterServiceVersionController,
}
_BUILD_CRDS: Final = (
    "buildconfigs.build.openshift.io",
    "builds.build.openshift.io",
    "imagestreams.image.openshift.io",
    "imagestreamtags.image.openshift.io",
)
_OPERATOR_CRDS: Final = (
    "subscriptions.operators.coreos.com",
    "installplans.operators.coreos.com",
    "clusterserviceversions.operators.coreos.com",
    "operatorgroups.operators.coreos.com",
)
REQUIRED_CRDS: Final[dict[GroupKind, tuple[str, ...]]] = {
    ROUTE: ("routes.route.openshift.io",),
    BUILD_CONFIG: _BUILD_CRDS,
    BUILD: _BUILD_CRDS,
    IMAGE_STREAM: _BUILD_CRDS,
    SUBSCRIPTION: _OPERATOR_CRDS,
    INSTALL_PLAN: _OPERATOR_CRDS,
    CLUSTER_SERVICE_VERSION: _OPERATOR_CRDS,
}
SUBRESOURCE_EXTENSIONS: Final[Sequence[SubresourceExtension]] = (build_requests.SUBRESOURCE_EXTENSION,)
__all__ = [
    "CONTROLLERS_BY_KIND",
    "DEFAULT_DOMAIN",
    "REQUIRED_CRDS",
    "ROUTE",
    "SUBRESOURCE_EXTENSIONS",
    "RouteController",
    "build_admission_handlers",
]


def build_admission_handlers(domain: str = DEFAULT_DOMAIN) -> Sequence[AdmissionHandler]:
    return routes.build_admission_handler(domain), image_streams.ADMISSION_HANDLER, *build_configs.ADMISSION_HANDLERS
