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
from argosy.features.notebooks.local_runs.checkout import decode_data
from argosy.features.notebooks.notebook_validation_job_parser import JobVolume, NotebookJob
from argosy.features.notebooks.standard_environment_variables import build_variables
from argosy.isolation.process_confinement import NOBODY_ID
from argosy.kube.objects import Manifest

ReferenceLoader = Callable[[str, str], Awaitable[Manifest | None]]  # kind and name, in the job's namespace
_REFERENCE_KINDS: Final = (("ConfigMap", "configMapRef", "configMapKeyRef"), ("Secret", "secretRef", "secretKeyRef"))


@dataclass(frozen=True)
class LocalMount:
    source: Path
    mount_path: str
    read_only: bool
    is_claim: bool = False


async def load_variables(job: NotebookJob, read: ReferenceLoader) -> dict[str, str]:
    """Raises TransientError if a referenced object does not exist yet."""
    env = {
        **build_variables(job),
        "TMPDIR": "/tmp",  # noqa: S108  # private to the run
    }
    for source in job.env_from:
        for kind, field, _ in _REFERENCE_KINDS:
            if reference := source.get(field):
                data = decode_data(await _load_referenced_object(kind, reference, read))
                env |= {
                    f"{source.get('prefix') or ''}{key}": text.decode(errors="replace") for key, text in data.items()
                }
    for variable in job.env:
        env[str(variable.get("name"))] = await _load_value(variable, read)
    return {name: value for name, value in env.items() if name and "=" not in name and "\0" not in name + value}


async def _load_value(variable: Mapping[str, Any], read: ReferenceLoader) -> str:
    source = variable.get("valueFrom") or {}
    for kind, _, field in _REFERENCE_KINDS:
        if reference := source.get(field):
            data = decode_data(await _load_referenced_object(kind, reference, read))
            if str(reference.get("key")) not in data:
                raise TransientError(f"{kind} {reference.get('name')}: key {reference.get('key')} not found; add it")
            return data[str(reference["key"])].decode(errors="replace")
    return str(variable.get("value") or "")


async def _load_referenced_object(kind: str, reference: Mapping[str, Any], read: ReferenceLoader) -> Manifest:
    name = str(reference.get("name") or reference.get("secretName") or "")
    manifest = await read(kind, name)
    if manifest is None and reference.get("optional"):
        return {}
    if manifest is None:
        raise TransientError(f"{kind} {name}: not found; create it")
    return {"kind": kind, **manifest}


async def prepare_mounts(
    job: NotebookJob, run_folder: Path, claims_folder: Path, read: ReferenceLoader
) -> list[LocalMount]:
    """`run_folder` is a folder of the run, for volumes that are not claims."""
    volumes = {job_volume.name: job_volume for job_volume in job.volumes}
    folders: dict[str, Path] = {}
    mounts: list[LocalMount] = []
    for mount in job.mounts:
        volume = volumes.get(mount.volume)
        if volume is None:
            raise UserError(f"volume {mount.volume} is not defined; add it to podConfig.volumes", where=mount.path)
        if mount.volume not in folders:
            folders[mount.volume] = await _prepare_volume(job, volume, run_folder / mount.volume, claims_folder, read)
        is_claim = volume.kind == "persistentVolumeClaim"
        read_only = mount.read_only or volume.kind in ("configMap", "secret") or bool(volume.source.get("readOnly"))
        source = resolve_inside(folders[mount.volume], mount.sub_path)
        mounts.append(LocalMount(source, mount.path, read_only, is_claim))
    return mounts


async def _prepare_volume(
    job: NotebookJob, volume: JobVolume, folder: Path, claims_folder: Path, read: ReferenceLoader
) -> Path:
    if volume.kind == "persistentVolumeClaim":
        return create_owned_folder(
            claims_folder / job.namespace / check_object_name(str(volume.source.get("claimName") or ""))
        )
    create_owned_folder(folder)
    for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
        if volume.kind == field:
            data = decode_data(await _load_referenced_object(kind, volume.source, read))
            selected_items = {
                str(item["path"]): data.get(str(item["key"])) for item in volume.source.get("items") or ()
            }
            for path, content in (selected_items or data).items():
                if content is None:
                    raise TransientError(f"{kind} of volume {volume.name}: a key is missing; add it")
                file = resolve_inside(folder, path, is_file=True)
                file.write_bytes(content)
                set_owner(file, 0o400)
    return folder


def resolve_inside(folder: Path, path: str, *, is_file: bool = False) -> Path:
    """Path below a folder that others can write to, created if missing. Raises UserError if it contains a link."""
    current = folder
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for number, part in enumerate(parts):
        current = current / part
        if part == ".." or current.is_symlink():
            raise UserError("points outside of its volume; use a path without links and ..", where=path)
        if not current.exists() and not (is_file and number == len(parts) - 1):
            create_owned_folder(current)
    return current


def check_object_name(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise UserError("is not an object name; correct it", where=name or "claimName")
    return name


def create_owned_folder(folder: Path) -> Path:
    """Create a folder for the user of confined processes."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    set_owner(folder, 0o700)
    return folder


def set_owner(path: Path, mode: int | None = None) -> None:
    if mode is not None:
        path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY_ID, NOBODY_ID, follow_symlinks=False)


def set_owner_recursively(folder: Path) -> None:
    """Change the owner of a whole folder, before any other process can write to it."""
    if os.geteuid() == 0:
        for current, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(os.path.join(current, name), NOBODY_ID, NOBODY_ID, follow_symlinks=False)
    set_owner(folder)
