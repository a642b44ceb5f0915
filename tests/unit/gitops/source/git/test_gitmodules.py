"""Which submodules .gitmodules names, and where their repositories are."""

from __future__ import annotations

import pytest

from argosy.errors import SourceRefused
from argosy.gitops.source.git.gitmodules import Submodule, read_gitmodules, resolve_submodule_url

MODULES = """
# shared charts
[submodule "charts"]
\tpath = vendor/charts/
\turl = "https://git.example/charts.git"
[submodule "out"]
\tpath = out
\turl = ../out
\tupdate = none
[submodule "half"]
\tpath = half
[other "thing"]
\tpath = thing
\turl = ../thing
"""


def test_submodules_with_path_and_url_are_read_unless_git_would_not_check_them_out() -> None:
    assert read_gitmodules(MODULES) == [Submodule("vendor/charts", "https://git.example/charts.git")]
    assert read_gitmodules("no settings") == []


@pytest.mark.parametrize(
    ("url", "parent", "expected"),
    [
        ("https://git.example/lib", "https://git.example/org/app", "https://git.example/lib"),
        ("../lib.git", "https://git.example/org/app.git", "https://git.example/org/lib.git"),
        ("../../other/lib", "ssh://git@git.example:2222/org/app/", "ssh://git@git.example:2222/other/lib"),
        ("./lib", "https://git.example/org/app", "https://git.example/org/app/lib"),
        ("../lib", "git@git.example:org/app.git", "git@git.example:org/lib"),
        ("../../lib", "git@git.example:org/app.git", "git@git.example:lib"),
        ("../lib", "file:///srv/git/app", "file:///srv/git/lib"),
    ],
)
def test_relative_address_starts_at_the_repository_as_in_git(url: str, parent: str, expected: str) -> None:
    assert resolve_submodule_url(url, parent) == expected


@pytest.mark.parametrize("url", ["../../../lib", "../../../../../lib"])
def test_relative_address_stays_on_the_host(url: str) -> None:
    with pytest.raises(SourceRefused, match="leads above the host"):
        resolve_submodule_url(url, "https://git.example/org/app")
