"""All manifests of an installation, in apply order.

In: options. Out: manifests, and the keys of all objects that any options create. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from argosy.features.install.options import InstallOptions
from argosy.features.install.roles import build_login_objects, build_rbac
from argosy.features.install.workloads import build_workloads
from argosy.gitops.application.argosy_component_labels import CONTROL_NAMESPACE_LABEL, PART_OF_ARGOSY, PART_OF_LABEL
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition

CRD_NAMES: Final = ("applications.argoproj.io", "appprojects.argoproj.io")
POD_SECURITY_PREFIX: Final = "pod-security.kubernetes.io"


def build_manifests(options: InstallOptions) -> list[Manifest]:
    return [
        build_control_namespace(options),
        *(_build_crd(name) for name in CRD_NAMES),
        *build_rbac(options),
        *build_login_objects(options),
        *build_workloads(options),
    ]


def list_all_keys(options: InstallOptions) -> list[ResourceKey]:
    """List the keys of all objects, for every combination of options that it may have been installed with."""
    option_variants = _list_option_variants(options)
    return list(dict.fromkeys(key_of(manifest) for variant in option_variants for manifest in build_manifests(variant)))


def _list_option_variants(options: InstallOptions) -> Iterator[InstallOptions]:
    for is_read_only in (False, True):
        yield replace(options, is_read_only=is_read_only)


def build_control_namespace(options: InstallOptions) -> Manifest:
    namespace_labels = {
        PART_OF_LABEL: PART_OF_ARGOSY,
        CONTROL_NAMESPACE_LABEL: "true",
        f"{POD_SECURITY_PREFIX}/enforce": "restricted",
        f"{POD_SECURITY_PREFIX}/warn": "restricted",
    }
    return build_namespace(options.namespace, namespace_labels)


def build_namespace(name: str, labels: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def _build_crd(name: str) -> Manifest:
    crd = load_definition(name)
    labels = {**(crd["metadata"].get("labels") or {}), PART_OF_LABEL: PART_OF_ARGOSY}
    return {**crd, "metadata": {**crd["metadata"], "labels": labels}}
