"""Tests that argosy.yaml is parsed, or rejected with the wrong field and its allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.delivery_file.delivery_value_types import (
    FIELDS,
    ArgoCDReference,
    DeliveryRole,
    HealthOptions,
    PromotionGate,
    RepositoryCredentials,
    SecretSource,
    SyncMode,
)
from argosy.gitops.delivery_file.reader import read_delivery_file
from argosy.kube.objects import dump_yaml, read_yaml
from support.paths import ROOT

WHOLE = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository:
  url: https://github.com/acme/models.git
  ref: release
  credentials: {username: ada, passwordFrom: {env: GIT_TOKEN}}
argocd: {namespace: openshift-gitops, name: openshift-gitops}
environments:
  dev: {application: llmops-dev, path: overlays/dev, sync: auto}
  production:
    application: llmops-production
    namespace: llmops-prod
    path: overlays/production
    after: dev
    gates: [{check: true}, {healthy: 10m}, {notebook: train}, {soak: 1h30m}, {approval: release-managers}]
health: {profile: lenient, kinds: [isvc, ServingRuntime]}
rbac:
  default: role:readonly
  scopes: "[groups, email]"
  admins: [cluster-admins]
  roles:
    llmops-developer: {groups: [data-scientists], may: [get, sync, action/*], applications: default/llmops-*}
check:
  baseline: known.json
  suppress: [{rule: AGY104, path: overlays/*, reason: the names are old}]
"""
SMALL = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository: {url: https://github.com/acme/models.git}
environments:
  dev: {application: llmops-dev, path: overlays/dev}
"""


def test_every_field_is_read() -> None:
    delivery = read_delivery_file(WHOLE)
    assert delivery.repository.credentials == RepositoryCredentials("ada", SecretSource(env="GIT_TOKEN"))
    assert delivery.argocd == ArgoCDReference("openshift-gitops", "openshift-gitops")
    dev, production = delivery.environments
    assert (dev.namespace, dev.sync, dev.product) == ("llmops-dev", SyncMode.AUTO, "llmops")
    assert (production.namespace, production.sync, production.after) == ("llmops-prod", SyncMode.MANUAL, "dev")
    assert (
        production.gates[:2] == (PromotionGate("check"), PromotionGate("healthy", "10m")) and len(production.gates) == 5
    )
    assert delivery.health == HealthOptions("lenient", ("isvc", "ServingRuntime"))
    assert delivery.rbac is not None and delivery.rbac.scopes == "[groups, email]"
    assert delivery.rbac.roles == (
        DeliveryRole("llmops-developer", ("data-scientists",), ("get", "sync", "action/*"), "default/llmops-*"),
    )
    assert delivery.check is not None and delivery.check.suppress[0].reason == "the names are old"


def test_omitted_fields_have_defaults() -> None:
    delivery = read_delivery_file(SMALL)
    assert delivery.repository.ref == "main" and delivery.argocd == ArgoCDReference()
    (dev,) = delivery.environments
    assert (dev.namespace, dev.sync, dev.gates) == ("llmops-dev", SyncMode.MANUAL, ())
    assert (delivery.health, delivery.rbac, delivery.check) == (None, None, None)


def test_init_template_is_a_valid_delivery_file() -> None:
    text = (ROOT / "src/argosy/features/init/templates/own/argosy.yaml").read_text()
    delivery = read_delivery_file(
        text.replace("__NAME__", "fraud").replace("__REPO_URL__", "https://example.com/fraud")
    )
    assert [environment.application for environment in delivery.environments] == [
        "fraud-dev",
        "fraud-staging",
        "fraud-production",
    ]
    assert delivery.product == "fraud"


def put(path: str, value: str) -> str:
    """Return the small file with one line added or changed."""
    head, _, last = path.rpartition(".")
    lines = {
        "": f"{SMALL}{last}: {value}\n",
        "repository": SMALL.replace("models.git}", f"models.git, {last}: {value}}}"),
        "environments.dev": SMALL.replace("overlays/dev}", f"overlays/dev, {last}: {value}}}"),
    }
    return lines[head]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a Delivery"),
        ("[]", "is not a Delivery"),
        (SMALL.replace("argosy.dev/v1", "argosy.dev/v2"), "apiVersion: is 'argosy.dev/v2'; it must be argosy.dev/v1"),
        (SMALL.replace("Delivery", "Deliver"), "kind: is 'Deliver'; it must be Delivery"),
        (put("enviroments", "{}"), "enviroments: is not known; did you mean environments?"),
        (put("environments.dev.pth", "x"), "environments.dev.pth: is not known; did you mean path?"),
        (put("repository.branch", "x"), "repository.branch: is not known; it may be one of: url, ref, credentials"),
        (put("environments.dev.sync", "automatic"), "environments.dev.sync: is 'automatic'; choose auto or manual"),
        (put("environments.dev.after", "devel"), "environments.dev.after: there is no environment devel"),
        (put("environments.dev.after", "dev"), "environments.dev.after: it comes after itself"),
        (put("environments.dev.namespace", "Dev"), "dev.namespace: 'Dev' is not a valid Kubernetes name"),
        (put("environments.dev.gates", "[{healthy: soon}]"), "gates.0.healthy: is 'soon'; give a duration such as 10m"),
        (put("environments.dev.gates", "[{check: false}]"), "gates.0.check: is False; write true"),
        (put("environments.dev.gates", "[{check: true, soak: 1h}]"), "gates.0: must have exactly one field"),
        (put("environments.dev.gates", "[{aproval: x}]"), "gates.0.aproval: is not known; did you mean approval?"),
        (put("environments.dev.gates", "yes please"), "gates: is 'yes please'; it must be a map or a list"),
        (SMALL.replace("overlays/dev", "/overlays/dev"), "path: is '/overlays/dev'; write it relative to the root"),
        (SMALL.replace("overlays/dev", "../dev"), "path: is '../dev'; write it relative to the root"),
        (SMALL.replace("path: overlays/dev", "sync: auto"), "environments.dev.path: is missing; add it"),
        (SMALL.replace("  dev: {application: llmops-dev, path: overlays/dev}", "  dev: 5"), "environments.dev: is 5"),
        (SMALL.replace("https://", "https://ada:secret@"), "repository.url: contains a user or a password"),
        (SMALL.replace("https://", "https://secret@"), "repository.url: contains a user or a password"),
        (SMALL.replace("https://", "ssh://git:secret@"), "repository.url: contains a user or a password"),
        (SMALL.partition("environments")[0], "environments: is empty; add one, such as dev"),
        (SMALL + "  test: {application: llmops-dev, path: x}\n", "llmops-dev is used by two environments"),
        (put("rbac", "{roles: {dev: {groups: [a]}}}"), "rbac.roles.dev.may: is missing"),
        (put("rbac", "{admins: ['a, role:admin']}"), "rbac.admins: contains 'a, role:admin'; a name has no spaces"),
        (put("rbac", "{roles: {'a b': {may: [get]}}}"), "rbac.roles.a b: is not a valid role name"),
        (put("health", "{kinds: isvc}"), "health.kinds: is 'isvc'; it must be a list of strings"),
        (put("repository.credentials", "{username: ada}"), "credentials: needs either passwordFrom or sshKeyFrom"),
        (put("repository.credentials", "{passwordFrom: {env: A}}"), "credentials.username: is missing"),
        (put("repository.credentials", "{username: ada, password: secret}"), "did you mean passwordFrom?"),
        (
            put("repository.credentials", "{username: ada, passwordFrom: {env: A, file: b}}"),
            "credentials.passwordFrom: needs either env or file",
        ),
        (
            put("repository.credentials", "{username: ada, passwordFrom: secret}"),
            "credentials.passwordFrom: is a value; it must be a map with the fields: env, file",
        ),
        (put("check", "{suppress: [{rule: AGY1}]}"), "check.suppress.0.reason: is missing"),
        (SMALL + "kind: Delivery\n", "already set in map"),
    ],
)
def test_invalid_field_is_named_with_its_allowed_values(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        read_delivery_file(text, "team/argosy.yaml")
    assert said in str(caught.value)
    assert re.match(r"team/argosy\.yaml(:[0-9]+)?: ", str(caught.value))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["git@github.com:acme/models.git", "ssh://git@github.com/acme/models", "file:///srv/r"])
def test_repository_url_without_secret_is_accepted(url: str) -> None:
    assert read_delivery_file(SMALL.replace("https://github.com/acme/models.git", url)).repository.url == url


def test_cycle_of_environments_is_rejected() -> None:
    text = SMALL.replace("dev}", "dev, after: b}") + "  b: {application: b, path: b, after: dev}\n"
    with pytest.raises(UserError, match="comes after itself"):
        read_delivery_file(text)


def test_reference_documents_exactly_the_existing_fields() -> None:
    text = (ROOT / "docs/reference/argosy-yaml.md").read_text()
    fields = text.partition("## Fields")[2].partition("\n## ")[0]
    rows = {line.split("`")[1].replace("NAME", "*") for line in fields.splitlines() if line.startswith("| `")}
    assert rows == {field for field in FIELDS if not field.endswith(".*")}


def test_example_in_reference_is_a_valid_delivery_file() -> None:
    text = (ROOT / "docs/reference/argosy-yaml.md").read_text()
    delivery = read_delivery_file(text.partition("```yaml\n")[2].partition("```")[0])
    assert delivery.product == "fraud" and delivery.rbac is not None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in entries:
        yield from places(child, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("new", [None, 5, 1.5, True, "", " ", "x\ny", "a, b", [], [None], [[]], {}, {"x": 1}])
def test_any_field_value_gives_a_result_or_a_user_error(new: Any) -> None:
    whole = read_yaml(WHOLE)
    for path in places(whole):
        try:
            read_delivery_file(dump_yaml(replaced(whole, path, new)))
        except UserError as error:
            assert "; " in str(error), f"{path}: {error} says not what to do"
