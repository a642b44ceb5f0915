"""What everybody may know, so that no Secret hides it: whoever puts such a word into one hides no page with it.

In: what ships with the page, names and addresses of what lives. Out: whether a text is public. Never: an address with
a password in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.model.annotations import INSTANCE_LABEL, LAST_APPLIED, TRACKING_ID
from argosy.model.names import split_api_version
from argosy.report.wire import mapping, mappings

ALWAYS: Final = ("argoproj.io/v1alpha1", "https://kubernetes.default.svc", "application/json", LAST_APPLIED)

DEFINITION: Final = "CustomResourceDefinition"
EVERYWHERE: Final = ""  # instead of a namespace
ALL_NAMESPACES: Final = frozenset({EVERYWHERE})


@cache
def shipped() -> str:
    """Our own pages, the API, and Argo CD's kinds."""
    import argosy.schema.definitions

    server, definitions = Path(__file__).parents[1], Path(argosy.schema.definitions.__file__).parent
    files = [*server.glob("templates/**/*.html"), *server.glob("static/*"), *server.glob("api/*.py")]
    files += definitions.glob("*.argoproj.io.yaml")
    return "\n".join([*ALWAYS, *(each.read_text(errors="replace") for each in sorted(files))])


@lru_cache(10_000)
def is_shipped(text: str) -> bool:
    return text in shipped()


def addresses(application: Mapping[str, Any]) -> list[str]:
    """Of its repositories, and of its cluster."""
    spec = mapping(application.get("spec"))
    sources = [mapping(spec.get("source")), *mappings(spec.get("sources"))]
    found = [each.get("repoURL") for each in sources] + [mapping(spec.get("destination")).get("server")]
    return [each for each in found if isinstance(each, str)]


class Public:
    """Names and addresses of live objects, by namespace. They stay public when the objects go.

    Tenants choose names: a name of one namespace must unmask nothing of another. Public everywhere are only names that
    tenants do not choose: of projects, of kinds of Kubernetes itself, and of objects without a namespace that no
    Application delivers. Names of Namespaces and of CustomResourceDefinitions are not among them, because many projects
    let tenants create some.
    """

    def __init__(
        self, names: Iterable[str] = (), control: str = "", find_label: Callable[[], str] = lambda: INSTANCE_LABEL
    ) -> None:
        """`names` are public everywhere; `control` is the control namespace. `find_label` returns the label that names
        the Application of an object."""
        self._control, self._find_label = control, find_label
        self._namespaces: dict[str, str | set[str]] = dict.fromkeys(names, EVERYWHERE)  # by name
        self._addresses: set[str] = set()

    def see(self, manifest: Mapping[str, Any]) -> None:
        metadata, kind = mapping(manifest.get("metadata")), str(manifest.get("kind") or "")
        name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
        is_built_in = "." not in split_api_version(str(manifest.get("apiVersion") or ""))[0]
        if is_built_in or namespace:  # others may be of a tenant's definition
            self._add(kind, EVERYWHERE if is_built_in else namespace)
        if kind == "Namespace":
            namespace = name
        self._add(namespace, namespace)
        is_project = kind == "AppProject" and namespace == self._control
        if is_project or namespace or not self._may_be_of_tenant(kind, metadata):
            self._add(name, EVERYWHERE if is_project else namespace)
        if kind == "Pod":
            for container in _container_names(mapping(manifest.get("spec"))):
                self._add(container, namespace)
        if kind == "Application":
            self._addresses.update(address for address in addresses(manifest) if _is_plain(address))

    def _may_be_of_tenant(self, kind: str, metadata: Mapping[str, Any]) -> bool:
        """True if an Application may have delivered an object without a namespace: its writers choose the name."""
        labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
        return (
            kind == DEFINITION or TRACKING_ID in annotations or bool({INSTANCE_LABEL, self._find_label()} & {*labels})
        )

    def _add(self, name: str, namespace: str) -> None:
        known = self._namespaces.get(name)
        if not name or known == namespace:
            return
        if known is None:
            self._namespaces[name] = namespace
        elif isinstance(known, str):
            self._namespaces[name] = {known, namespace}
        else:
            known.add(namespace)

    def is_everywhere(self, text: str) -> bool:
        """True if the text is public in whatever is told."""
        return self.is_name_in(text, ALL_NAMESPACES) or is_shipped(text)

    def is_name_in(self, text: str, namespaces: frozenset[str]) -> bool:
        """True if the text is a name in one of the namespaces."""
        known = self._namespaces.get(text)
        if known is None or isinstance(known, str):
            return known in namespaces
        return not namespaces.isdisjoint(known)

    def __contains__(self, text: object) -> bool:
        """True if the text is public anywhere. Also the beginning of an address: of all repositories on a host."""
        if not isinstance(text, str):
            return False
        if text in self._namespaces or is_shipped(text):
            return True
        return "://" in text and any(address.startswith(text) for address in self._addresses)


def _container_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Names of containers are public: people choose the logs to read by them."""
    for field in ("initContainers", "containers"):
        yield from (str(container.get("name") or "") for container in mappings(spec.get(field)))


def _is_plain(address: str) -> bool:
    try:
        return "@" not in urlsplit(address).netloc
    except ValueError:
        return False
