"""Command, environment, volumes and log file of a container that runs as a process."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from argosy.sandbox.simulators.pod_processes import container_log_file
from argosy.sandbox.simulators.pod_processes.command_and_environment import (
    ContainerConfigError,
    build_argv,
    build_env,
    expand_variables,
    read_field_path,
)
from argosy.sandbox.simulators.pod_processes.container_log_file import MAX_FILE_BYTES, ContainerLogFile
from argosy.sandbox.simulators.pod_processes.volumes import build_mounts, prepare_volume_folders

pytestmark = pytest.mark.anyio
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ml", "labels": {"a": "b", "c": "d"}},
    "spec": {"nodeName": "sandbox"},
}


async def read(kind: str, name: str) -> Any:
    objects = {
        ("ConfigMap", "words"): {"data": {"x": "1", "y": "2"}},
        ("Secret", "door"): {"data": {"key": base64.b64encode(b"sesame").decode()}},
    }
    return objects.get((kind, name))


def test_variable_references_expand_as_in_kubernetes() -> None:
    assert expand_variables("$(A) $(B) $$(A) $A $", {"A": "x"}) == "x $(B) $(A) $A $"


def test_container_without_a_command_is_rejected() -> None:
    with pytest.raises(ContainerConfigError):
        build_argv({"args": ["x"]}, {})


async def test_environment_contains_only_the_containers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "secret")
    container = {
        "envFrom": [{"configMapRef": {"name": "words"}, "prefix": "W_"}, {"secretRef": {"name": "door"}}],
        "env": [
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "x", "optional": True}}},
            {"name": "SUM", "value": "$(W_x)$(W_y)"},
        ],
    }
    expected = {"W_x": "1", "W_y": "2", "key": "sesame", "LABEL": "b", "SUM": "12"}
    assert await build_env(POD, container, read) == expected


async def test_missing_config_map_error_names_it() -> None:
    with pytest.raises(ContainerConfigError, match='configmap "gone" not found'):
        await build_env(POD, {"envFrom": [{"configMapRef": {"name": "gone"}}]}, read)


def test_field_path_reads_all_labels_and_the_node_name() -> None:
    assert read_field_path(POD, "metadata.labels") == 'a="b"\nc="d"'
    assert read_field_path(POD, "spec.nodeName") == "sandbox"


async def test_volumes_become_folders_and_mounts_stay_inside_them(tmp_path: Path) -> None:
    volumes = [
        {"name": "some", "configMap": {"name": "words", "items": [{"key": "x", "path": "deep/x"}]}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    pod = {**POD, "spec": {"volumes": volumes}}
    folders = await prepare_volume_folders(pod, tmp_path / "own", tmp_path / "claims", read)
    assert (folders["some"] / "deep" / "x").read_text() == "1"
    assert folders["claim"] == tmp_path / "claims" / "ml" / "data"
    mounts = build_mounts({"volumeMounts": [{"name": "claim", "mountPath": "/d", "subPath": "m"}]}, folders)
    assert mounts == [(str(folders["claim"] / "m"), "/d", False)]
    with pytest.raises(ContainerConfigError):
        build_mounts({"volumeMounts": [{"name": "claim", "mountPath": "/d", "subPath": "../.."}]}, folders)


@pytest.mark.parametrize(
    "volume",
    [
        {"name": "v", "hostPath": {"path": "/etc"}},
        {"name": "v", "configMap": {"name": "words", "items": [{"key": "x", "path": "../../out"}]}},
    ],
)
async def test_host_path_and_escaping_volumes_are_rejected(tmp_path: Path, volume: Any) -> None:
    with pytest.raises(ContainerConfigError):
        await prepare_volume_folders(
            {**POD, "spec": {"volumes": [volume]}}, tmp_path / "own", tmp_path / "claims", read
        )
    assert not (tmp_path / "out").exists()


async def test_log_file_is_bounded_and_keeps_the_newest_lines(tmp_path: Path) -> None:
    book = ContainerLogFile(tmp_path / "0.log")
    for number in range(40):
        book.write(f"{number}:".encode() + b"x" * (MAX_FILE_BYTES // 10) + b"\n")
    book.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2 * MAX_FILE_BYTES
    lines = [
        line
        async for line in container_log_file.read_lines(tmp_path / "0.log", tail=2, follow=False, is_over=lambda: True)
    ]
    assert [line.partition(":")[0] for line in lines] == ["38", "39"]


@pytest.mark.parametrize("sub", ["/etc", "../other", "link", "link/new", "a/../../b"])
def test_sub_path_outside_its_volume_is_rejected(tmp_path: Path, sub: str) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    outside.mkdir()
    volume.mkdir()
    (volume / "link").symlink_to(outside)  # an earlier process may have created this link
    container = {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": sub}]}
    with pytest.raises(ContainerConfigError, match="leads out of its volume"):
        build_mounts(container, {"v": volume})
    assert list(outside.iterdir()) == []
