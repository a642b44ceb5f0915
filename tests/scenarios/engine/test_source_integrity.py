"""Projects that require signed revisions: unsigned ones are compared and reported, but never applied."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.engine import Room, conditions, config_map
from support.signing_keys import Keys, open_keys

pytestmark = pytest.mark.anyio
KEYS_CONFIG_MAP = "argocd-gpg-keys-cm"
ONE, TWO = {"app/settings.yaml": config_map(a="one")}, {"app/settings.yaml": config_map(a="two")}
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    with open_keys(tmp_path_factory.mktemp("k") / "h") as keyring:
        yield keyring


@pytest.fixture(autouse=True)
def signer_home(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNUPGHOME", str(keys.home))


def sign_head(room: Room, key: str) -> str:
    """Replace the newest commit with the same one, signed."""
    folder = room.repository.path
    command = ["git", "-C", str(folder), "-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    subprocess.run([*command, "commit", "--quiet", "--amend", "--no-edit", f"-S{key}"], check=True, capture_output=True)
    return room.repository.head


def integrity(*policy_keys: str, mode: str = "head", url: str = "*") -> dict[str, Any]:
    return {"git": {"policies": [{"repos": [{"url": url}], "gpg": {"mode": mode, "keys": list(policy_keys)}}]}}


async def add_keys(room: Room, keys: Keys, *names: str) -> None:
    await room.configure(keys.public(*names), KEYS_CONFIG_MAP)


@pytest.fixture
async def keyring(room: Room) -> None:
    metadata = {"name": KEYS_CONFIG_MAP, "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})


@pytest.mark.parametrize("is_legacy", [True, False], ids=["signatureKeys", "sourceIntegrity"])
async def test_unsigned_commit_is_out_of_sync_with_a_condition_and_is_never_applied(
    room: Room, keyring: None, keys: Keys, is_legacy: bool
) -> None:
    alice = keys.ids["alice"]
    await add_keys(room, keys, "alice")
    await room.project(**{"signatureKeys": [{"keyID": alice}]} if is_legacy else {"sourceIntegrity": integrity(alice)})
    commit = room.repository.push(ONE)
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.settled()
    [message] = conditions(app["status"], "ComparisonError")
    assert message.startswith(f"GIT/GPG: Failed verifying revision {commit} by 'ann@example.com <ann@example.com>': ")
    assert "unsigned (key_id=)" in message and "git commit -S" in message
    assert "operationState" not in app["status"] and app["status"]["health"]["status"] == "Missing"
    await room.sync()
    state = (await room.until_over())["status"]["operationState"]
    assert state["phase"] == "Error" and "Failed verifying revision" in state["message"]
    assert await room.get("ConfigMap", "settings") is None
    signed = sign_head(room, alice)
    await room.annotate(refresh="normal")
    app = await room.until_synced(signed)
    assert "conditions" not in app["status"]


async def test_same_manifests_at_an_unsigned_commit_are_reported(room: Room, keyring: None, keys: Keys) -> None:
    await add_keys(room, keys, "alice")
    await room.project(sourceIntegrity=integrity(keys.ids["alice"]))
    room.repository.push(ONE)
    signed = sign_head(room, keys.ids["alice"])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced(signed)
    room.repository.push({"other/readme": "x"})
    await room.annotate(refresh="normal")
    assert "unsigned" in await room.until_condition("ComparisonError")
    app = await room.settled()
    assert app["status"]["sync"]["status"] == "Synced"
    room.repository.push(TWO)
    await room.annotate(refresh="normal")
    app = await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    live = await room.get("ConfigMap", "settings")
    assert live is not None and live["data"] == {"a": "one"}
    assert app["status"]["operationState"]["syncResult"]["revision"] == signed


async def test_key_is_named_if_it_is_unknown_or_the_project_does_not_allow_it(
    room: Room, keyring: None, keys: Keys
) -> None:
    await room.project(sourceIntegrity=integrity())
    room.repository.push(ONE)
    sign_head(room, keys.ids["alice"])
    await room.deliver(project="team")
    message = await room.until_condition("ComparisonError")
    assert f"signed with key not in keyring (key_id={keys.ids['alice']})" in message
    await add_keys(room, keys, "alice")
    await room.annotate(refresh="normal")
    await room.until(
        lambda status: (
            "signed with unallowed key" in conditions(status, "ComparisonError")[0]
            and keys.ids["alice"] in conditions(status, "ComparisonError")[0]
        )
    )


async def test_each_source_that_is_not_signed_has_its_own_condition(room: Room, keyring: None, keys: Keys) -> None:
    await add_keys(room, keys, "alice")
    await room.project(sourceIntegrity=integrity(keys.ids["alice"]))
    room.repository.push({**ONE, "more/more.yaml": config_map("more", a="one")})
    source = {"repoURL": room.repository.url, "targetRevision": "main"}
    sources = [{**source, "path": "app", "name": "uno"}, {**source, "path": "more"}]
    await room.deliver(project="team", source=None, sources=sources)
    app = await room.until(lambda status: len(conditions(status, "ComparisonError")) == 2)
    first, second = conditions(app["status"], "ComparisonError")
    assert first.startswith("GIT/GPG: source 2 of 2: Failed verifying revision")
    assert second.startswith("GIT/GPG: source uno: Failed verifying revision")


async def test_repository_without_a_policy_and_with_mode_none_needs_no_signature(
    room: Room, tmp_path: Path, keyring: None, keys: Keys
) -> None:
    await room.project(sourceIntegrity=integrity(keys.ids["alice"], url="https://git.example.com/*"))
    room.repository.push(ONE)
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced()


async def test_policy_that_cannot_be_verified_is_refused(room: Room, keys: Keys) -> None:
    await room.project(sourceIntegrity=integrity(keys.ids["alice"], mode="strict"))
    room.repository.push(ONE)
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    assert "the mode 'strict'" in await room.until_condition("InvalidSpecError")
    assert await room.get("ConfigMap", "settings") is None
