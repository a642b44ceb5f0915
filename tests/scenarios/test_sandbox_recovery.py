"""Sandbox robustness: kill -9, moved and damaged data folders, foreign files and shared kubeconfigs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from support.clusters import argosy, configmap, sandbox
from support.tiers import IN_TEST_ALL

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
OTHERS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://work.example"}}],
    "users": [{"name": "me", "user": {"token": "mine"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
    "extensions": [{"name": "kept"}],
}


def says_only(err: str, *words: str) -> None:
    assert err.startswith("argosy: ") and "Traceback" not in err, err
    for word in words:
        assert word in err, err


# -- crashes and damage ------------------------------------------------------------------------------------------


def test_start_after_kill_9_keeps_data_and_address(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as first:
        assert first.request("POST", CONFIGMAPS, configmap("kept")).code == 201
        first.kill()
    with sandbox(home / "data") as second:
        assert second.address == first.address
        assert second.request("GET", f"{CONFIGMAPS}/kept").code == 200


@pytest.mark.tier("all")
def test_moved_data_folder_works_at_its_new_path(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as first:
        first.request("POST", CONFIGMAPS, configmap("kept"))
        first.request("POST", CONFIGMAPS.replace("configmaps", "secrets"), {"metadata": {"name": "hidden"}})
        first.end()
    shutil.copytree(home / "data", home / "moved")
    shutil.rmtree(home / "data")
    with sandbox(home / "moved") as second:
        assert second.kubeconfig == home / "moved/kubeconfig"
        assert second.request("GET", f"{CONFIGMAPS}/kept").code == 200
        assert second.request("GET", f"{CONFIGMAPS.replace('configmaps', 'secrets')}/hidden").code == 200


def damage_head(folder: Path) -> None:
    data = (folder / "argosy.db").read_bytes()
    (folder / "argosy.db").write_bytes(b"x" * 4096 + data[4096:])


def damage_pages(folder: Path) -> None:
    data = (folder / "argosy.db").read_bytes()
    (folder / "argosy.db").write_bytes(data[:4096] + os.urandom(len(data) - 4096))


def cut_short(folder: Path) -> None:
    os.truncate(folder / "argosy.db", 5000)


def lose_key(folder: Path) -> None:
    (folder / "secret.key").write_bytes(os.urandom(32))


def shorten_key(folder: Path) -> None:
    (folder / "secret.key").write_bytes(b"short")


def damage_certificate(folder: Path) -> None:
    (folder / "tls/server.crt").write_text("nonsense")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped sandbox, for tests that copy it."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    with sandbox(folder, "--port", "0") as first:
        for number in range(20):
            first.request("POST", CONFIGMAPS, configmap(f"c{number}", {"a": "x" * 2000}))
        first.end()
    return folder


@pytest.mark.parametrize(
    "damage",
    [
        damage_head,
        lose_key,
        *(
            pytest.param(damage, marks=IN_TEST_ALL)
            for damage in (damage_pages, cut_short, shorten_key, damage_certificate)
        ),
    ],
)
def test_damaged_data_folder_is_refused_with_a_next_step(whole: Path, home: Path, damage: object) -> None:
    shutil.copytree(whole, home / "data")
    damage(home / "data")  # type: ignore[operator]
    done = argosy("sandbox", "start", "--data-dir", home / "data", "--port", "0", home=home)
    assert done.code == 2 and done.out == ""
    says_only(done.err, str(home / "data"), "next: ")


# -- foreign files and settings ----------------------------------------------------------------------------------


def test_folder_with_foreign_files_is_neither_used_nor_reset(home: Path) -> None:
    precious = home / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    for command in (["start", "--port", "0"], ["reset", "-y"]):
        done = argosy("sandbox", *command, "--data-dir", precious, home=home)
        assert done.code == 2 and "thesis.txt" in done.err
    assert [file.name for file in precious.iterdir()] == ["thesis.txt"]


@pytest.mark.tier("all")
def test_reset_removes_only_sandbox_files(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as started:
        started.end()
    (home / "data" / "notes.txt").write_text("mine")
    assert argosy("sandbox", "reset", "-y", "--data-dir", home / "data", home=home).code == 0
    assert {file.name for file in (home / "data").iterdir()} == {"lock", "notes.txt"}


@pytest.mark.tier("all")
def test_ephemeral_sandbox_removes_its_context_from_a_shared_kubeconfig(home: Path) -> None:
    file = home / "config"
    file.write_text(yaml.safe_dump(OTHERS))
    with sandbox(home / "data", "--port", "0", "--ephemeral", "--kubeconfig", str(file)) as started:
        assert len(yaml.safe_load(file.read_text())["contexts"]) == 2
        started.end()
    left = yaml.safe_load(file.read_text())
    assert {part: left[part] for part in ("clusters", "users", "contexts", "current-context")} == {
        part: OTHERS[part] for part in ("clusters", "users", "contexts", "current-context")
    }


@pytest.mark.tier("all")
def test_rbac_stays_on_after_a_restart_without_the_flag(home: Path) -> None:
    with sandbox(home / "data", "--port", "0", "--rbac") as started:
        assert "with RBAC" in started.line
        started.end()
    with sandbox(home / "data", "--port", "0") as started:
        assert "with RBAC" in started.line
        started.end()
    with sandbox(home / "data", "--port", "0", "--no-rbac") as started:
        assert "RBAC" not in started.line
        started.end()


@pytest.mark.tier("all")
def test_status_finds_the_only_running_sandbox_in_another_folder(home: Path) -> None:
    with sandbox(home / "elsewhere", "--port", "0") as started:
        status = json.loads(argosy("sandbox", "status", "-o", "json", home=home).out)
        assert status["dataDir"] == str(home / "elsewhere")
        started.end()
    assert argosy("sandbox", "status", home=home).code == 1


def test_load_reads_stdin_and_refuses_a_kustomization_folder(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as started:
        manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "piped"}})
        done = argosy("sandbox", "load", "--data-dir", started.folder, "-f", "-", home=home, input=manifest)
        assert done.code == 0 and done.out == "configmap/piped created\n"
        folder = home / "overlay"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text("resources: []")
        done = argosy("sandbox", "load", "--data-dir", started.folder, "-f", folder, home=home)
        assert done.code == 2 and "kubectl apply -k" in done.err
        started.end()
