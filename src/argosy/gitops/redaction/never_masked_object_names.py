"""Public words: texts that are never masked, even if a Secret contains them.

In: the shipped pages, names and addresses of live objects. Out: whether a text is public. Never: an address with a
password in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import argosy
from argosy.annotations import INSTANCE_LABEL, LAST_APPLIED, TRACKING_ID
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION

ALWAYS_PUBLIC: Final = (ARGOPROJ_API_VERSION, "https://kubernetes.default.svc", "application/json", LAST_APPLIED)

CRD_KIND_NAME: Final = "CustomResourceDefinition"
# By group and kind: a CRD may be in a group of Kubernetes, too.
BUILT_IN_KINDS: Final = frozenset((resource.group, resource.kind) for resource in BUILTIN_RESOURCES)
SETTINGS_CONFIG_MAP: Final = ("ConfigMap", "argocd-cm")
EVERYWHERE: Final = ""  # instead of a namespace
ALL_NAMESPACES: Final = frozenset({EVERYWHERE})


@cache
def load_shipped_text() -> str:
    """Return the text of our own pages, the API, and Argo CD's CRDs."""
    root = Path(argosy.__file__).parent
    files = [*root.glob("web/templates/**/*.html"), *root.glob("web/static/*"), *root.glob("web/api/*.py")]
    files += [*root.glob("features/*/templates/*.html"), *root.glob("features/**/*api.py")]
    files += root.glob("kube/schema/bundled_crds/*.argoproj.io.yaml")
    return "\n".join([*ALWAYS_PUBLIC, *(file.read_text(errors="replace") for file in sorted(files))])


@lru_cache(10_000)
def is_shipped(text: str) -> bool:
    return text in load_shipped_text()


def list_repo_and_server_urls(application: Mapping[str, Any]) -> list[str]:
    """List the addresses of its repositories and its cluster."""
    spec = as_mapping(application.get("spec"))
    sources = [as_mapping(spec.get("source")), *as_mappings(spec.get("sources"))]
    values = [value.get("repoURL") for value in sources] + [as_mapping(spec.get("destination")).get("server")]
    return [value for value in values if isinstance(value, str)]


class PublicWords:
    """Names and addresses of live objects, by namespace. They stay public after the objects are deleted.

    Tenants choose names: a name in one namespace must unmask nothing in another. Public everywhere are only names that
    tenants do not choose: of projects, of kinds of Kubernetes itself, and of cluster-scoped objects that no Application
    delivers. Names of Namespaces and CustomResourceDefinitions are not among them, because many projects let tenants
    create some.

    Whether an Application delivers a cluster-scoped object is decided when its name is looked up, because the settings
    with the label key may arrive after the object. An old label key still counts after the settings change, because
    objects keep their labels until the next sync.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        control_namespace: str = "",
        find_label: Callable[[], str] = lambda: INSTANCE_LABEL,
    ) -> None:
        """`names` are public everywhere. `find_label` returns the label that names the Application of an object."""
        self._control_namespace, self._find_label = control_namespace, find_label
        self._namespaces: dict[str, str | set[str]] = dict.fromkeys(names, EVERYWHERE)  # by name
        self._cluster_scoped: dict[str, dict[tuple[str, str], frozenset[str]]] = {}  # label keys, by name and kind
        self._label_keys = {INSTANCE_LABEL}
        self._addresses: set[str] = set()
        self.withdrawals = 0  # how often a name may have stopped being public

    def add_object(self, manifest: Mapping[str, Any]) -> None:
        metadata, kind = as_mapping(manifest.get("metadata")), str(manifest.get("kind") or "")
        name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
        group = split_api_version(str(manifest.get("apiVersion") or ""))[0]
        is_built_in = "." not in group or (group, kind) in BUILT_IN_KINDS
        if is_built_in or namespace:  # other kinds may be of a tenant's CRD
            self._add_name(kind, EVERYWHERE if is_built_in else namespace)
        if kind == "Namespace":
            namespace = name
        self._add_name(namespace, namespace)
        if namespace:
            is_project = kind == "AppProject" and namespace == self._control_namespace
            self._add_name(name, EVERYWHERE if is_project else namespace)
        elif name:
            self._add_cluster_scoped((group, kind), name, metadata)
        if (kind, name) == SETTINGS_CONFIG_MAP and namespace == self._control_namespace:
            self._read_label_key()
        if kind == "Pod":
            for container in _container_names(as_mapping(manifest.get("spec"))):
                self._add_name(container, namespace)
        if kind == "Application":
            self._addresses.update(
                address for address in list_repo_and_server_urls(manifest) if _has_no_credentials(address)
            )

    def _add_cluster_scoped(self, kind: tuple[str, str], name: str, metadata: Mapping[str, Any]) -> None:
        """Record the name of a cluster-scoped object, unless a tenant may have chosen it."""
        labels_by_kind = self._cluster_scoped.get(name, {})
        labels = None
        if kind[1] != CRD_KIND_NAME and TRACKING_ID not in as_mapping(metadata.get("annotations")):
            labels = frozenset(as_mapping(metadata.get("labels")))
        if kind in labels_by_kind and labels_by_kind[kind] != labels:
            self.withdrawals += 1
        other_kinds = {other_kind: keys for other_kind, keys in labels_by_kind.items() if other_kind != kind}
        # a new mapping: other threads may be iterating over the old one
        self._cluster_scoped[name] = other_kinds if labels is None else {**other_kinds, kind: labels}

    def _read_label_key(self) -> None:
        if (key := self._find_label()) not in self._label_keys:
            self._label_keys.add(key)
            self.withdrawals += 1

    def _is_cluster_scoped_name(self, name: str) -> bool:
        """True if a cluster-scoped object has that name and no Application delivered it."""
        if not (kinds := self._cluster_scoped.get(name)):
            return False
        self._read_label_key()
        return any(self._label_keys.isdisjoint(labels) for labels in kinds.values())

    def _add_name(self, name: str, namespace: str) -> None:
        namespaces = self._namespaces.get(name)
        if not name or namespaces == namespace:
            return
        if namespaces is None:
            self._namespaces[name] = namespace
        elif isinstance(namespaces, str):
            self._namespaces[name] = {namespaces, namespace}
        else:
            namespaces.add(namespace)

    def is_public_everywhere(self, text: str) -> bool:
        """True if the text is public for every reader."""
        return self.is_name_in(text, ALL_NAMESPACES) or self._is_cluster_scoped_name(text) or is_shipped(text)

    def is_name_in(self, text: str, namespaces: frozenset[str]) -> bool:
        """True if the text is a name in one of the namespaces."""
        name_namespaces = self._namespaces.get(text)
        if name_namespaces is None or isinstance(name_namespaces, str):
            return name_namespaces in namespaces
        return not namespaces.isdisjoint(name_namespaces)

    def __contains__(self, text: object) -> bool:
        """True if the text is public anywhere; also for a prefix of an address, such as the host of repositories."""
        if not isinstance(text, str):
            return False
        if text in self._namespaces or self._is_cluster_scoped_name(text) or is_shipped(text):
            return True
        return "://" in text and any(address.startswith(text) for address in self._addresses)


def _container_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield container names; they are public because people select logs by them."""
    for field in ("initContainers", "containers"):
        yield from (str(container.get("name") or "") for container in as_mappings(spec.get(field)))


def _has_no_credentials(address: str) -> bool:
    try:
        return "@" not in urlsplit(address).netloc
    except ValueError:
        return False
