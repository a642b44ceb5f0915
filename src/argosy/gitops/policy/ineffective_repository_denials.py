"""Finds denials of a project that are too short to match any repository.

In: the patterns of sourceRepos, the repositories in use. Out: a denial, a wider one, and a repository that only the
wider one denies. Never: reports a denial of a repository that another one denies.

argo: a star does not cross slashes. `!https://github.com/*` therefore denies no repository: all have an owner before
their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from argosy.gitops.policy.repository_patterns import RepositorySpellings, is_denied_by, read_repository_spellings

# Hosts whose repositories have at least so many path segments.
MIN_PATH_SEGMENTS: Final = {"github.com": 2, "gitlab.com": 2, "bitbucket.org": 2, "codeberg.org": 2, "dev.azure.com": 3}
_REPOSITORY_PATTERN: Final = re.compile(
    r"(?P<start>[a-z]+://[^/]+/|(?:[^:/@]+@)?[^:/@]+:(?!//))(?P<path>.*)", re.IGNORECASE
)
_BARE_HOST: Final = re.compile(r"[a-z]+://[^/]+", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:[a-z]+://)?(?:[^@/]*@)?(?P<host>[^:/]+)", re.IGNORECASE)
_GLOB_CHARACTERS: Final = frozenset("*?[]{}\\")


class ShallowDenial(NamedTuple):
    pattern: str
    wider: str
    # a repository in use that only the wider pattern denies; empty: the denial matches no repository
    repository: str = ""


def find_shallow_denials(patterns: Sequence[str], repositories: Iterable[str] = ()) -> Iterator[ShallowDenial]:
    """Find denials that match no repository of their host, or that do not match a repository in use below them."""
    denials = [pattern for pattern in patterns if pattern.startswith("!")]
    used_repositories = [(url, read_repository_spellings(url)) for url in dict.fromkeys(repositories)]
    for pattern in denials:
        match = _REPOSITORY_PATTERN.fullmatch(f"{pattern[1:]}/" if _BARE_HOST.fullmatch(pattern[1:]) else pattern[1:])
        if match is None or "**" in match["path"] or "{" in match["path"]:
            continue
        segments = [segment for segment in match["path"].split("/") if segment]
        kept_segments = segments[:-1] if segments and set(segments[-1]) == {"*"} else segments
        wider = "!" + match["start"] + "/".join([*kept_segments, "**"])
        example = _build_example(match["start"], segments)
        if example and _is_denied_only_by(denials, read_repository_spellings(example), wider):
            yield ShallowDenial(pattern, wider)
        elif kept_segments != segments and (url := _find_undenied(denials, used_repositories, wider)):
            yield ShallowDenial(pattern, wider, url)


def _build_example(start: str, segments: Sequence[str]) -> str:
    """Return a possible repository URL below the pattern; empty if the host is unknown."""
    host = _HOST.match(start)
    min_segments = MIN_PATH_SEGMENTS.get(host["host"].lower(), 0) if host else 0
    example_segments = [segment.replace("*", "x") for segment in segments]
    if len(segments) >= min_segments or _GLOB_CHARACTERS & set("".join(example_segments)):
        return ""
    return start + "/".join([*example_segments, *["x"] * (min_segments - len(segments))])


def _find_undenied(denials: Sequence[str], used: Sequence[tuple[str, RepositorySpellings]], wider: str) -> str:
    return next((url for url, address in used if _is_denied_only_by(denials, address, wider)), "")


def _is_denied_only_by(denials: Sequence[str], address: RepositorySpellings, wider: str) -> bool:
    """True if no denial of the project matches the URL, and the wider one does."""
    return (
        address.is_parsed
        and not any(is_denied_by(denial, address) for denial in denials)
        and is_denied_by(wider, address)
    )
