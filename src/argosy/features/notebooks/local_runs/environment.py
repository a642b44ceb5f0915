"""Environment variables and mounts of a local run.

In: a job, a folder of the run, the folder of volume claims. Out: variables and mounts. Never: mounts another folder of
the machine; follows a link in a claim.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.errors import TransientError, UserError
from argosy.features.notebooks.environment import variables
from argosy.features.notebooks.job import Job, Volume
from argosy.features.notebooks.local_runs.checkout import values_of
from argosy.isolation.restrictions import NOBODY
from argosy.kube.objects import Manifest

Read = Callable[[str, str], Awaitable[Manifest | None]]  # kind and name, in the job's namespace
_KINDS: Final = (("ConfigMap", "configMapRef", "configMapKeyRef"), ("Secret", "secretRef", "secretKeyRef"))


@dataclass(frozen=True)
class Mounted:
    source: Path
    name: str
    read_only: bool
    is_claim: bool = False


async def env_of(job: Job, read: Read) -> dict[str, str]:
    """Raises TransientError if a referenced object does not exist yet."""
    env = {
        **variables(job),
        "TMPDIR": "/tmp",  # noqa: S108  # private to the run
    }
    for source in job.env_from:
        for kind, field, _ in _KINDS:
            if reference := source.get(field):
                data = values_of(await _needed(kind, reference, read))
                env |= {
                    f"{source.get('prefix') or ''}{key}": text.decode(errors="replace") for key, text in data.items()
                }
    for each in job.env:
        env[str(each.get("name"))] = await _value(each, read)
    return {name: value for name, value in env.items() if name and "=" not in name and "\0" not in name + value}


async def _value(variable: Mapping[str, Any], read: Read) -> str:
    source = variable.get("valueFrom") or {}
    for kind, _, field in _KINDS:
        if reference := source.get(field):
            data = values_of(await _needed(kind, reference, read))
            if str(reference.get("key")) not in data:
                raise TransientError(f"{kind} {reference.get('name')}: key {reference.get('key')} not found; add it")
            return data[str(reference["key"])].decode(errors="replace")
    return str(variable.get("value") or "")


async def _needed(kind: str, reference: Mapping[str, Any], read: Read) -> Manifest:
    name = str(reference.get("name") or reference.get("secretName") or "")
    found = await read(kind, name)
    if found is None and reference.get("optional"):
        return {}
    if found is None:
        raise TransientError(f"{kind} {name}: not found; create it")
    return {"kind": kind, **found}


async def mounts_of(job: Job, own: Path, claims: Path, read: Read) -> list[Mounted]:
    """`run_folder` is a folder of the run, for volumes that are not claims."""
    volumes = {each.name: each for each in job.volumes}
    folders: dict[str, Path] = {}
    found: list[Mounted] = []
    for mount in job.mounts:
        volume = volumes.get(mount.volume)
        if volume is None:
            raise UserError(f"volume {mount.volume} is not defined; add it to podConfig.volumes", where=mount.path)
        if mount.volume not in folders:
            folders[mount.volume] = await _folder(job, volume, own / mount.volume, claims, read)
        is_claim = volume.kind == "persistentVolumeClaim"
        read_only = mount.read_only or volume.kind in ("configMap", "secret") or bool(volume.source.get("readOnly"))
        source = inside(folders[mount.volume], mount.sub_path)
        found.append(Mounted(source, mount.path, read_only, is_claim))
    return found


async def _folder(job: Job, volume: Volume, place: Path, claims: Path, read: Read) -> Path:
    if volume.kind == "persistentVolumeClaim":
        return give(claims / job.namespace / plain_name(str(volume.source.get("claimName") or "")))
    give(place)
    for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
        if volume.kind == field:
            data = values_of(await _needed(kind, volume.source, read))
            chosen = {str(item["path"]): data.get(str(item["key"])) for item in volume.source.get("items") or ()}
            for path, content in (chosen or data).items():
                if content is None:
                    raise TransientError(f"{kind} of volume {volume.name}: a key is missing; add it")
                file = inside(place, path, is_file=True)
                file.write_bytes(content)
                own(file, 0o400)
    return place


def inside(folder: Path, path: str, *, is_file: bool = False) -> Path:
    """Path below a folder that others can write to, created if missing. Raises UserError if it contains a link."""
    at = folder
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for number, part in enumerate(parts):
        at = at / part
        if part == ".." or at.is_symlink():
            raise UserError("points outside of its volume; use a path without links and ..", where=path)
        if not at.exists() and not (is_file and number == len(parts) - 1):
            give(at)
    return at


def plain_name(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise UserError("is not an object name; correct it", where=name or "claimName")
    return name


def give(folder: Path) -> Path:
    """Create a folder for the user of confined processes."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    own(folder, 0o700)
    return folder


def own(path: Path, mode: int | None = None) -> None:
    if mode is not None:
        path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def own_all(folder: Path) -> None:
    """Change the owner of a whole folder, before any other process can write to it."""
    if os.geteuid() == 0:
        for at, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(os.path.join(at, name), NOBODY, NOBODY, follow_symlinks=False)
    own(folder)
