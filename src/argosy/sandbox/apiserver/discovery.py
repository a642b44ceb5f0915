"""Discovery documents: aggregated (v2, v2beta1), and the legacy form with one document per group version.

In: the catalog. Out: documents, which the caller caches until the catalog changes. Never: reads the store.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.names import join_api_version
from argosy.kube.objects import Manifest
from argosy.kube.schema.resources import Resource, Subresource
from argosy.sandbox.apiserver.resource_catalog import Catalog

SERVICE_CIDRS = [{"clientCIDR": "0.0.0.0/0"}]


def aggregated(catalog: Catalog, *, core: bool, version: str) -> Manifest:
    """`version` is v2 or v2beta1: the same document with two apiVersions."""
    items = [_group(catalog, group, versions) for group, versions in catalog.groups().items() if (group == "") == core]
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}}
    return {**head, "items": items}


def _group(catalog: Catalog, group: str, versions: list[str]) -> Manifest:
    found = []
    for version in versions:
        resources = [_resource(resource) for resource in catalog.resources(group, version)]
        found.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": found}


def _resource(resource: Resource) -> Manifest:
    shown: Manifest = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if resource.subresources:
        shown["subresources"] = [_subresource(resource, each) for each in resource.subresources]
    return shown


def _subresource(resource: Resource, each: Subresource) -> Manifest:
    group, version, kind = answer_kind(resource, each)
    return {
        "subresource": each.name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(each.verbs),
    }


def answer_kind(resource: Resource, each: Subresource) -> tuple[str, str, str]:
    if each.kind and each.version:
        return each.group, each.version, each.kind
    return resource.group, resource.version, each.kind or resource.kind


def api_versions(address: str) -> Manifest:
    addresses = [{**SERVICE_CIDRS[0], "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(catalog: Catalog) -> Manifest:
    groups = [_legacy_group(group, versions) for group, versions in catalog.groups().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalog: Catalog, name: str) -> Manifest | None:
    versions = catalog.groups().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_legacy_group(name, versions)} if versions else None


def _legacy_group(name: str, versions: list[str]) -> Manifest:
    shown = [{"groupVersion": join_api_version(name, version), "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def resource_list(catalog: Catalog, group: str, version: str) -> Manifest | None:
    if not catalog.has_group_version(group, version):
        return None
    rows: list[dict[str, Any]] = []
    for resource in catalog.resources(group, version):
        rows.append(_legacy_resource(resource))
        rows.extend(_legacy_subresource(resource, each) for each in resource.subresources)
    api_version = join_api_version(group, version)
    head: Manifest = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": api_version, "resources": rows}


def _legacy_resource(resource: Resource) -> Manifest:
    row: Manifest = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    return row


def _legacy_subresource(resource: Resource, each: Subresource) -> Manifest:
    group, version, kind = answer_kind(resource, each)
    row: Manifest = {"name": f"{resource.plural}/{each.name}", "singularName": "", "namespaced": resource.namespaced}
    if (group, version) != (resource.group, resource.version):
        row |= {"group": group, "version": version}
    return {**row, "kind": kind, "verbs": list(each.verbs)}
