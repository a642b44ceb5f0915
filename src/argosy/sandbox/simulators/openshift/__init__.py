"""Simulates OpenShift: Routes, builds, image streams, and the operator lifecycle manager.

In: nothing. Out: controllers by kind, CRDs, admission handlers, subresource extensions. Never: handles models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.kube.client import Admitter, Performer
from argosy.kube.controller import Controller
from argosy.kube.names import GroupKind
from argosy.sandbox.simulators.openshift import build_configs, build_requests, image_streams, routes
from argosy.sandbox.simulators.openshift.build_configs import BuildConfigs
from argosy.sandbox.simulators.openshift.builds import Builds
from argosy.sandbox.simulators.openshift.constants import (
    BUILD,
    BUILD_CONFIG,
    CLUSTER_SERVICE_VERSION,
    DOMAIN,
    IMAGE_STREAM,
    INSTALL_PLAN,
    ROUTE,
    SUBSCRIPTION,
)
from argosy.sandbox.simulators.openshift.image_streams import ImageStreams
from argosy.sandbox.simulators.openshift.routes import Routes
from argosy.sandbox.simulators.openshift.subscriptions import InstallPlans, Subscriptions, Versions

PLAYED: Final[dict[GroupKind, Callable[[], Controller]]] = {
    ROUTE: Routes,
    BUILD_CONFIG: BuildConfigs,
    BUILD: Builds,
    IMAGE_STREAM: ImageStreams,
    SUBSCRIPTION: Subscriptions,
    INSTALL_PLAN: InstallPlans,
    CLUSTER_SERVICE_VERSION: Versions,
}
_BUILDING: Final = (
    "buildconfigs.build.openshift.io",
    "builds.build.openshift.io",
    "imagestreams.image.openshift.io",
    "imagestreamtags.image.openshift.io",
)
_OPERATORS: Final = (
    "subscriptions.operators.coreos.com",
    "installplans.operators.coreos.com",
    "clusterserviceversions.operators.coreos.com",
    "operatorgroups.operators.coreos.com",
)
NEEDS: Final[dict[GroupKind, tuple[str, ...]]] = {
    ROUTE: ("routes.route.openshift.io",),
    BUILD_CONFIG: _BUILDING,
    BUILD: _BUILDING,
    IMAGE_STREAM: _BUILDING,
    SUBSCRIPTION: _OPERATORS,
    INSTALL_PLAN: _OPERATORS,
    CLUSTER_SERVICE_VERSION: _OPERATORS,
}
PERFORMERS: Final[Sequence[Performer]] = (build_requests.PERFORMER,)
__all__ = ["DOMAIN", "NEEDS", "PERFORMERS", "PLAYED", "ROUTE", "Routes", "admitters"]


def admitters(domain: str = DOMAIN) -> Sequence[Admitter]:
    return routes.admitter(domain), image_streams.ADMITTER, *build_configs.ADMITTERS
