"""All manifests of an installation, in apply order.

In: options. Out: manifests, and the keys of all objects that any options create. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from argosy.features.install.options import InstallOptions
from argosy.features.install.roles import accounts_and_roles, seeds
from argosy.features.install.workloads import workloads
from argosy.gitops.application.install_labels import CONTROL, OURS, PART_OF
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.bundled_crds import definition

DEFINITIONS: Final = ("applications.argoproj.io", "appprojects.argoproj.io")
NAMESPACE: Final = GroupKind("", "Namespace")
DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SECURITY: Final = "pod-security.kubernetes.io"


def manifests(options: InstallOptions) -> list[Manifest]:
    return [
        namespace(options),
        *(_defined(name) for name in DEFINITIONS),
        *accounts_and_roles(options),
        *seeds(options),
        *workloads(options),
    ]


def every_key(options: InstallOptions) -> list[ResourceKey]:
    """List the keys of all objects, for every combination of options that it may have been installed with."""
    all_options = _chosen_otherwise(options)
    return list(dict.fromkeys(key_of(each) for chosen in all_options for each in manifests(chosen)))


def _chosen_otherwise(options: InstallOptions) -> Iterator[InstallOptions]:
    for is_read_only in (False, True):
        yield replace(options, is_read_only=is_read_only)


def namespace(options: InstallOptions) -> Manifest:
    marks = {PART_OF: OURS, CONTROL: "true", f"{SECURITY}/enforce": "restricted", f"{SECURITY}/warn": "restricted"}
    return of_namespace(options.namespace, marks)


def of_namespace(name: str, labels: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def _defined(name: str) -> Manifest:
    made = definition(name)
    labels = {**(made["metadata"].get("labels") or {}), PART_OF: OURS}
    return {**made, "metadata": {**made["metadata"], "labels": labels}}
