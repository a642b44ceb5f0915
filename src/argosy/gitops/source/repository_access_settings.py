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
from argosy.gitops.application.repository_url_parser import RepositoryUrl, parse_url
from argosy.gitops.source.limits import SourceLimits

LOCAL_ROOTS_SETTING = "source.local.roots"
MIRRORS_SETTING = "source.mirrors"
PROTOCOLS_SETTING = "source.protocols"
LIMIT_FIELDS_BY_SETTING = {
    "source.limit.list.seconds": "list_seconds",
    "source.limit.fetch.seconds": "fetch_seconds",
    "source.limit.fetch.bytes": "pack_bytes",
    "source.limit.file.bytes": "file_bytes",
}
CONFIG_MAP = "argosy-cm"
DEFAULT_PROTOCOLS, SUPPORTED_PROTOCOLS = frozenset({"https", "ssh"}), frozenset({"https", "ssh", "http"})


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Which repositories may be read, and from where."""

    local_roots: tuple[Path, ...] = ()
    mirrors: tuple[tuple[RepositoryUrl, str], ...] = ()  # URL prefix → replacement
    protocols: frozenset[str] = DEFAULT_PROTOCOLS
    limits: SourceLimits = field(default_factory=SourceLimits)
    config_map: str = CONFIG_MAP  # the ConfigMap, for messages

    def locate(self, url: RepositoryUrl) -> RepositoryUrl:
        """Return the address to read from: the mirror's if one matches, the resolved path if it is local."""
        candidates = [(prefix, replacement, url.segments_after(prefix)) for prefix, replacement in self.mirrors]
        matches = [
            (len(prefix.segments), replacement, remainder)
            for prefix, replacement, remainder in candidates
            if remainder is not None
        ]
        if not matches:
            return self._check_allowed(url, self.local_roots)
        _, replacement, remainder = max(matches, key=lambda match: match[0])
        target = parse_url(replacement)
        if target.scheme == "file":
            # The setting itself allows this folder, so it needs no entry in the local roots.
            return self._check_allowed(
                _file_url(_find_repository_folder(Path(target.path), remainder)), (Path(target.path),)
            )
        return self._check_allowed(parse_url("/".join([replacement.rstrip("/"), *remainder])), ())

    def locate_chart_repository(self, url: RepositoryUrl) -> RepositoryUrl:
        """Return the address that a Helm repository is read from: it must be a web server."""
        if url.scheme in ("http", "https"):
            location = self.locate(url)
            if location.scheme in ("http", "https"):
                return location
        raise AddressRefused(
            "charts are only read from Helm repositories at https addresses; use one, or keep the chart in Git and "
            "set the source's path",
            where=str(url),
        )

    def _check_allowed(self, url: RepositoryUrl, roots: tuple[Path, ...]) -> RepositoryUrl:
        if url.scheme == "file":
            return _file_url(self._resolve_repository(roots, Path(url.path)))
        if url.scheme not in self.protocols:
            allowed = ", ".join(sorted(self.protocols)) or "none"
            raise AddressRefused(
                f"protocol {url.scheme} is not allowed; use one of {allowed}, or add it to the setting "
                f"{PROTOCOLS_SETTING}",
                where=str(url),
            )
        return url

    def _resolve_repository(self, roots: tuple[Path, ...], path: Path) -> Path:
        """Return git's own folder as a resolved path, so that it cannot be swapped for a link later."""
        dot_git = path / ".git"
        try:
            # A file or link named .git redirects git to another folder, which may be outside the roots.
            resolved = (dot_git if dot_git.is_dir() and not dot_git.is_symlink() else path).resolve(strict=True)
            allowed = [root for root in roots if resolved.is_relative_to(root.resolve(strict=False))]
            if allowed and (resolved / "HEAD").is_file() and (resolved / "objects").is_dir():
                return resolved
        except (OSError, ValueError, RuntimeError):
            pass
        # One message for all cases, so that it does not reveal which files exist on this machine.
        raise AddressRefused(
            f"not a readable repository; move it below a folder listed in {LOCAL_ROOTS_SETTING} in {self.config_map}",
            where=str(path),
        )


def parse_chart_repository_url(url: str) -> RepositoryUrl:
    """Parse the URL of a Helm repository. argo: a URL without a protocol is an OCI registry."""
    if url.startswith("oci://") or (url and "://" not in url and not url.startswith("/")):
        raise AddressRefused(
            "this is an OCI registry, and charts in OCI registries are not supported: use a Helm repository at an "
            "https address, or keep the chart in Git and set the source's path"
        )
    return parse_url(url)


def read_source_settings(data: Mapping[str, str], namespace: str = "") -> SourceSettings:
    """Read the settings. Roots: one path per line. Mirrors: one per line: URL prefix, space, replacement.

    `namespace` is the namespace of the ConfigMap, for error messages.
    """
    roots = tuple(_read_root(line) for line in _split_lines(data.get(LOCAL_ROOTS_SETTING, "")))
    mirrors = tuple(_read_mirror(line) for line in _split_lines(data.get(MIRRORS_SETTING, "")))
    protocols = _read_protocols(data[PROTOCOLS_SETTING]) if PROTOCOLS_SETTING in data else DEFAULT_PROTOCOLS
    limits = {
        field: _read_positive_int(data[name], name) for name, field in LIMIT_FIELDS_BY_SETTING.items() if name in data
    }
    config_map = f"the ConfigMap {CONFIG_MAP} of namespace {namespace}" if namespace else CONFIG_MAP
    return SourceSettings(roots, mirrors, protocols, SourceLimits(**limits), config_map)


def _read_positive_int(text: str, name: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,17}", text.strip(), re.ASCII):
        raise SourceRefused("is not a positive integer; write digits only", where=name)
    return int(text)


def _read_protocols(text: str) -> frozenset[str]:
    protocols = frozenset(text.replace(",", " ").split())
    if unsupported := sorted(protocols - SUPPORTED_PROTOCOLS):
        supported = ", ".join(sorted(SUPPORTED_PROTOCOLS))
        raise SourceRefused(
            f"{unsupported[0][:40]!r} is not a supported protocol; use {supported}", where=PROTOCOLS_SETTING
        )
    return protocols


def _split_lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def _read_root(line: str) -> Path:
    if not line.startswith("/"):
        raise SourceRefused("a root must be an absolute path; write one per line", where=LOCAL_ROOTS_SETTING)
    return Path(line)


def _read_mirror(line: str) -> tuple[RepositoryUrl, str]:
    prefix, _, replacement = line.partition(" ")
    try:
        parse_url(replacement.strip())
        return parse_url(prefix), replacement.strip()
    except SourceRefused as error:
        raise SourceRefused(
            f"{error.message}; each line is a URL prefix, a space, and the replacement path or address",
            where=MIRRORS_SETTING,
        ) from error


def _find_repository_folder(folder: Path, remainder: tuple[str, ...]) -> Path:
    """Return the repository folder, stored as `name` or as `name.git`."""
    path = folder.joinpath(*remainder)
    bare = path.with_name(path.name + ".git")
    return bare if not path.exists() and bare.exists() else path


def _file_url(path: Path) -> RepositoryUrl:
    return RepositoryUrl("file", "", 0, str(path))
