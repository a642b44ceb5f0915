"""Which submodules .gitmodules names, and where their repositories are."""

from __future__ import annotations

import pytest

from argosy.errors import SourceError, SourceRefused
from argosy.gitops.application.gitmodules import (
    Submodule,
    list_submodule_paths,
    read_gitmodules,
    resolve_submodule_url,
)

MODULES = """
# shared charts
[submodule "charts"]
	path = vendor/charts
	url = "https://git.example/charts.git"
[submodule "out"]
	path = out
	url = ../out
	update = none
[submodule "half"]
	path = half
[other "thing"]
	path = thing
	url = ../thing
"""


def test_submodules_with_path_and_url_are_read() -> None:
    charts = Submodule("vendor/charts", "https://git.example/charts.git")
    assert read_gitmodules(MODULES) == [charts, Submodule("out", "../out", is_skipped=True)]
    assert list_submodule_paths(MODULES) == ["vendor/charts", "out", "half"]
    assert read_gitmodules("# no settings") == []


FOUND = [Submodule("lib", "u")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[Submodule "a"]\nPATH = lib\nURL = u\n', FOUND),
        ('[submodule "a"]\npath = lib\n[submodule "A"]\nurl = u\n', []),
        ('[submodule "a"]\npath = lib\n[submodule "a"]\nurl = u\n', FOUND),
        ("[submodule.a]\npath = lib\nurl = u\n", FOUND),
        ('[submodule "a"] path = l\\\nib # comment\nurl = u ; comment\n', FOUND),
        ('\ufeff[submodule "a\\"b"]\r\n path=l"i"b \r\n url="u"', FOUND),
        ('[submodule "a"]\npath = lib\nurl = x\nurl = u\n', FOUND),
        ('[submodule "a"]\npath = lib\nurl = x\n[submodule "b"]\npath = lib\nurl = u\n', FOUND),
        ('[submodule "a"]\npath = lib\nurl = u\n[submodule "b"]\npath = lib\n', []),
        ('[submodule "../a"]\npath = lib\nurl = u\n', []),
        ('[submodule "a"]\npath = lib\nurl = -u\n', []),
        ('[submodule "a"]\npath = -lib\nurl = u\n', []),
    ],
)
def test_file_is_read_as_git_reads_it(text: str, expected: list[Submodule]) -> None:
    """The results of `git submodule update --init` for these files."""
    assert read_gitmodules(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[submodule "a"\npath = lib\n', "bad config line 1"),
        ('[submodule "a"]\npath\nurl = u\n', "bad config line 2"),
        ('[submodule "a"]\npath = "lib\nurl = u\n', "bad config line 2"),
        ('[submodule "a"]\npath = l\\ib\n', "bad config line 2"),
        ('[submodule "a"]\n\nupdate = !touch x\n', r"invalid value for 'submodule\.a\.update'"),
        ('[submodule "a"]\nupdate = NONE\n', r"invalid value for 'submodule\.a\.update'"),
    ],
)
def test_file_that_git_rejects_is_an_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"\.gitmodules: {message}"):
        read_gitmodules(text)


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
