"""What the installation allows its sources to be.

In: the `source.*` settings. Out: where a repository is really read from, or SourceRefused. Never: a path outside
the roots.
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
    """What may be read, and where from."""

    local_roots: tuple[Path, ...] = ()
    mirrors: tuple[tuple[RepositoryUrl, str], ...] = ()  # a prefix of addresses, and what stands in its place
    protocols: frozenset[str] = SAFE
    limits: SourceLimits = field(default_factory=SourceLimits)
    place: str = PLACE  # where people write them

    def locate(self, url: RepositoryUrl) -> RepositoryUrl:
        """The address to read from: the mirror's, where one stands in for it; a real path, where it is local."""
        fitting = [(prefix, place, url.rest_after(prefix)) for prefix, place in self.mirrors]
        matches = [(len(prefix.segments), place, rest) for prefix, place, rest in fitting if rest is not None]
        if not matches:
            return self._allowed(url, self.local_roots)
        _, place, rest = max(matches, key=lambda match: match[0])
        target = parse_url(place)
        if target.scheme == "file":
            # Whoever wrote the setting allowed the folder: what is in it needs no root besides.
            return self._allowed(_local(_below(Path(target.path), rest)), (Path(target.path),))
        return self._allowed(parse_url("/".join([place.rstrip("/"), *rest])), ())

    def _allowed(self, url: RepositoryUrl, roots: tuple[Path, ...]) -> RepositoryUrl:
        if url.scheme == "file":
            return _local(self._repository_in(roots, Path(url.path)))
        if url.scheme not in self.protocols:
            allowed = ", ".join(sorted(self.protocols)) or "none"
            raise AddressRefused(
                f"{url.scheme} is not an allowed protocol; use one of {allowed}, or name it in the setting {PROTOCOLS}",
                where=str(url),
            )
        return url

    def _repository_in(self, roots: tuple[Path, ...], path: Path) -> Path:
        """The folder that git itself keeps there, as a path without links, so that nothing can be slipped in after."""
        inner = path / ".git"
        try:
            # A file or link called .git sends git to another folder, which no root has allowed.
            real = (inner if inner.is_dir() and not inner.is_symlink() else path).resolve(strict=True)
            allowed = [root for root in roots if real.is_relative_to(root.resolve(strict=False))]
            if allowed and (real / "HEAD").is_file() and (real / "objects").is_dir():
                return real
        except (OSError, ValueError, RuntimeError):
            pass
        # One message for all, so that nobody can learn from it what there is on this machine.
        raise AddressRefused(
            f"is no repository that may be read; put it below a folder that {LOCAL_ROOTS} in {self.place} names",
            where=str(path),
        )


def read_settings(data: Mapping[str, str], namespace: str = "") -> SourceSettings:
    """Roots: one path a line. Mirrors: a line each: a prefix of addresses, a space, and what stands in its place.

    `namespace` is where the ConfigMap is, so that what is refused says so: installations differ.
    """
    roots = tuple(_root(line) for line in _lines(data.get(LOCAL_ROOTS, "")))
    mirrors = tuple(_mirror(line) for line in _lines(data.get(MIRRORS, "")))
    protocols = _protocols(data[PROTOCOLS]) if PROTOCOLS in data else SAFE
    limits = {field: _number(data[name], name) for name, field in LIMITS.items() if name in data}
    place = f"the ConfigMap {PLACE} of namespace {namespace}" if namespace else PLACE
    return SourceSettings(roots, mirrors, protocols, SourceLimits(**limits), place)


def _number(text: str, name: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,17}", text.strip(), re.ASCII):
        raise SourceRefused("is no whole number above zero; write digits alone", where=name)
    return int(text)


def _protocols(text: str) -> frozenset[str]:
    named = frozenset(text.replace(",", " ").split())
    if wrong := sorted(named - POSSIBLE):
        possible = ", ".join(sorted(POSSIBLE))
        raise SourceRefused(f"{wrong[0][:40]!r} is no protocol that can be allowed; use {possible}", where=PROTOCOLS)
    return named


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def _root(line: str) -> Path:
    if not line.startswith("/"):
        raise SourceRefused("a root must be an absolute path; one stands on each line", where=LOCAL_ROOTS)
    return Path(line)


def _mirror(line: str) -> tuple[RepositoryUrl, str]:
    prefix, _, place = line.partition(" ")
    try:
        parse_url(place.strip())
        return parse_url(prefix), place.strip()
    except SourceRefused as error:
        raise SourceRefused(
            f"{error.message}; each line is a prefix, a space, and the path or address in its place", where=MIRRORS
        ) from error


def _below(folder: Path, rest: tuple[str, ...]) -> Path:
    """Mirrors are kept as `name` or as `name.git`."""
    path = folder.joinpath(*rest)
    bare = path.with_name(path.name + ".git")
    return bare if not path.exists() and bare.exists() else path


def _local(path: Path) -> RepositoryUrl:
    return RepositoryUrl("file", "", 0, str(path))
