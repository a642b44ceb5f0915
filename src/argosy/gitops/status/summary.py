"""Builds status.summary: the images and external URLs of an Application.

In: live manifests of its resource tree, its annotations. Out: `status.summary`. Never: a URL with another scheme than
http or https, because a page shows it as a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from argosy.annotations import IGNORE_DEFAULT_LINKS, LINK_PREFIX
from argosy.gitops.status.wire_format import given, mapping, mappings
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # argo: strconv.ParseBool
_SCHEMES: Final = frozenset({"http", "https"})


def summary(manifests: Iterable[Manifest], annotations: Mapping[str, str]) -> dict[str, list[str]]:
    """argo: sorted, without duplicates."""
    urls, images = set(links(annotations)), set[str]()
    for manifest in manifests:
        urls.update(external_urls(manifest))
        images.update(images_of(manifest))
    return given(externalURLs=sorted(urls), images=sorted(images))


def images_of(manifest: Manifest) -> list[str]:
    """argo: images of Pods only: what runs, not what is desired."""
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Pod"):
        return []
    spec = mapping(manifest.get("spec"))
    containers = [*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))]
    found = (each.get("image") for each in containers)
    return list(dict.fromkeys(image for image in found if isinstance(image, str) and image))


def external_urls(manifest: Manifest) -> list[str]:
    """Return link annotations, and the URLs of an Ingress or a Route."""
    annotations = mapping(mapping(manifest.get("metadata")).get("annotations"))
    found = links(annotations)
    if serves := _SERVING.get(str(manifest.get("kind"))):
        group = split_api_version(str(manifest.get("apiVersion") or ""))[0]
        if group in serves.groups and annotations.get(IGNORE_DEFAULT_LINKS) not in _TRUE:
            found += serves.urls(manifest)
    return list(dict.fromkeys(found))


def links(annotations: Mapping[str, Any]) -> list[str]:
    """argo: a link may be `title|url`, and keeps its title."""
    texts = [text for name, text in annotations.items() if name.startswith(LINK_PREFIX)]
    return sorted(text for text in texts if isinstance(text, str) and is_safe(text.partition("|")[2] or text))


def is_safe(url: str) -> bool:
    """True if a page may show it as a link: http or https, a host, no character that could end an attribute."""
    if any(char <= " " or char in "\"'<>`\\" or char == "\x7f" for char in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.hostname)


def _of_ingress(manifest: Manifest) -> Iterator[str]:
    spec = mapping(manifest.get("spec"))
    entrances = mappings(mapping(mapping(manifest.get("status")).get("loadBalancer")).get("ingress"))
    usual = next((str(host) for each in entrances if (host := each.get("hostname") or each.get("ip"))), "")
    ends = mappings(spec.get("tls"))
    for rule in mappings(spec.get("rules")):
        host = str(rule.get("host") or usual)
        scheme = "https" if any(_ends_for(each, host) for each in ends) else "http"
        for path in mappings(mapping(rule.get("http")).get("paths")):
            url = f"{scheme}://{host}{str(path.get('path') or '').removesuffix('*')}"
            if host and is_safe(url):
                yield url


def _ends_for(tls: Mapping[str, Any], host: str) -> bool:
    # argo: an entry with a secretName counts for all hosts.
    hosts = tls.get("hosts")
    return tls.get("secretName") is not None or (isinstance(hosts, list) and host in hosts)


def _of_route(manifest: Manifest) -> Iterator[str]:
    spec = mapping(manifest.get("spec"))
    scheme = "https" if spec.get("tls") else "http"
    url = f"{scheme}://{spec.get('host') or ''}{spec.get('path') or ''}"
    if is_safe(url):
        yield url


class _Serving(NamedTuple):
    groups: tuple[str, ...]
    urls: Callable[[Manifest], Iterator[str]]


_SERVING: Final = {
    "Ingress": _Serving(("networking.k8s.io", "extensions"), _of_ingress),
    "Route": _Serving(("route.openshift.io",), _of_route),  # argo: does not support Routes
}
