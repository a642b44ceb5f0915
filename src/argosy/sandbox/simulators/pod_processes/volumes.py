"""Prepares the folders that a Pod's containers see: ConfigMaps, Secrets, the downward API and claims.

In: a Pod, its own folder, the folder of claims. Out: mounts. Never: any other folder of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.isolation.process_confinement import NOBODY_ID
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.pod_processes.command_and_environment import (
    ContainerConfigError,
    LoadObject,
    load_data,
    read_field_path,
)

MountSpec = tuple[str, str, bool]


async def prepare_volume_folders(
    pod: Manifest, pod_folder: Path, claims_folder: Path, load_object: LoadObject
) -> dict[str, Path]:
    """Create and fill the folder of each volume."""
    return {
        str(volume["name"]): await _prepare_volume_folder(
            pod, volume, pod_folder / str(volume["name"]), claims_folder, load_object
        )
        for volume in pod["spec"].get("volumes") or ()
    }


def build_mounts(container: Manifest, folders: Mapping[str, Path]) -> list[MountSpec]:
    mounts: list[MountSpec] = []
    for mount in container.get("volumeMounts") or ():
        folder = folders.get(str(mount["name"]))
        if folder is None:
            continue
        source = _resolve_sub_path(folder, str(mount.get("subPath") or ""))
        mounts.append((str(source), str(mount["mountPath"]), bool(mount.get("readOnly"))))
    return mounts


def _resolve_sub_path(folder: Path, sub_path: str) -> Path:
    """Return a subfolder of a volume, created if missing.

    Links are rejected, because an earlier process may have left one there.
    """
    current = folder
    for part in Path(sub_path).parts:
        current = current / part
        if part in ("/", "..") or current.is_symlink():
            raise ContainerConfigError(
                f"subPath {sub_path} leads out of its volume; use a path inside it without links or '..'"
            )
        if not current.exists():
            create_folder(current)
    return current


async def _prepare_volume_folder(
    pod: Manifest, volume: Manifest, volume_folder: Path, claims_folder: Path, load_object: LoadObject
) -> Path:
    if claim := volume.get("persistentVolumeClaim"):
        return create_folder(claims_folder / pod["metadata"]["namespace"] / str(claim["claimName"]))
    if "hostPath" in volume:
        raise ContainerConfigError(f"volume {volume['name']} is a hostPath, which is not supported; remove it")
    create_folder(volume_folder)
    for source in (volume.get("projected") or {}).get("sources") or [volume]:
        await _write_source_files(pod, source, volume_folder, load_object)
    return volume_folder


async def _write_source_files(
    pod: Manifest, source: Mapping[str, Any], volume_folder: Path, load_object: LoadObject
) -> None:
    for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
        if reference := source.get(field):
            data = await load_data(kind, reference, load_object)
            selected = {str(item["path"]): data.get(str(item["key"])) for item in reference.get("items") or ()}
            for path, value in (selected or data).items():
                if value is None:
                    raise ContainerConfigError(
                        f"{kind} {reference.get('name') or reference.get('secretName')} has no such key; add it"
                    )
                _write_file(volume_folder, path, value)
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        _write_file(
            volume_folder,
            str(item["path"]),
            read_field_path(pod, str((item.get("fieldRef") or {}).get("fieldPath"))).encode(),
        )


def _write_file(volume_folder: Path, relative_path: str, value: bytes) -> None:
    if ".." in Path(relative_path).parts or relative_path.startswith("/"):
        raise ContainerConfigError(f"the path {relative_path} leads out of its volume; remove '..' and a leading slash")
    file = volume_folder / relative_path
    create_folder(file.parent)
    file.write_bytes(value)
    set_owner(file, 0o600)


def create_folder(folder: Path) -> Path:
    """Create a folder owned by the user that confined processes run as."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    set_owner(folder, 0o700)
    return folder


def set_owner(path: Path, mode: int) -> None:
    """Set mode and owner so that confined processes can use the path."""
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY_ID, NOBODY_ID)
