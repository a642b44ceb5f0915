"""Resolves paths of the Kubernetes API to a target: kind, namespace, name, subresource."""

from __future__ import annotations

import re
from typing import NamedTuple

from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.resource_catalog import ResourceCatalog

NAMESPACE_SUBRESOURCES = ("status", "finalize")
# k8s: a name must not be readable as another path
PATH_SEGMENT = re.compile(r"[^/%\x00-\x1f]+")


class RequestTarget(NamedTuple):
    served: ApiKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False  # the deprecated /watch/ path


class NoSuchPath(Exception):
    """Nothing is served at this path. k8s: the response is plain text."""


def resolve_path(catalog: ResourceCatalog, path: str) -> RequestTarget:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, segments = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4 and parts[1]:
        group, version, segments = parts[1], parts[2], parts[3:]
    else:
        raise NoSuchPath
    if not catalog.has_group_version(group, version):
        raise NoSuchPath
    if not all(PATH_SEGMENT.fullmatch(subresource) and subresource not in (".", "..") for subresource in segments):
        raise status_errors.no_such_resource()
    is_watch = segments[0] == "watch" and len(segments) > 1
    segments = segments[1:] if is_watch else segments
    namespace = ""
    if segments[0] == "namespaces" and len(segments) >= 3 and segments[2] not in NAMESPACE_SUBRESOURCES:
        namespace, segments = segments[1], segments[2:]
    served = catalog.find_resource(group, version, segments[0])
    if served is None and catalog.is_custom_group(group):
        raise NoSuchPath  # k8s: the apiextensions server responds in plain text
    if served is None or (namespace and not served.resource.namespaced):
        raise status_errors.no_such_resource()
    name = segments[1] if len(segments) > 1 else ""
    if name and served.resource.namespaced and not namespace:
        raise NoSuchPath if served.resource.custom else status_errors.no_such_resource()
    subresource = segments[2] if len(segments) > 2 else ""
    if len(segments) > 3 and subresource != "proxy":
        raise status_errors.no_such_resource()
    return RequestTarget(served, namespace, name, subresource, is_watch)
