"""Checks the permissions of files that contain a key or a token.

In: a path. Out: nothing, or a UserError with the command that fixes it. Never: changes a file: a key that others could
read may have been read, and its owner must know.

Volumes of containers have the owner and mode that Docker or the kubelet sets, and chmod inside the container does not
help: they are accepted with one warning.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from pathlib import Path

from argosy.errors import UserError
from argosy.kube.client.container_volume_detection import is_container_mount
from argosy.kube.client.private_unix_groups import is_group_of_process, is_private_group

log = logging.getLogger(__name__)

GROUP_AND_OTHERS_MASK, GROUP_MASK = 0o077, 0o070
GROUP_READ = 0o040
GROUP_WRITE, OTHERS_WRITE = 0o020, 0o002
KUBELET_DATA_LINK = "..data"  # k8s: the kubelet's link to the folder with the files of a mounted Secret
_warned_paths: set[Path] = set()


def check_private_file(file: Path, *, follow_links: bool = False) -> None:
    """Refuse a key that others can read or replace. A missing file is not refused.

    A file of a mounted Secret has the mode of the volume (0644, or 0440 with an fsGroup) and is accepted. A key owned
    by root may be readable by a group such as `ssl-cert` if the user is not root, as with PostgreSQL.
    `follow_links` is for keys that argosy did not create: keys of Let's Encrypt are links to another folder.
    """
    try:
        status = file.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(file)) from error
    is_mounted = is_mounted_secret(file)
    if follow_links and not is_mounted:
        file = file.resolve()
    elif not is_mounted:
        _check_link(file)
    if not stat.S_ISREG(status.st_mode):
        raise UserError("is not a regular file; name the file with the key or token", where=str(file))
    if problem := _describe_file_problem(file, status, is_mounted):
        _refuse_or_warn(file, status, problem)
    check_private_folder(file.parent)


def is_mounted_secret(file: Path) -> bool:
    """True for `tls.key -> ..data/tls.key`, where the kubelet created the link `..data`."""
    data = file.parent / KUBELET_DATA_LINK
    return file.is_symlink() and data.is_symlink() and file.resolve().is_relative_to(data.resolve())


def check_private_folder(folder: Path) -> None:
    """Refuse a folder in which others can replace a key. A missing folder is not refused."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return
    if problem := _describe_folder_problem(folder, status):
        _refuse_or_warn(folder, status, problem)


def _check_link(file: Path) -> None:
    if file.is_symlink() and not file.resolve().is_relative_to(file.parent.resolve()):
        message = f"is a link to {file.resolve()} in another folder; replace the link with the file"
        raise UserError(message, where=str(file))


def _describe_file_problem(file: Path, status: os.stat_result, is_mounted: bool) -> str:
    user, quoted = os.geteuid(), shlex.quote(str(file))
    if not _is_owner_trusted(file, status):
        return f"belongs to another user (uid {status.st_uid}); run: sudo chown {user} {quoted}"
    allowed = GROUP_READ if status.st_uid == 0 and user != 0 else 0
    if _has_volume_group(file, status):
        allowed = GROUP_MASK
    if status.st_mode & GROUP_AND_OTHERS_MASK & ~allowed and not is_mounted:
        return (
            f"can be read or written by others (mode {stat.S_IMODE(status.st_mode):04o}), "
            f"so it may no longer be secret; run: chmod 600 {quoted}"
        )
    return ""


def _has_volume_group(file: Path, status: os.stat_result) -> bool:
    """True if the kubelet set the group permissions, as it does for every file of a volume with an fsGroup.

    It sets files to 0660 and the setgid bit of folders each time a Pod starts.
    """
    folder = file.parent.stat()
    if not folder.st_mode & stat.S_ISGID or folder.st_gid != status.st_gid:
        return False
    return is_group_of_process(status.st_gid) and is_private_group(status.st_gid, status.st_uid)


def _describe_folder_problem(folder: Path, status: os.stat_result) -> str:
    """Return why others can replace files in the folder, or "". A sticky folder such as /tmp is safe."""
    if not _is_owner_trusted(folder, status):
        message = f"belongs to another user (uid {status.st_uid}), who can replace the keys in it"
        return message + "; use a folder of your own"
    writers = status.st_mode & (GROUP_WRITE | OTHERS_WRITE)
    if not writers or status.st_mode & stat.S_ISVTX:
        return ""
    if writers == GROUP_WRITE and is_private_group(status.st_gid, status.st_uid):
        return ""
    message = f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o}), who can replace the keys in it; "
    if os.geteuid() in (0, status.st_uid):
        return message + f"run: chmod go-w {shlex.quote(str(folder))}"
    return message + "use a folder of your own"


def _is_owner_trusted(path: Path, status: os.stat_result) -> bool:
    """True for this user and root. Root may use files of any user, such as a bind mount, with a warning."""
    user = os.geteuid()
    if user == 0 and status.st_uid != 0:
        _warn_once(path, f"belongs to uid {status.st_uid}, who can read and replace the keys in it")
    return user == 0 or status.st_uid in (0, user)


def _refuse_or_warn(path: Path, status: os.stat_result, problem: str) -> None:
    if not is_container_mount(path):
        raise UserError(problem, where=str(path))
    mode = stat.S_IMODE(status.st_mode)
    _warn_once(
        path, f"is a volume with uid {status.st_uid} and mode {mode:04o}: make sure that only this container uses it"
    )


def _warn_once(path: Path, message: str) -> None:
    """Log once for each path, because keys are checked repeatedly."""
    if path not in _warned_paths:
        _warned_paths.add(path)
        log.warning("%s: %s", path, message)
