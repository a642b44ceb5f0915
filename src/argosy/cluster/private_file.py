"""Permissions of files that hold a key or a token.

In: a path. Out: nothing, or a UserError with the command that helps. Never: changes a file: a key that others could
read may have been read, and its owner must know.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from argosy.model.errors import UserError

OTHERS = 0o077
GROUP_READ = 0o040
GROUP_WRITE, OTHERS_WRITE = 0o020, 0o002
MOUNTED_DATA = "..data"  # k8s: what the kubelet names the folder of a mounted Secret's files


def check_private(file: Path, *, follow_links: bool = False) -> None:
    """Refuse a key that others may read or replace. A file that does not exist is not refused.

    A file of a mounted Secret has the mode that the volume says (0644, or 0440 with an fsGroup), and is accepted. A key
    of root's may be readable by a group, such as `ssl-cert`, for a user who is not root, as PostgreSQL has it.
    `follow_links` is for keys that argosy did not make: those of Let's Encrypt are links to another folder.
    """
    try:
        found = file.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(file)) from error
    is_mounted = is_mounted_secret(file)
    if follow_links and not is_mounted:
        file = file.resolve()
    elif not is_mounted:
        _check_link(file)
    quoted = shlex.quote(str(file))
    if not stat.S_ISREG(found.st_mode):
        raise UserError("is not a file; a key or a token is one", where=str(file))
    if found.st_uid not in (0, os.geteuid()):
        message = f"belongs to another user (uid {found.st_uid}); type: sudo chown {os.geteuid()} {quoted}"
        raise UserError(message, where=str(file))
    allowed = GROUP_READ if found.st_uid == 0 and os.geteuid() != 0 else 0
    if found.st_mode & OTHERS & ~allowed and not is_mounted:
        message = (
            f"can be read or written by others (mode {stat.S_IMODE(found.st_mode):04o}), "
            f"so that it may not be secret any more; type: chmod 600 {quoted}"
        )
        raise UserError(message, where=str(file))
    _check_folder(file.parent)


def is_mounted_secret(file: Path) -> bool:
    """True for `tls.key -> ..data/tls.key`, where `..data` is a link of the kubelet's."""
    data = file.parent / MOUNTED_DATA
    return file.is_symlink() and data.is_symlink() and file.resolve().is_relative_to(data.resolve())


def _check_link(file: Path) -> None:
    if file.is_symlink() and not file.resolve().is_relative_to(file.parent.resolve()):
        message = f"is a link to {file.resolve()}, which is in another folder; put the file itself there"
        raise UserError(message, where=str(file))


def _check_folder(folder: Path) -> None:
    """Who may write to a folder replaces any file in it, unless it is sticky, as /tmp is.

    A group with the number of its user is that user's alone, on systems where the umask is 002.
    """
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()):
        message = f"belongs to another user (uid {found.st_uid}), who can replace the keys in it"
        message += "; use a folder of your own"
        raise UserError(message, where=str(folder))
    writers = OTHERS_WRITE if found.st_gid == found.st_uid else GROUP_WRITE | OTHERS_WRITE
    if found.st_mode & writers and not found.st_mode & stat.S_ISVTX:
        message = (
            f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o}), who can replace the keys in it; "
            f"type: chmod go-w {shlex.quote(str(folder))}"
        )
        raise UserError(message, where=str(folder))
