"""Prepares the folders that a Pod's containers see: ConfigMaps, Secrets, the downward API and claims.

In: a Pod, its own folder, the folder of claims. Out: mounts. Never: any other folder of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.isolation.restrictions import NOBODY
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.pod_processes.settings import NotYet, Read, data_of, field_of

Mount = tuple[str, str, bool]


async def folders_of(pod: Manifest, own: Path, claims: Path, read: Read) -> dict[str, Path]:
    """Create and fill the folder of each volume."""
    return {
        str(volume["name"]): await _folder(pod, volume, own / str(volume["name"]), claims, read)
        for volume in pod["spec"].get("volumes") or ()
    }


def mounts_of(container: Manifest, folders: Mapping[str, Path]) -> list[Mount]:
    mounts: list[Mount] = []
    for each in container.get("volumeMounts") or ():
        folder = folders.get(str(each["name"]))
        if folder is None:
            continue
        source = _below(folder, str(each.get("subPath") or ""))
        mounts.append((str(source), str(each["mountPath"]), bool(each.get("readOnly"))))
    return mounts


def _below(folder: Path, sub: str) -> Path:
    """Return a subfolder of a volume, created if missing.

    Links are rejected, because an earlier process may have left one there.
    """
    at = folder
    for part in Path(sub).parts:
        at = at / part
        if part in ("/", "..") or at.is_symlink():
            raise NotYet(f"subPath {sub} leads out of its volume; use a path inside it without links or '..'")
        if not at.exists():
            give(at)
    return at


async def _folder(pod: Manifest, volume: Manifest, place: Path, claims: Path, read: Read) -> Path:
    if claim := volume.get("persistentVolumeClaim"):
        return give(claims / pod["metadata"]["namespace"] / str(claim["claimName"]))
    if "hostPath" in volume:
        raise NotYet(f"volume {volume['name']} is a hostPath, which is not supported; remove it")
    give(place)
    for source in (volume.get("projected") or {}).get("sources") or [volume]:
        await _fill(pod, source, place, read)
    return place


async def _fill(pod: Manifest, source: Mapping[str, Any], place: Path, read: Read) -> None:
    for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
        if reference := source.get(field):
            data = await data_of(kind, reference, read)
            chosen = {str(item["path"]): data.get(str(item["key"])) for item in reference.get("items") or ()}
            for path, value in (chosen or data).items():
                if value is None:
                    raise NotYet(
                        f"{kind} {reference.get('name') or reference.get('secretName')} has no such key; add it"
                    )
                _write(place, path, value)
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        _write(place, str(item["path"]), field_of(pod, str((item.get("fieldRef") or {}).get("fieldPath"))).encode())


def _write(place: Path, path: str, value: bytes) -> None:
    if ".." in Path(path).parts or path.startswith("/"):
        raise NotYet(f"the path {path} leads out of its volume; remove '..' and a leading slash")
    file = place / path
    give(file.parent)
    file.write_bytes(value)
    own(file, 0o600)


def give(folder: Path) -> Path:
    """Create a folder owned by the user that confined processes run as."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    own(folder, 0o700)
    return folder


def own(path: Path, mode: int) -> None:
    """Set mode and owner so that confined processes can use the path."""
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
