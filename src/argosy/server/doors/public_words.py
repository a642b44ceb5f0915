"""What everybody may know, so that no Secret hides it: whoever puts such a word into one hides no page with it.

In: what ships with the page, names and addresses of what lives. Out: whether a text is public. Never: an address with
a password in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.model.annotations import LAST_APPLIED
from argosy.report.wire import mapping, mappings

ALWAYS: Final = ("argoproj.io/v1alpha1", "https://kubernetes.default.svc", "application/json", LAST_APPLIED)


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
    """Grows with what is seen: a name that was public once is no secret later."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = set(names)
        self._addresses: set[str] = set()

    def see(self, manifest: Mapping[str, Any]) -> None:
        metadata = mapping(manifest.get("metadata"))
        self.names.update(str(metadata[each]) for each in ("name", "namespace") if metadata.get(each))
        self.names.add(str(manifest.get("kind") or ""))
        if manifest.get("kind") == "Pod":
            self.names.update(_container_names(mapping(manifest.get("spec"))))
        if manifest.get("kind") == "Application":
            self._addresses.update(each for each in addresses(manifest) if _is_plain(each))

    def __contains__(self, text: object) -> bool:
        """Also the beginning of an address: of all repositories on a host."""
        if not isinstance(text, str):
            return False
        if text in self.names or is_shipped(text):
            return True
        return "://" in text and any(each.startswith(text) for each in self._addresses)


def _container_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Names of containers are public: people choose the logs to read by them."""
    for field in ("initContainers", "containers"):
        yield from (str(container.get("name") or "") for container in mappings(spec.get(field)))


def _is_plain(address: str) -> bool:
    try:
        return "@" not in urlsplit(address).netloc
    except ValueError:
        return False
