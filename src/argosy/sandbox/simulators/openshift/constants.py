"""Kinds of OpenShift, and the names that its parts give to things.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.names import GroupKind

ROUTE: Final = GroupKind("route.openshift.io", "Route")
BUILD_CONFIG: Final = GroupKind("build.openshift.io", "BuildConfig")
BUILD: Final = GroupKind("build.openshift.io", "Build")
IMAGE_STREAM: Final = GroupKind("image.openshift.io", "ImageStream")
IMAGE_STREAM_TAG: Final = GroupKind("image.openshift.io", "ImageStreamTag")
SUBSCRIPTION: Final = GroupKind("operators.coreos.com", "Subscription")
INSTALL_PLAN: Final = GroupKind("operators.coreos.com", "InstallPlan")
CLUSTER_SERVICE_VERSION: Final = GroupKind("operators.coreos.com", "ClusterServiceVersion")
OPERATOR_GROUP: Final = GroupKind("operators.coreos.com", "OperatorGroup")

DOMAIN: Final = "apps.argosy.invalid"  # RFC 2606: nobody can ever own it, so a link to it leads nowhere
REGISTRY: Final = "image-registry.openshift-image-registry.svc:5000"
# the namespace whose operators serve all others, without a group of yours
EVERYWHERE: Final = "openshift-operators"
SERVER: Final = "openshift-apiserver"  # owns the fields that the server of these kinds sets
