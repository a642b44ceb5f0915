"""Kinds of OpenShift, and fixed names of its components.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.resource_key import GroupKind

IMAGE_STREAM: Final = GroupKind("image.openshift.io", "ImageStream")
IMAGE_STREAM_TAG: Final = GroupKind("image.openshift.io", "ImageStreamTag")
INSTALL_PLAN: Final = GroupKind("operators.coreos.com", "InstallPlan")

DEFAULT_DOMAIN: Final = "apps.argosy.invalid"  # RFC 2606: reserved, so a link to it leads nowhere
REGISTRY_HOST: Final = "image-registry.openshift-image-registry.svc:5000"
# operators in this namespace need no OperatorGroup of the user
GLOBAL_OPERATORS_NAMESPACE: Final = "openshift-operators"
SERVER_FIELD_MANAGER: Final = "openshift-apiserver"  # field manager of fields that the server sets
