"""The role validated_patterns_secrets, run by real Ansible against a sandbox API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from argosy.kube.schema.bundled_crds import load_definition
from support.ansible_playbooks import Run, ask, create_recording_kubectl, needs_ansible, needs_kubectl, play, read
from support.clusters import KUBECTL, Sandbox, sandbox

pytestmark = [needs_ansible, needs_kubectl, pytest.mark.tier("all")]  # test_ansible_roles.py runs it in every run

KIND = "gitea.pfe.rhpds.com"
NAMESPACE = "self-healing-platform"
NAMES = {"gitea-credentials-source": "Opaque", "git-credentials-source": "kubernetes.io/basic-auth"}
# Contains characters that a shell, template, regular expression or YAML parser would interpret.
PASSWORD = "pa$$ w'or\"d {{ 1 + 1 }} ünï\\1: #"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("credentials") / "data", "--port", "0") as started:
        yield started


@pytest.fixture(scope="module")
def without_the_kind(bare: Sandbox) -> Run:
    return run(bare)


@pytest.fixture(scope="module")
def gitea(bare: Sandbox, without_the_kind: Run) -> Sandbox:
    """A sandbox with the Gitea CRD and both namespaces."""
    for namespace in (NAMESPACE, "gitea"):
        ask(bare, "create", "namespace", namespace)
    ask(bare, "apply", "-f", "-", stdin=json.dumps(load_definition(KIND)))
    ask(bare, "wait", "--for=condition=Established", f"crd/{KIND}")
    return bare


def fresh(running: Sandbox, password: str = "", user: str = "ops") -> None:
    """Create one Gitea, ready if a password is given, and delete the Secrets."""
    ask(running, "delete", "secret", "-n", NAMESPACE, "--ignore-not-found", *NAMES)
    ask(running, "delete", KIND, "-n", "gitea", "--all")
    metadata = {"name": "gitea-with-admin", "namespace": "gitea"}
    manifest = {"apiVersion": "pfe.rhpds.com/v1", "kind": "Gitea", "metadata": metadata}
    ask(running, "create", "-f", "-", stdin=json.dumps({**manifest, "spec": {"giteaAdminUser": user}}))
    if password:
        tell_password(running, password)


def tell_password(running: Sandbox, password: str) -> None:
    """Write the password to the status, as the Gitea operator does."""
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": {"adminPassword": password}}))
    ask(running, "patch", KIND, "gitea-with-admin", "-n", "gitea", *patch)


def run(running: Sandbox, *flags: object, client: Path = KUBECTL, **variables: Any) -> Run:
    return play(running, "--tags", "secrets", *flags, client=client, **variables)


def read_secrets(running: Sandbox) -> dict[str, dict[str, Any]]:
    listed = read(running, "secrets", "-n", NAMESPACE)["items"]
    return {secret["metadata"]["name"]: secret for secret in listed if secret["metadata"]["name"] in NAMES}


def credentials(running: Sandbox) -> dict[str, tuple[str, str, str]]:
    credentials_by_name = {}
    for name, secret in read_secrets(running).items():
        data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
        credentials_by_name[name] = (secret["type"], data["username"], data["password"])
    return credentials_by_name


def holds(text: str, password: str = PASSWORD) -> bool:
    """True if the text contains the password in any form that a log could contain."""
    forms = {password, json.dumps(password)[1:-1], json.dumps(password, ensure_ascii=False)[1:-1], repr(password)[1:-1]}
    return any(form in text for form in (*forms, base64.b64encode(password.encode()).decode()))


@dataclass(frozen=True)
class Stand:
    """State after a run: its result, the Secrets, and their decoded credentials."""

    done: Run
    secrets: dict[str, dict[str, Any]]
    credentials: dict[str, tuple[str, str, str]]

    @property
    def versions(self) -> list[str]:
        return [secret["metadata"]["resourceVersion"] for secret in self.secrets.values()]


class Story(NamedTuple):
    """Three runs with maximum verbosity: with a password, the same again, and with a new password."""

    first: Stand
    second: Stand
    third: Stand
    calls: str  # of the kubectl client

    @property
    def told(self) -> str:
        return "".join(stand.done.text for stand in (self.first, self.second, self.third)) + self.calls


@pytest.fixture(scope="module")
def story(gitea: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("noted")
    client = create_recording_kubectl(folder)

    def stand() -> Stand:
        verbosity = "-vvvvv"  # prints everything that lower levels print
        return Stand(run(gitea, verbosity, "--diff", client=client), read_secrets(gitea), credentials(gitea))

    fresh(gitea, PASSWORD)
    first, second = stand(), stand()
    patch = json.dumps({"metadata": {"labels": {"team": "ml"}}, "data": {"url": "aHR0cHM6Ly9leGFtcGxlLmNvbQ=="}})
    ask(gitea, "patch", "secret", "gitea-credentials-source", "-n", NAMESPACE, "--type=merge", "-p", patch)
    tell_password(gitea, "the-second")
    return Story(first, second, stand(), (folder / "calls").read_text())


def test_missing_gitea_kind_skips_the_role(without_the_kind: Run) -> None:
    done = without_the_kind
    assert (done.code, done.changed) == (0, 0), done.text
    assert "Skipped: Gitea gitea-with-admin in namespace gitea does not exist." in done.words


def test_missing_gitea_or_password_writes_no_secrets(gitea: Sandbox) -> None:
    fresh(gitea)
    early = run(gitea)
    assert (early.code, early.changed) == (0, 0), early.text
    assert "has no user and password yet" in early.words
    other = run(gitea, gitea_name="other")
    assert other.code == 0 and "Skipped: Gitea other in namespace gitea does not exist." in other.words
    assert read_secrets(gitea) == {}


def test_credentials_are_written_once_to_both_secrets(story: Story) -> None:
    first, second = story.first, story.second
    assert (first.done.code, first.done.changed) == (0, 2), first.done.text
    assert first.credentials == {name: (kind, "ops", PASSWORD) for name, kind in NAMES.items()}
    labels = {"app.kubernetes.io/component": "external-secrets", "app.kubernetes.io/managed-by": "ansible"}
    assert all(secret["metadata"]["labels"] == labels for secret in first.secrets.values())
    assert not any(secret["metadata"].get("annotations") for secret in first.secrets.values()), "a copy of the password"
    assert (second.done.code, second.done.changed) == (0, 0), second.done.text
    assert second.versions == first.versions


def test_new_password_replaces_the_old_and_keeps_foreign_fields(story: Story) -> None:
    third = story.third
    assert (third.done.code, third.done.changed) == (0, 2), third.done.text
    assert {password for _, _, password in third.credentials.values()} == {"the-second"}
    secret = third.secrets["gitea-credentials-source"]
    assert secret["metadata"]["labels"]["team"] == "ml" and "url" in secret["data"]


def test_manually_written_password_is_replaced(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    literals = ("--from-literal=username=ops", "--from-literal=password=wrong")
    ask(gitea, "create", "secret", "generic", "gitea-credentials-source", "-n", NAMESPACE, *literals)
    assert run(gitea).changed == 2
    assert credentials(gitea)["gitea-credentials-source"] == ("Opaque", "ops", PASSWORD)


def test_check_mode_reports_changes_and_writes_no_secrets(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    done = run(gitea, "--check", "-vvv")
    assert (done.code, done.changed) == (0, 2), done.text
    assert read_secrets(gitea) == {} and not holds(done.text)


def test_password_is_never_logged_or_passed_as_an_argument(story: Story) -> None:
    assert "Write Secret gitea-credentials-source" in story.told
    assert "apply --server-side" in story.calls
    assert not holds(story.told) and not holds(story.told, "the-second")


def test_unwritable_secret_gives_an_error_without_the_password(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    absent = run(gitea, "-vvv", namespace="absent")
    assert absent.code != 0 and not holds(absent.text)
    assert "Secret gitea-credentials-source in namespace absent was not written" in absent.words
    assert 'namespaces "absent" not found' in absent.words
    literals = ("--from-literal=username=ops", "--from-literal=password=wrong")
    ask(gitea, "create", "secret", "generic", "git-credentials-source", "-n", NAMESPACE, *literals)
    typed = run(gitea, "-vvv")
    assert typed.code != 0 and not holds(typed.text)
    assert "has another type than kubernetes.io/basic-auth, and a type cannot change; delete it" in typed.words


def test_unreadable_gitea_gives_a_readable_error(gitea: Sandbox) -> None:
    done = run(gitea, kubeconfig="/nowhere")
    assert done.code != 0 and "cannot read Gitea gitea-with-admin in namespace gitea" in done.words
