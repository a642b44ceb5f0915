"""Builds a root folder for a program that contains only the paths that it may see, with Linux namespaces.

In: paths of this machine. Out: a process whose root contains only them. Never: changes anything outside the process's
own namespaces; fails if namespaces are not allowed: the process then keeps its root.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_MAX_LINKS = 40


def unshare(flags: int) -> bool:
    """Unshare namespaces of these kinds; False if not allowed."""
    return int(ctypes.CDLL(None).unshare(flags)) == 0


def enter_user_namespace(*, network: bool = True) -> bool:
    """Enter new user, PID and IPC namespaces, and optionally a new network, as an ordinary user; False if not allowed.

    In its own user namespace a user may do what otherwise requires root. The user id stays the same.
    """
    user, group = os.getuid(), os.getgid()
    if not unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | (CLONE_NEWNET if network else 0)):
        return False
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        pass  # the process then runs with an unmapped user id, which is harmless
    return True


def has_process_limit_per_namespace() -> bool:
    """True if rlimit nproc counts processes per user namespace, as in Linux 5.14 and later."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return os.uname().sysname == "Linux" and tuple(int(number) for number in numbers if number.isdigit()) >= (5, 14)


def create_user_namespace() -> int | None:
    """Create a user namespace with the same users and return its descriptor; requires root. None if not possible.

    Processes in it are counted separately from other processes of the same user, and keep their user: files have the
    same owners on both sides. A helper process creates it, so that no process ends up in a half-configured one.
    """
    if not has_process_limit_per_namespace():
        return None
    (ready_reader, ready_writer), (exit_reader, exit_writer) = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:
        try:
            os.close(exit_writer)
            os.write(ready_writer, b"made" if unshare(CLONE_NEWUSER) else b"")
            os.close(ready_writer)
            os.read(exit_reader, 1)
        finally:
            os._exit(0)
    for number in (ready_writer, exit_reader):
        os.close(number)
    try:
        return _copy_user_maps(helper) if os.read(ready_reader, 4) else None
    except OSError:
        return None
    finally:
        for number in (ready_reader, exit_writer):
            os.close(number)
        os.waitpid(helper, 0)


def _copy_user_maps(helper: int) -> int:
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/self/{name}") as own_map:
            ranges = [(first, count) for first, _, count in map(str.split, own_map)]
        with open(f"/proc/{helper}/{name}", "w") as new_map:
            new_map.write("".join(f"{first} {first} {count}\n" for first, count in ranges))
    return os.open(f"/proc/{helper}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def join_user_namespace(users: int) -> None:
    """Join a namespace from `create_user_namespace`: with all capabilities there, and none here. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(users, CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "namespace of users")


def enter_root(
    folder: str,
    readable: Iterable[str],
    writable: Iterable[str],
    mounts: Iterable[tuple[str, str, bool]] = (),
    memory_folder: tuple[str, str] | None = None,
) -> bool:
    """Make an empty folder the root, with the readable and writable paths at the same places, and each of the
    `mounts` (source, target, read-only) at its target. Raises OSError.

    `memory_folder`: a writable path and the options of a tmpfs to mount there; returns True if it was mounted.
    """
    os.umask(0o022)  # the program must be able to enter the folders that are created here
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=1m")
    root, readable, writable = _RootBuilder(folder), list(readable), list(writable)
    early_mounts, late_mounts = _split_early_late_mounts(mounts, [*readable, *writable])
    for source, name, read_only in early_mounts:
        root.mount(source, name, read_only=read_only)
    for path in readable:
        root.bind_path(path, read_only=True)
    for path in writable:
        root.bind_path(path, read_only=False)
    has_memory_folder = memory_folder is not None and root.mount_tmpfs(*memory_folder)
    for source, name, read_only in late_mounts:
        root.mount(source, name, read_only=read_only)
    _mount(None, folder, None, _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    os.chroot(folder)
    os.chdir("/")
    return has_memory_folder


_Mounts = list[tuple[str, str, bool]]


def _split_early_late_mounts(mounts: Iterable[tuple[str, str, bool]], visible: list[str]) -> tuple[_Mounts, _Mounts]:
    """Split mounts into those that would hide visible paths, and must be mounted before them, and all others."""
    parts: tuple[_Mounts, _Mounts] = [], []
    for mount in mounts:
        hides = not mount[2] and any(path.startswith(f"{mount[1].rstrip('/')}/") for path in visible)
        parts[not hides].append(mount)
    return parts


class _RootBuilder:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._bound: set[str] = set()

    def bind_path(self, path: str, *, read_only: bool, links: int = 0) -> None:
        """Bind a path of this machine into the root, with every symbolic link on the way to it."""
        current = ""
        parts = os.path.normpath(path).strip("/").split("/")
        for index, part in enumerate(parts):
            current = f"{current}/{part}"
            if os.path.islink(current) and links < _MAX_LINKS:
                target = os.path.join(os.path.dirname(current), os.readlink(current))
                self._copy_link(current)
                self.bind_path(os.path.join(target, *parts[index + 1 :]), read_only=read_only, links=links + 1)
                return
        if os.path.exists(current) and not self._is_bound(current, read_only):
            self._bind(current, read_only)

    def mount_tmpfs(self, path: str, options: str) -> bool:
        """Mount a tmpfs over a folder that is already bound; False if not allowed."""
        try:
            _mount("tmpfs", self._folder + os.path.realpath(path), "tmpfs", _NO_SUID | _NO_DEVICES, options)
        except OSError:
            return False
        return True

    def mount(self, source: str, name: str, *, read_only: bool) -> None:
        """Bind a source at a target; an existing path is covered. Creates nothing in folders of the machine."""
        target = os.path.realpath(self._folder + os.path.normpath(f"/{name.strip('/')}"))
        if not f"{target}/".startswith(f"{self._folder}/"):
            raise PermissionError(1, "is outside the root folder", name)
        if not os.path.exists(target):
            if self._is_bound(target.removeprefix(self._folder), read_only=True):
                raise PermissionError(1, "is in a folder of the machine, in which nothing can be mounted", name)
            os.makedirs(target if os.path.isdir(source) else os.path.dirname(target), 0o755, exist_ok=True)
            if not os.path.isdir(source):
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(source, target, None, _BIND | _RECURSIVE)
        if read_only:
            _mount(None, target, None, _BIND | _REMOUNT | _READ_ONLY | _NO_SUID)

    def _is_bound(self, path: str, read_only: bool) -> bool:
        return read_only and any(path == other or path.startswith(f"{other}/") for other in self._bound)

    def _copy_link(self, path: str) -> None:
        target = self._folder + path
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
            os.symlink(os.readlink(path), target)

    def _bind(self, path: str, read_only: bool) -> None:
        target = self._folder + path
        if not os.path.lexists(target):
            os.makedirs(target if os.path.isdir(path) else os.path.dirname(target), 0o755, exist_ok=True)
            if not os.path.isdir(path):
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(path, target, None, _BIND | _RECURSIVE)
        if read_only:
            try:
                _mount(None, target, None, _BIND | _REMOUNT | _READ_ONLY | _NO_SUID)
            except OSError:
                pass  # Landlock and file permissions also forbid writing
            self._bound.add(path)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)
