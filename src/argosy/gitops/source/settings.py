"""Source settings: allowed local folders, mirrors, protocols and limits.

In: the `source.*` settings. Out: the address that a repository is read from, or SourceRefused. Never: allows a path
outside the roots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argosy.errors import AddressRefused, SourceRefused
from argosy.gitops.application.repository_url import RepositoryUrl, parse_url
from argosy.gitops.source.limits import SourceLimits

LOCAL_ROOTS = "source.local.roots"
MIRRORS = "source.mirrors"
PROTOCOLS = "source.protocols"
LIMITS = {
    "source.limit.list.seconds": "list_seconds",
    "source.limit.fetch.seconds": "fetch_seconds",
    "source.limit.fetch.bytes": "pack_bytes",
    "source.limit.file.bytes": "file_bytes",
}
PLACE = "argosy-cm"
SAFE, POSSIBLE = frozenset({"https", "ssh"}), frozenset({"https", "ssh", "http"})


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Which repositories may be read, and from where."""

    local_roots: tuple[Path, ...] = ()
    mirrors: tuple[tuple[RepositoryUrl, str], ...] = ()  # URL prefix → replacement
    protocols: frozenset[str] = SAFE
    limits: SourceLimits = field(default_factory=SourceLimits)
    place: str = PLACE  # the ConfigMap, for messages

    def locate(self, url: RepositoryUrl) -> RepositoryUrl:
        """Return the address to read from: the mirror's if one matches, the resolved path if it is local."""
        fitting = [(prefix, place, url.rest_after(prefix)) for prefix, place in self.mirrors]
        matches = [(len(prefix.segments), place, rest) for prefix, place, rest in fitting if rest is not None]
        if not matches:
            return self._allowed(url, self.local_roots)
        _, place, rest = max(matches, key=lambda match: match[0])
        target = parse_url(place)
        if target.scheme == "file":
            # The setting itself allows this folder, so it needs no entry in the local roots.
            return self._allowed(_local(_below(Path(target.path), rest)), (Path(target.path),))
        return self._allowed(parse_url("/".join([place.rstrip("/"), *rest])), ())

    def _allowed(self, url: RepositoryUrl, roots: tuple[Path, ...]) -> RepositoryUrl:
        if url.scheme == "file":
            return _local(self._repository_in(roots, Path(url.path)))
        if url.scheme not in self.protocols:
            allowed = ", ".join(sorted(self.protocols)) or "none"
            raise AddressRefused(
                f"protocol {url.scheme} is not allowed; use one of {allowed}, or add it to the setting {PROTOCOLS}",
                where=str(url),
            )
        return url

    def _repository_in(self, roots: tuple[Path, ...], path: Path) -> Path:
        """Return git's own folder as a resolved path, so that it cannot be swapped for a link later."""
        inner = path / ".git"
        try:
            # A file or link named .git redirects git to another folder, which may be outside the roots.
            real = (inner if inner.is_dir() and not inner.is_symlink() else path).resolve(strict=True)
            allowed = [root for root in roots if real.is_relative_to(root.resolve(strict=False))]
            if allowed and (real / "HEAD").is_file() and (real / "objects").is_dir():
                return real
        except (OSError, ValueError, RuntimeError):
            pass
        # One message for all cases, so that it does not reveal which files exist on this machine.
        raise AddressRefused(
            f"not a readable repository; move it below a folder listed in {LOCAL_ROOTS} in {self.place}",
            where=str(path),
        )


def read_settings(data: Mapping[str, str], namespace: str = "") -> SourceSettings:
    """Read the settings. Roots: one path per line. Mirrors: one per line: URL prefix, space, replacement.

    `namespace` is the namespace of the ConfigMap, for error messages.
    """
    roots = tuple(_root(line) for line in _lines(data.get(LOCAL_ROOTS, "")))
    mirrors = tuple(_mirror(line) for line in _lines(data.get(MIRRORS, "")))
    protocols = _protocols(data[PROTOCOLS]) if PROTOCOLS in data else SAFE
    limits = {field: _number(data[name], name) for name, field in LIMITS.items() if name in data}
    place = f"the ConfigMap {PLACE} of namespace {namespace}" if namespace else PLACE
    return SourceSettings(roots, mirrors, protocols, SourceLimits(**limits), place)


def _number(text: str, name: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,17}", text.strip(), re.ASCII):
        raise SourceRefused("is not a positive integer; write digits only", where=name)
    return int(text)


def _protocols(text: str) -> frozenset[str]:
    named = frozenset(text.replace(",", " ").split())
    if wrong := sorted(named - POSSIBLE):
        possible = ", ".join(sorted(POSSIBLE))
        raise SourceRefused(f"{wrong[0][:40]!r} is not a supported protocol; use {possible}", where=PROTOCOLS)
    return named


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def _root(line: str) -> Path:
    if not line.startswith("/"):
        raise SourceRefused("a root must be an absolute path; write one per line", where=LOCAL_ROOTS)
    return Path(line)


def _mirror(line: str) -> tuple[RepositoryUrl, str]:
    prefix, _, place = line.partition(" ")
    try:
        parse_url(place.strip())
        return parse_url(prefix), place.strip()
    except SourceRefused as error:
        raise SourceRefused(
            f"{error.message}; each line is a URL prefix, a space, and the replacement path or address", where=MIRRORS
        ) from error


def _below(folder: Path, rest: tuple[str, ...]) -> Path:
    """Return the repository folder, stored as `name` or as `name.git`."""
    path = folder.joinpath(*rest)
    bare = path.with_name(path.name + ".git")
    return bare if not path.exists() and bare.exists() else path


def _local(path: Path) -> RepositoryUrl:
    return RepositoryUrl("file", "", 0, str(path))
