"""Policies decide equally for all spellings of a repository or cluster address."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.errors import AddressRefused
from argosy.gitops.application import Application, read_application, read_destination
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters, KnownCluster
from argosy.gitops.policy.impersonation import find_service_account
from argosy.gitops.policy.projects import list_violations, permits_destination, permits_source
from argosy.gitops.policy.rbac import RbacEnforcer, RbacPermissions, RbacRequester
from argosy.gitops.policy.rbac_config import read_access_policy
from argosy.gitops.policy.sync_windows import evaluate_sync_windows
from argosy.gitops.source.credentials import find_credential, read_credentials
from support.examples import examples
from support.spellings import respell_cluster, respell_repository

HERE = "https://kubernetes.default.svc"
SPELLINGS = examples(10_000)
REPOSITORIES = [
    ("https", "git", ["infra", "x"]),
    ("https", "git", ["team", "models"]),
    ("https", "git.example", ["infra", "deep", "café"]),
    ("http", "10.0.0.5", ["infra", "x"]),
    ("ssh", "git", ["infra", "x"]),
    ("ssh", "git", ["team", "x+y"]),
]
PATTERNS = [
    ["*", "!https://git/infra/**"],
    ["https://GIT:443/team/*.git"],
    ["*", "!git@git:infra/*"],
    ["ssh://git@git/**", "!ssh://git:22/infra/**"],
    ["**", "!http://10.0.0.5:80/infra/*"],
    ["https://u@git/infra/x/"],
    ["*", "!{https://other/**,https://git/infra/**}", "!{https://,ssh://git@}git/team/x+y"],
    ["*", "!git@git*/**", "!https://git.example:*/infra/**"],
    ["git@git:team/*", "ssh://git@git/infra/**"],
    ["https://git.example/**", "!https://*.example/infra/deep/caf%C3%A9"],
]


def project(**spec: Any) -> Project:
    return read_project({"metadata": {"name": "ml"}, "spec": spec})


def plain_address(scheme: str, host: str, segments: list[str]) -> str:
    return f"{scheme}://{'git@' if scheme == 'ssh' else ''}{host}/{'/'.join(segments)}"


@pytest.mark.tier("test", "prove")
def test_all_spellings_of_a_repository_url_get_the_same_decision() -> None:
    rng = random.Random(20)
    projects = [project(sourceRepos=patterns) for patterns in PATTERNS]
    for scheme, host, segments in REPOSITORIES:
        plain = plain_address(scheme, host, segments)
        expected = [permits_source(app_project, plain) for app_project in projects]
        for _ in range(SPELLINGS // len(REPOSITORIES) + 1):
            text = respell_repository(scheme, host, segments, rng)
            assert parse_url(text).identity == parse_url(plain).identity, text
            assert [permits_source(app_project, text) for app_project in projects] == expected, text


def test_plain_repository_urls_get_the_expected_decisions() -> None:
    """The property test above would also pass if every URL were denied."""
    projects = [project(sourceRepos=patterns) for patterns in PATTERNS]
    verdicts = [
        [permits_source(app_project, plain_address(*repository)) for app_project in projects]
        for repository in REPOSITORIES
    ]
    assert verdicts == [
        [False, False, True, False, True, True, False, True, False, False],
        [True, True, True, False, True, False, True, True, False, False],
        [True, False, True, False, True, False, True, False, False, False],
        [True, False, True, False, False, False, True, True, False, False],
        [True, False, False, False, True, False, True, False, True, False],
        [True, False, True, True, True, False, False, False, True, False],
    ]


def test_denied_repository_is_denied_in_every_spelling_that_finds_its_credential() -> None:
    """Every spelling that finds the credential of the denied repository is denied too."""
    rng = random.Random(21)
    secret = {
        "metadata": {"name": "infra", "labels": {"argocd.argoproj.io/secret-type": "repo-creds"}},
        "stringData": {"url": "https://git/infra", "username": "u", "password": "p"},
    }
    credentials, rules = read_credentials([secret]), project(sourceRepos=["*", "!https://git/infra/**"])
    for _ in range(2_000):
        text = respell_repository("https", "git", ["infra", "x"], rng)
        assert find_credential(credentials, parse_url(text)) is not None
        assert not permits_source(rules, text), text


@pytest.mark.parametrize(
    "url",
    ["https://%67it/infra/x", "https://git./infra/x", "https://2130706433/infra/x", "https://127.1/infra/x",
     "https://0x7f.0.0.1/x", "https://git/infra%2fx", "https://git/a/%2e%2e/infra/x", "https://git/infra/%00x",
     "https://gi\u0074\u200b/infra/x", "oci://git/infra/x", "git/infra/x", "https://git\\infra/x"],
)  # fmt: skip
def test_unparseable_url_is_denied_if_the_project_denies_any_source(url: str) -> None:
    with pytest.raises(AddressRefused):
        parse_url(url)
    assert not permits_source(project(sourceRepos=["*", "!https://other/**"]), url)
    assert permits_source(project(sourceRepos=["*"]), url), "the fetch refuses it, and says why"
    app = read_application({"spec": {"source": {"repoURL": url}, "destination": {"server": HERE}}})
    reasons = list_violations(project(sourceRepos=["*", "!https://other/**"]), app, control_namespace="")
    assert "this URL cannot be parsed" in reasons[0]


def test_ipv6_url_has_one_canonical_form() -> None:
    assert parse_url("https://[0:0::1]/x").canonical == parse_url("https://[::1]:443/x").canonical == "https://[::1]/x"
    assert parse_url("https://[::ffff:10.0.0.5]/x").identity == parse_url("https://10.0.0.5/x").identity


def test_ssh_user_matters_in_allow_patterns_but_not_in_deny_patterns() -> None:
    allows = project(sourceRepos=["alice@git:team/*"])
    assert permits_source(allows, "ssh://alice@git/team/x") and not permits_source(allows, "bob@git:team/x")
    denies = project(sourceRepos=["*", "!alice@git:team/*"])
    assert not permits_source(denies, "ssh://bob@git/team/x")


def test_percent_encoded_star_is_not_a_wildcard() -> None:
    rules = project(sourceRepos=["https://git/%2A"])
    assert not permits_source(rules, "https://git/x")
    denied = project(sourceRepos=["*", "!https://git/%2A"])
    assert permits_source(denied, "https://git/x") and not permits_source(denied, "https://git/%2a")


CLUSTERS = [("https", "kubernetes.default.svc", ""), ("https", "prod.example", "/k8s/clusters/c-1")]


def application(server: str) -> Application:
    return read_application(
        {"metadata": {"name": "models"}, "spec": {"destination": {"server": server, "namespace": "prod"}}}
    )


@pytest.mark.tier("test", "prove")
def test_all_spellings_of_a_cluster_url_get_the_same_decision() -> None:
    rng = random.Random(22)
    entries = [[{"server": "*", "namespace": "*"}, {"server": f"!{HERE.upper()}:443/", "namespace": "*"}],
               [{"server": f"{HERE}/", "namespace": "prod"}], [{"server": "https://PROD.*/**", "namespace": "*"}],
               [{"server": "*", "namespace": "*"}, {"server": HERE, "namespace": "!prod"}]]  # fmt: skip
    projects = [project(destinations=destinations) for destinations in entries]
    windows = project(
        syncWindows=[{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "clusters": [f"{HERE}:443/"]}]
    ).windows
    clusters = DestinationClusters(
        (KnownCluster("prod", parse_cluster_address("https://prod.example:443/k8s/clusters/c-1"), "s"),)
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def verdicts(server: str) -> list[object]:
        app = application(server)
        decisions = [permits_destination(app_project, app.destination) for app_project in projects]
        cluster = clusters.find(app.destination)
        return [
            *decisions,
            evaluate_sync_windows(windows, app, now, is_manual=True).is_allowed,
            cluster and cluster.server,
        ]

    expected = [verdicts(f"{scheme}://{host}{path}") for scheme, host, path in CLUSTERS]
    assert expected == [
        [False, True, False, False, False, HERE],
        [True, False, True, True, True, "https://prod.example/k8s/clusters/c-1"],
    ]
    for (scheme, host, path), verdicts_of_plain in zip(CLUSTERS, expected):
        for _ in range(SPELLINGS // 2):
            text = respell_cluster(scheme, host, path, rng)
            assert verdicts(text) == verdicts_of_plain, text


@pytest.mark.parametrize(
    "text", ["https://u:p@prod.example/k8s/clusters/c-1", "https://PROD.example:0443/k8s/clusters/c-1//"]
)
def test_destination_server_is_canonicalized(text: str) -> None:
    assert read_destination(text).server == "https://prod.example/k8s/clusters/c-1"


GLOBS = """
p, ann, repositories, *, *, allow
p, ann, repositories, *, https://git/infra/*, deny
p, bob, repositories, get, https://GIT:443/team/*.git, allow
p, cid, clusters, *, *, allow
p, cid, clusters, *, https://KUBERNETES.default.svc:443/, deny
p, eve, clusters, *, *, allow
p, eve, clusters, *, "{https://other:443,https://kubernetes.default.svc:*}", deny
p, dan, repositories, *, ml/*, allow
p, dan, repositories, *, ml/git@git:infra/*, deny
"""
EXPRESSIONS = """
p, ann, repositories, .*, .*, allow
p, ann, repositories, .*, ^https://git/Infra/.*\\.git$, deny
p, bob, repositories, get, ^https://git/team/[^/]*$, allow
p, cid, clusters, .*, .*, allow
p, cid, clusters, .*, ^https://KUBERNETES\\.default\\.svc$, deny
p, eve, clusters, .*, .*, allow
p, eve, clusters, .*, ^https://kubernetes\\.default\\.svc:443$, deny
p, dan, repositories, .*, ^ml/.*$, allow
p, dan, repositories, .*, ^ml/git@git:infra/.*$, deny
"""


@pytest.mark.parametrize(("policy", "mode"), [(GLOBS, "glob"), (EXPRESSIONS, "regex")])
def test_rbac_decides_equally_for_all_spellings_of_an_address(policy: str, mode: str) -> None:
    rng = random.Random(23)
    enforcer = RbacEnforcer(read_access_policy({"policy.csv": policy, "policy.matchMode": mode}), [project()])
    questions = [
        ("ann", "", ("https", "git", ["infra", "x"]), False),
        ("ann", "", ("https", "git", ["team", "x"]), True),
        ("bob", "", ("https", "git", ["team", "x"]), True),
        ("bob", "", ("https", "git", ["infra", "x"]), False),
        ("dan", "ml/", ("ssh", "git", ["infra", "x"]), False),
        ("dan", "ml/", ("ssh", "git", ["team", "x"]), True),
    ]
    for who, prefix, parts, expected in questions:
        may = enforcer.get_permissions(RbacRequester(who))
        for _ in range(examples(400)):
            text = respell_repository(*parts, rng).strip()
            assert may.may("repositories", "get", f"{prefix}{text}") is expected, (who, text)
    for who in ("cid", "eve"):
        check_clusters(enforcer.get_permissions(RbacRequester(who)), rng)


def check_clusters(may: RbacPermissions, rng: random.Random) -> None:
    for _ in range(examples(400)):
        assert not may.may("clusters", "get", respell_cluster("https", "kubernetes.default.svc", "", rng))
        assert may.may("clusters", "get", respell_cluster("https", "prod.example", "", rng))


@pytest.mark.parametrize(
    ("denial", "url"),
    [
        ("!{https://a.io/**,https://b.io/**}", "https://b.io/x/y"),
        ("!{https://,ssh://git@}github.com/evil/*", "ssh://git@github.com/evil/x"),
        ("!git@github.com*/**", "git@github.com:evil/x"),
        ("!https://github.com:*/**", "https://github.com:443/evil/x"),
        ("!https://{github.com:443,gitlab.com:443}/**", "https://gitlab.com:443/a/b"),
        ("!ssh://git@[2001:db8::1]/**", "ssh://git@[2001:db8:0::1]/a/b"),
        ("!https://[", "https://anything/x"),
        ("!https://deploy@git/**", "https://git/x"),
        ("!ssh://deploy@git/**", "git@git:x/y"),
    ],
)
def test_source_denial_holds_for_every_spelling_of_its_pattern(denial: str, url: str) -> None:
    assert permits_source(project(sourceRepos=["*"]), url)
    assert not permits_source(project(sourceRepos=["*", denial]), url)
    assert permits_source(project(sourceRepos=["*", "!https://unrelated/**"]), url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("*/", "https://evil/x"),
        ("*://git@host/**", "ssh://root@host/x"),
        ("{ssh,https}://git@host/**", "ssh://root@host/x"),
        ("ssh://host/**", "root@host:x"),
        ("https://[", "https://anything/x"),
    ],
)
def test_source_pattern_does_not_permit_other_urls(pattern: str, url: str) -> None:
    assert not permits_source(project(sourceRepos=[pattern]), url)


@pytest.mark.parametrize(
    "denial",
    ["!https://prod.azmk8s.io:*", "!{https://a.io:443,https://prod.azmk8s.io:443}", "!https://{a.io:443,prod.azmk8s.io:443}",
     "!https://prod*.io:44?", "!https://PROD.azmk8s.io/", "!https://["],
)  # fmt: skip
def test_denied_cluster_is_denied_with_and_without_its_port(denial: str) -> None:
    everything = {"server": "*", "namespace": "*"}
    rules = project(destinations=[everything, {"server": denial, "namespace": "*"}])
    for server in ("https://prod.azmk8s.io:443", "https://prod.azmk8s.io", "https://prod.azmk8s.io./"):
        assert permits_destination(project(destinations=[everything]), read_destination(server, "", "x"))
        assert not permits_destination(rules, read_destination(server, "", "x")), server


def test_sync_window_and_service_account_match_a_cluster_by_its_default_port() -> None:
    pattern, app = "https://*.azmk8s.io:*", application("https://prod.azmk8s.io")
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "clusters": [pattern]}
    account = {"server": pattern, "namespace": "*", "defaultServiceAccount": "deployer"}
    rules = project(syncWindows=[window], destinationServiceAccounts=[account])
    assert not evaluate_sync_windows(rules.windows, app, datetime(2026, 1, 1, tzinfo=UTC), is_manual=True).is_allowed
    assert find_service_account(rules, app, app.destination.server) == "system:serviceaccount:prod:deployer"


@pytest.mark.parametrize(
    ("mode", "rule", "may"),
    [
        ("regex", "p, ann, clusters, .*, ^https://prod\\.io:443$, deny", ("clusters", "https://prod.io:443")),
        ("regex", "p, ann, repositories, .*, ^https://git\\.io:443/.*, deny", ("repositories", "https://git.io/x")),
        ("regex", "p, ann, repositories, .*, ^ssh://deploy@git\\.io/.*, deny", ("repositories", "deploy@git.io:x")),
        ("glob", 'p, ann, clusters, *, "https://{u@a,v@b", deny', ("clusters", "https://a")),
        ("glob", 'p, ann, repositories, *, "p/{https://a.io/*,https://b.io/*}", deny', ("repositories", "p/https://b.io/x")),
        ("glob", "p, ann, clusters, *, https://prod.io:*, deny", ("clusters", "https://prod.io")),
    ],
)  # fmt: skip
def test_rbac_denial_holds_for_every_spelling_of_its_pattern(mode: str, rule: str, may: tuple[str, str]) -> None:
    star = ".*" if mode == "regex" else "*"
    allow = "\n".join(f"p, ann, {resource}, {star}, {star}, allow" for resource in ("clusters", "repositories"))
    for policy, expected in ((allow, True), (f"{allow}\n{rule}", False)):
        enforcer = RbacEnforcer(read_access_policy({"policy.csv": policy, "policy.matchMode": mode}), [])
        assert enforcer.get_permissions(RbacRequester("ann")).may(may[0], "get", may[1]) is expected, policy
