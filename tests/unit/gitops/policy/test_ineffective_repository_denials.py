"""Detection of sourceRepos denials that are too short to match any repository."""

from __future__ import annotations

import pytest

from argosy.gitops.application.project_spec import read_project
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
def test_shallow_denial_is_reported_with_a_wider_pattern_that_works(pattern: str) -> None:
    (shallow_denial,) = find_shallow_denials(["*", pattern])
    assert (shallow_denial.pattern, shallow_denial.repository) == (pattern, "")
    for denial, is_permitted in ((pattern, True), (shallow_denial.wider, False)):
        project = read_project({"metadata": {"name": "team"}, "spec": {"sourceRepos": ["*", denial]}})
        assert permits_source(project, REPOSITORY[pattern]) is is_permitted, denial


@pytest.mark.parametrize("pattern", REACHING)
def test_denial_that_can_match_a_repository_is_not_reported(pattern: str) -> None:
    assert list(find_shallow_denials(["*", pattern])) == []


def test_shallow_denial_is_not_reported_if_another_one_is_wider() -> None:
    assert list(find_shallow_denials(["*", "!https://github.com/*", "!https://github.com/**"])) == []


def test_shallow_denial_names_a_used_repository_below_it() -> None:
    patterns, used = ["*", "!https://git.example.com/*"], "https://git.example.com/infra/base.git"
    wider = "!https://git.example.com/**"
    assert list(find_shallow_denials(patterns, [used])) == [ShallowDenial(patterns[1], wider, used)]
    for other in ("https://git.example.com/base", "https://elsewhere.example.com/infra/base", "not an address"):
        assert list(find_shallow_denials(patterns, [other])) == []
    assert list(find_shallow_denials([*patterns, "!https://git.example.com/infra/*"], [used])) == []
