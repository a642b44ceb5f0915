"""Builds status.summary: the images and external URLs of an Application.

In: live manifests of its resource tree, its annotations. Out: `status.summary`. Never: a URL with another scheme than
http or https, because a page shows it as a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from argosy.annotations import IGNORE_DEFAULT_LINKS, LINK_PREFIX
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import APPLICATION

_TRUE_VALUES: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # argo: strconv.ParseBool
_SAFE_SCHEMES: Final = frozenset({"http", "https"})


def build_summary(
    manifests: Iterable[Manifest], annotations: Mapping[str, str], keys: Iterable[ResourceKey] = ()
) -> dict[str, Any]:
    """argo: sorted, without duplicates; isAppOfApps if an Application is in the tree.

    `keys` are those of the managed resources, which are in the tree too while they are missing in the cluster.
    """
    urls, images = set(list_links(annotations)), set[str]()
    is_app_of_apps = any(key.group_kind == APPLICATION for key in keys)
    for manifest in manifests:
        group = split_api_version(str(manifest.get("apiVersion") or ""))[0]
        is_app_of_apps = is_app_of_apps or (group, manifest.get("kind")) == APPLICATION
        urls.update(list_external_urls(manifest))
        images.update(list_pod_images(manifest))
    return omit_empty(externalURLs=sorted(urls), images=sorted(images), isAppOfApps=is_app_of_apps)


def list_pod_images(manifest: Manifest) -> list[str]:
    """argo: images of Pods only: what runs, not what is desired."""
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Pod"):
        return []
    spec = as_mapping(manifest.get("spec"))
    containers = [*as_mappings(spec.get("initContainers")), *as_mappings(spec.get("containers"))]
    container_images = (container.get("image") for container in containers)
    return list(dict.fromkeys(image for image in container_images if isinstance(image, str) and image))


def list_external_urls(manifest: Manifest) -> list[str]:
    """Return link annotations, and the URLs of an Ingress or a Route."""
    annotations = as_mapping(as_mapping(manifest.get("metadata")).get("annotations"))
    urls = list_links(annotations)
    if url_source := _URL_SOURCES.get(str(manifest.get("kind"))):
        group = split_api_version(str(manifest.get("apiVersion") or ""))[0]
        if group in url_source.groups and annotations.get(IGNORE_DEFAULT_LINKS) not in _TRUE_VALUES:
            urls += url_source.list_urls(manifest)
    return list(dict.fromkeys(urls))


def list_links(annotations: Mapping[str, Any]) -> list[str]:
    """argo: a link may be `title|url`, and keeps its title."""
    texts = [text for name, text in annotations.items() if name.startswith(LINK_PREFIX)]
    return sorted(text for text in texts if isinstance(text, str) and is_safe_url(text.partition("|")[2] or text))


def is_safe_url(url: str) -> bool:
    """True if a page may show it as a link: http or https, a host, no character that could end an attribute."""
    if any(char <= " " or char in "\"'<>`\\" or char == "\x7f" for char in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in _SAFE_SCHEMES and bool(parts.hostname)


def _list_ingress_urls(manifest: Manifest) -> Iterator[str]:
    spec = as_mapping(manifest.get("spec"))
    load_balancers = as_mappings(as_mapping(as_mapping(manifest.get("status")).get("loadBalancer")).get("ingress"))
    default_host = next(
        (str(host) for entry in load_balancers if (host := entry.get("hostname") or entry.get("ip"))), ""
    )
    tls_entries = as_mappings(spec.get("tls"))
    for rule in as_mappings(spec.get("rules")):
        host = str(rule.get("host") or default_host)
        scheme = "https" if any(_has_tls(entry, host) for entry in tls_entries) else "http"
        for path in as_mappings(as_mapping(rule.get("http")).get("paths")):
            url = f"{scheme}://{host}{str(path.get('path') or '').removesuffix('*')}"
            if host and is_safe_url(url):
                yield url


def _has_tls(tls: Mapping[str, Any], host: str) -> bool:
    # argo: an entry with a secretName counts for all hosts.
    hosts = tls.get("hosts")
    return tls.get("secretName") is not None or (isinstance(hosts, list) and host in hosts)


def _list_route_urls(manifest: Manifest) -> Iterator[str]:
    spec = as_mapping(manifest.get("spec"))
    scheme = "https" if spec.get("tls") else "http"
    url = f"{scheme}://{spec.get('host') or ''}{spec.get('path') or ''}"
    if is_safe_url(url):
        yield url


class _UrlSource(NamedTuple):
    groups: tuple[str, ...]
    list_urls: Callable[[Manifest], Iterator[str]]


_URL_SOURCES: Final = {
    "Ingress": _UrlSource(("networking.k8s.io", "extensions"), _list_ingress_urls),
    "Route": _UrlSource(("route.openshift.io",), _list_route_urls),  # argo: does not support Routes
}
