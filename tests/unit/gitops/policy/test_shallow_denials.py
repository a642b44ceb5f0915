"""Denials of sourceRepos that are too short to reach a repository are found, and only those."""

from __future__ import annotations

import pytest

from argosy.gitops.application.project import read_project
from argosy.gitops.policy.ineffective_repository_denials import ShallowDenial, find_shallow_denials
from argosy.gitops.policy.projects import permits_source

REPOSITORY = {
    "!https://github.com/*": "https://github.com/acme/models",
    "!https://github.com": "https://github.com/acme/models",
    "!https://github.com/acme": "https://github.com/acme/models",
    "!https://GitHub.com/acme/": "https://github.com/acme/models.git",
    "!https://github.com/ac*": "https://github.com/acme/models",
    "!https://gitlab.com/*": "https://gitlab.com/acme/sub/models",
    "!git@github.com:*": "git@github.com:acme/models",
    "!ssh://git@bitbucket.org/*": "ssh://git@bitbucket.org/acme/models",
    "!https://dev.azure.com/acme/*": "https://dev.azure.com/acme/project/_git/models",
}
REACHING = [
    "!https://github.com/**", "!https://github.com/*/*", "!https://github.com/acme/*", "!https://github.com/acme/models",
    "!https://github.com/{*,*/*}", "!https://git.example.com/*", "!https://*/*", "!*", "!", "https://github.com/*",
    "!*github.com*", "!https://dev.azure.com/acme/project/*", "!/srv/git/*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REPOSITORY)
def test_a_denial_that_matches_no_repository_of_its_host_is_found_with_one_that_does(pattern: str) -> None:
    (shallow_denial,) = find_shallow_denials(["*", pattern])
    assert (shallow_denial.pattern, shallow_denial.repository) == (pattern, "")
    for denial, is_permitted in ((pattern, True), (shallow_denial.wider, False)):
        project = read_project({"metadata": {"name": "team"}, "spec": {"sourceRepos": ["*", denial]}})
        assert permits_source(project, REPOSITORY[pattern]) is is_permitted, denial


@pytest.mark.parametrize("pattern", REACHING)
def test_a_denial_that_may_match_is_left_alone(pattern: str) -> None:
    assert list(find_shallow_denials(["*", pattern])) == []


def test_a_denial_is_left_alone_if_another_one_reaches_further() -> None:
    assert list(find_shallow_denials(["*", "!https://github.com/*", "!https://github.com/**"])) == []


def test_a_repository_in_use_below_a_denial_is_named() -> None:
    patterns, used = ["*", "!https://git.example.com/*"], "https://git.example.com/infra/base.git"
    wider = "!https://git.example.com/**"
    assert list(find_shallow_denials(patterns, [used])) == [ShallowDenial(patterns[1], wider, used)]
    for other in ("https://git.example.com/base", "https://elsewhere.example.com/infra/base", "not an address"):
        assert list(find_shallow_denials(patterns, [other])) == []
    assert list(find_shallow_denials([*patterns, "!https://git.example.com/infra/*"], [used])) == []
