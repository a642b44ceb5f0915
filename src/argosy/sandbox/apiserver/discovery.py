"""Discovery documents: aggregated (v2, v2beta1), and the legacy form with one document per group version.

In: the catalog. Out: documents, which the caller caches until the catalog changes. Never: reads the store.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import join_api_version
from argosy.kube.schema.api_resource import ApiResource, Subresource
from argosy.sandbox.apiserver.resource_catalog import ResourceCatalog

SERVICE_CIDRS = [{"clientCIDR": "0.0.0.0/0"}]


def build_aggregated_discovery(catalog: ResourceCatalog, *, is_core: bool, version: str) -> Manifest:
    """`version` is v2 or v2beta1: the same document with two apiVersions."""
    items = [
        _build_aggregated_group(catalog, group, versions)
        for group, versions in catalog.list_group_versions().items()
        if (group == "") == is_core
    ]
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}}
    return {**head, "items": items}


def _build_aggregated_group(catalog: ResourceCatalog, group: str, versions: list[str]) -> Manifest:
    version_documents = []
    for version in versions:
        resources = [_build_aggregated_resource(resource) for resource in catalog.list_resources(group, version)]
        version_documents.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": version_documents}


def _build_aggregated_resource(resource: ApiResource) -> Manifest:
    document: Manifest = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        document["shortNames"] = list(resource.short_names)
    if resource.categories:
        document["categories"] = list(resource.categories)
    if resource.subresources:
        document["subresources"] = [
            _build_aggregated_subresource(resource, subresource) for subresource in resource.subresources
        ]
    return document


def _build_aggregated_subresource(resource: ApiResource, subresource: Subresource) -> Manifest:
    group, version, kind = get_response_kind(resource, subresource)
    return {
        "subresource": subresource.name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(subresource.verbs),
    }


def get_response_kind(resource: ApiResource, subresource: Subresource) -> tuple[str, str, str]:
    if subresource.kind and subresource.version:
        return subresource.group, subresource.version, subresource.kind
    return resource.group, resource.version, subresource.kind or resource.kind


def build_api_versions(address: str) -> Manifest:
    addresses = [{**SERVICE_CIDRS[0], "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def build_group_list(catalog: ResourceCatalog) -> Manifest:
    groups = [
        _build_legacy_group(group, versions) for group, versions in catalog.list_group_versions().items() if group
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def build_api_group(catalog: ResourceCatalog, name: str) -> Manifest | None:
    versions = catalog.list_group_versions().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_build_legacy_group(name, versions)} if versions else None


def _build_legacy_group(name: str, versions: list[str]) -> Manifest:
    version_documents = [{"groupVersion": join_api_version(name, version), "version": version} for version in versions]
    return {"name": name, "versions": version_documents, "preferredVersion": version_documents[0]}


def build_api_resource_list(catalog: ResourceCatalog, group: str, version: str) -> Manifest | None:
    if not catalog.has_group_version(group, version):
        return None
    rows: list[dict[str, Any]] = []
    for resource in catalog.list_resources(group, version):
        rows.append(_build_legacy_resource(resource))
        rows.extend(_build_legacy_subresource(resource, subresource) for subresource in resource.subresources)
    api_version = join_api_version(group, version)
    head: Manifest = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": api_version, "resources": rows}


def _build_legacy_resource(resource: ApiResource) -> Manifest:
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


def _build_legacy_subresource(resource: ApiResource, subresource: Subresource) -> Manifest:
    group, version, kind = get_response_kind(resource, subresource)
    row: Manifest = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if (group, version) != (resource.group, resource.version):
        row |= {"group": group, "version": version}
    return {**row, "kind": kind, "verbs": list(subresource.verbs)}
