"""The role validated_patterns_secrets, run by the real Ansible against a real API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_playbook import Run, ask, needs_ansible, needs_kubectl, noted, play, read
from in_full import in_full
from serving import KUBECTL, Sandbox, sandbox

from argosy.schema.definitions import definition

pytestmark = [needs_ansible, needs_kubectl]

KIND = "gitea.pfe.rhpds.com"
NAMESPACE = "self-healing-platform"
NAMES = {"gitea-credentials-source": "Opaque", "git-credentials-source": "kubernetes.io/basic-auth"}
# What a shell, a template, a regular expression or a YAML reader would take apart.
PASSWORD = "pa$$ w'or\"d {{ 1 + 1 }} ünï\\1: #"


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """With the kind Gitea, and both namespaces."""
    with sandbox(tmp_path_factory.mktemp("credentials") / "data", "--port", "0") as started:
        for namespace in (NAMESPACE, "gitea"):
            ask(started, "create", "namespace", namespace)
        ask(started, "apply", "-f", "-", given=json.dumps(definition(KIND)))
        ask(started, "wait", "--for=condition=Established", f"crd/{KIND}")
        yield started


def fresh(running: Sandbox, password: str = "", user: str = "ops") -> None:
    """One Gitea, as ready as it has a password, and no Secrets."""
    ask(running, "delete", "secret", "-n", NAMESPACE, "--ignore-not-found", *NAMES)
    ask(running, "delete", KIND, "-n", "gitea", "--all")
    metadata = {"name": "gitea-with-admin", "namespace": "gitea"}
    manifest = {"apiVersion": "pfe.rhpds.com/v1", "kind": "Gitea", "metadata": metadata}
    ask(running, "create", "-f", "-", given=json.dumps({**manifest, "spec": {"giteaAdminUser": user}}))
    if password:
        tell_password(running, password)


def tell_password(running: Sandbox, password: str) -> None:
    """As its operator does."""
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": {"adminPassword": password}}))
    ask(running, "patch", KIND, "gitea-with-admin", "-n", "gitea", *patch)


def run(running: Sandbox, *flags: object, client: Path = KUBECTL, **variables: Any) -> Run:
    return play(running, "--tags", "secrets", *flags, client=client, **variables)


def found(running: Sandbox) -> dict[str, dict[str, Any]]:
    listed = read(running, "secrets", "-n", NAMESPACE)["items"]
    return {each["metadata"]["name"]: each for each in listed if each["metadata"]["name"] in NAMES}


def credentials(running: Sandbox) -> dict[str, tuple[str, str, str]]:
    told = {}
    for name, secret in found(running).items():
        data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
        told[name] = (secret["type"], data["username"], data["password"])
    return told


def versions(running: Sandbox) -> list[str]:
    return [secret["metadata"]["resourceVersion"] for secret in found(running).values()]


def holds(text: str, password: str = PASSWORD) -> bool:
    """In any of the forms that a log would give it."""
    forms = {password, json.dumps(password)[1:-1], json.dumps(password, ensure_ascii=False)[1:-1], repr(password)[1:-1]}
    return any(form in text for form in (*forms, base64.b64encode(password.encode()).decode()))


def test_without_the_kind_nothing_is_done(tmp_path: Path) -> None:
    with sandbox(tmp_path / "data", "--port", "0") as started:
        done = run(started)
    assert (done.code, done.changed) == (0, 0), done.text
    assert "Skipped: Gitea gitea-with-admin in namespace gitea does not exist." in done.words


@in_full
def test_without_a_gitea_or_its_password_nothing_is_done(gitea: Sandbox) -> None:
    fresh(gitea)
    early = run(gitea)
    assert (early.code, early.changed) == (0, 0), early.text
    assert "does not name its user and password yet" in early.words
    other = run(gitea, gitea_name="other")
    assert other.code == 0 and "Skipped: Gitea other in namespace gitea does not exist." in other.words
    assert found(gitea) == {}


def test_the_credentials_become_secrets_once(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    first = run(gitea)
    assert (first.code, first.changed) == (0, 2), first.text
    assert credentials(gitea) == {name: (kind, "ops", PASSWORD) for name, kind in NAMES.items()}
    labels = {"app.kubernetes.io/component": "external-secrets", "app.kubernetes.io/managed-by": "ansible"}
    assert all(secret["metadata"]["labels"] == labels for secret in found(gitea).values())
    assert not any(secret["metadata"].get("annotations") for secret in found(gitea).values()), "a copy of the password"
    before = versions(gitea)
    second = run(gitea)
    assert (second.code, second.changed) == (0, 0), second.text
    assert versions(gitea) == before


def test_a_new_password_replaces_the_old_and_keeps_what_others_added(gitea: Sandbox) -> None:
    fresh(gitea, "the-first")
    assert run(gitea).changed == 2
    theirs = json.dumps({"metadata": {"labels": {"team": "ml"}}, "data": {"url": "aHR0cHM6Ly9leGFtcGxlLmNvbQ=="}})
    ask(gitea, "patch", "secret", "gitea-credentials-source", "-n", NAMESPACE, "--type=merge", "-p", theirs)
    tell_password(gitea, "the-second")
    done = run(gitea)
    assert (done.code, done.changed) == (0, 2), done.text
    assert {password for _, _, password in credentials(gitea).values()} == {"the-second"}
    secret = found(gitea)["gitea-credentials-source"]
    assert secret["metadata"]["labels"]["team"] == "ml" and "url" in secret["data"]


@in_full
def test_a_password_that_somebody_wrote_by_hand_is_replaced(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    literals = ("--from-literal=username=ops", "--from-literal=password=wrong")
    ask(gitea, "create", "secret", "generic", "gitea-credentials-source", "-n", NAMESPACE, *literals)
    assert run(gitea).changed == 2
    assert credentials(gitea)["gitea-credentials-source"] == ("Opaque", "ops", PASSWORD)


@in_full
def test_check_mode_says_that_secrets_differ_and_writes_none(gitea: Sandbox) -> None:
    fresh(gitea, PASSWORD)
    done = run(gitea, "--check", "-vvv")
    assert (done.code, done.changed) == (0, 2), done.text
    assert found(gitea) == {} and not holds(done.text)


def test_no_password_is_printed_or_given_to_a_program_as_an_argument(gitea: Sandbox, tmp_path: Path) -> None:
    verbosity = "-vvvvv"  # it says all that fewer of them say
    fresh(gitea, "the-first")
    client = noted(tmp_path)
    told = run(gitea, verbosity, client=client).text
    tell_password(gitea, PASSWORD)
    for _ in range(2):
        told += run(gitea, verbosity, "--diff", client=client).text
    assert "Write Secret gitea-credentials-source" in told
    told += (tmp_path / "calls").read_text()
    assert "apply --server-side" in told
    assert not holds(told) and not holds(told, "the-first")


@in_full
def test_a_secret_that_cannot_be_written_is_a_sentence_without_the_password(gitea: Sandbox) -> None:
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


@in_full
def test_a_cluster_that_cannot_be_reached_is_a_sentence(gitea: Sandbox) -> None:
    done = run(gitea, kubeconfig="/nowhere")
    assert done.code != 0 and "cannot read Gitea gitea-with-admin in namespace gitea" in done.words
