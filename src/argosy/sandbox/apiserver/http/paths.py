"""Resolves paths of the Kubernetes API to a target: kind, namespace, name, subresource."""

from __future__ import annotations

import re
from typing import NamedTuple

from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.resource_catalog import Catalog
from argosy.sandbox.apiserver.served_kind import Served

NAMESPACE_PARTS = ("status", "finalize")
# k8s: a name must not be readable as another path
SEGMENT = re.compile(r"[^/%\x00-\x1f]+")


class Target(NamedTuple):
    served: Served
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the deprecated /watch/ path


class NoSuchPath(Exception):
    """Nothing is served at this path. k8s: the response is plain text."""


def resolve(catalog: Catalog, path: str) -> Target:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4 and parts[1]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise NoSuchPath
    if not catalog.has_group_version(group, version):
        raise NoSuchPath
    if not all(SEGMENT.fullmatch(part) and part not in (".", "..") for part in rest):
        raise status_errors.no_such_resource()
    watch = rest[0] == "watch" and len(rest) > 1
    rest = rest[1:] if watch else rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    served = catalog.at(group, version, rest[0])
    if served is None and catalog.is_custom_group(group):
        raise NoSuchPath  # k8s: the apiextensions server responds in plain text
    if served is None or (namespace and not served.resource.namespaced):
        raise status_errors.no_such_resource()
    name = rest[1] if len(rest) > 1 else ""
    if name and served.resource.namespaced and not namespace:
        raise NoSuchPath if served.resource.custom else status_errors.no_such_resource()
    part = rest[2] if len(rest) > 2 else ""
    if len(rest) > 3 and part != "proxy":
        raise status_errors.no_such_resource()
    return Target(served, namespace, name, part, watch)
