"""Repository URLs, and which of them a prefix matches."""

from __future__ import annotations

import pytest

from argosy.errors import SourceRefused
from argosy.gitops.application.repository_url_parser import parse_url

UNDERSTOOD = [
    ("https://github.com/org/repo.git", "https://github.com/org/repo.git"),
    ("https://GitHub.com:443/org/repo/", "https://github.com/org/repo"),
    ("https://git.example.com:8443/a/b", "https://git.example.com:8443/a/b"),
    ("https://somebody@github.com/org/repo", "https://github.com/org/repo"),
    ("https://[::1]/x", "https://[::1]/x"),
    ("git@github.com:org/repo.git", "git@github.com:org/repo.git"),
    ("ssh://git@github.com:2222/org/repo", "ssh://git@github.com:2222/org/repo"),
    ("host:repo", "host:repo"),
    ("file:///srv/repo%20one", "/srv/repo one"),
    ("file:///srv/repo", "/srv/repo"),
    ("/srv/repo/", "/srv/repo"),
]

REFUSED = [
    "",
    "repo",
    "./repo",
    "../repo",
    "--upload-pack=touch /tmp/x",
    "--upload-pack=touch:x",
    "-oProxyCommand=x:repo",
    "ssh://-oProxyCommand=x/repo",
    "ssh://-oProxyCommand=x@host/repo",
    "ssh://git@host/-x",
    "git@host:-x",
    "ext::sh -c touch%20x",
    "ext::x",
    "fd::17",
    "git://host/repo",
    "ftp://host/repo",
    "javascript://host/repo",
    "https://",
    "https:///repo",
    "https://host:99999/x",
    "https://host/a/../b",
    "https://host/a/%2e%2E/b",
    "https://host/a/%2e%2e%2fb",
    "https://host/repo?x=y",
    "https://host/repo#x",
    "https://host\\@evil/x",
    "https://host/a b",
    "https://host/repo\r",
    "https://host\n.evil/repo",
    "https://host/repo\x1b[2J",
    "https://ho%0dst/repo",
    "https://host/a%0ab\x00",
    "file://server/share",
    "file:///srv/../etc",
    "/srv/../etc",
    "https://" + "a" * 9000,
]


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD)
def test_valid_url_is_parsed_and_formatted_for_git(text: str, expected: str) -> None:
    assert str(parse_url(text)) == expected


@pytest.mark.parametrize("text", REFUSED)
def test_dangerous_or_invalid_url_is_refused(text: str) -> None:
    with pytest.raises(SourceRefused, match="the repository URL"):
        parse_url(text)


def test_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(SourceRefused, match="Secret") as caught:
        parse_url("https://user:hunter22@github.com/org/repo")
    assert "hunter22" not in str(caught.value)


PREFIXES = [
    ("https://github.com/org", "https://github.com/org/repo", ("repo",)),
    ("https://github.com/org/", "https://github.com/Org/Repo.git", ("Repo",)),
    ("https://github.com", "https://github.com/org/repo", ("org", "repo")),
    ("https://github.com/org/repo", "https://github.com/org/repo.git", ()),
    ("https://github.com/org", "https://github.com/organisation/repo", None),
    ("https://github.com", "https://github.com.evil.example/org/repo", None),
    ("https://github.com/org", "http://github.com/org/repo", None),
    ("https://github.com/org", "https://github.com:8443/org/repo", None),
    ("https://github.com/org", "ssh://git@github.com/org/repo", None),
    ("git@github.com:org", "ssh://git@github.com/org/repo", ("repo",)),
    ("ssh://github.com/org", "git@github.com:org/repo", ("repo",)),
    ("ssh://deploy@github.com/org", "git@github.com:org/repo", None),
    ("/srv/git", "/srv/git/Models", ("Models",)),
    ("/srv/git", "/srv/GIT/models", None),
]


@pytest.mark.parametrize(("prefix", "url", "rest"), PREFIXES)
def test_url_prefix_matches_by_whole_segments(prefix: str, url: str, rest: tuple[str, ...] | None) -> None:
    assert parse_url(url).segments_after(parse_url(prefix)) == rest
