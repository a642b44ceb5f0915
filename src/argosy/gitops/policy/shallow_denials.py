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

from argosy.gitops.policy.repository_patterns import Address, denies, read_address

# Hosts whose repositories have at least so many path segments.
MIN_PATH_SEGMENTS: Final = {"github.com": 2, "gitlab.com": 2, "bitbucket.org": 2, "codeberg.org": 2, "dev.azure.com": 3}
_PATTERN: Final = re.compile(r"(?P<start>[a-z]+://[^/]+/|(?:[^:/@]+@)?[^:/@]+:(?!//))(?P<path>.*)", re.IGNORECASE)
_BARE: Final = re.compile(r"[a-z]+://[^/]+", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:[a-z]+://)?(?:[^@/]*@)?(?P<host>[^:/]+)", re.IGNORECASE)
_GLOB_SIGNS: Final = frozenset("*?[]{}\\")


class ShallowDenial(NamedTuple):
    pattern: str
    wider: str
    # a repository in use that only the wider pattern denies; empty: the denial matches no repository
    repository: str = ""


def find_shallow_denials(patterns: Sequence[str], repositories: Iterable[str] = ()) -> Iterator[ShallowDenial]:
    """Find denials that match no repository of their host, or that do not match a repository in use below them."""
    denials = [pattern for pattern in patterns if pattern.startswith("!")]
    used = [(url, read_address(url)) for url in dict.fromkeys(repositories)]
    for pattern in denials:
        found = _PATTERN.fullmatch(f"{pattern[1:]}/" if _BARE.fullmatch(pattern[1:]) else pattern[1:])
        if found is None or "**" in found["path"] or "{" in found["path"]:
            continue
        segments = [segment for segment in found["path"].split("/") if segment]
        kept = segments[:-1] if segments and set(segments[-1]) == {"*"} else segments
        wider = "!" + found["start"] + "/".join([*kept, "**"])
        example = _example(found["start"], segments)
        if example and _is_passed_by(denials, read_address(example), wider):
            yield ShallowDenial(pattern, wider)
        elif kept != segments and (url := _find_passed(denials, used, wider)):
            yield ShallowDenial(pattern, wider, url)


def _example(start: str, segments: Sequence[str]) -> str:
    """Return a possible repository URL below the pattern; empty if the host is unknown."""
    host = _HOST.match(start)
    least = MIN_PATH_SEGMENTS.get(host["host"].lower(), 0) if host else 0
    written = [segment.replace("*", "x") for segment in segments]
    if len(segments) >= least or _GLOB_SIGNS & set("".join(written)):
        return ""
    return start + "/".join([*written, *["x"] * (least - len(segments))])


def _find_passed(denials: Sequence[str], used: Sequence[tuple[str, Address]], wider: str) -> str:
    return next((url for url, address in used if _is_passed_by(denials, address, wider)), "")


def _is_passed_by(denials: Sequence[str], address: Address, wider: str) -> bool:
    """True if no denial of the project matches the URL, and the wider one does."""
    return address.is_parsed and not any(denies(denial, address) for denial in denials) and denies(wider, address)
