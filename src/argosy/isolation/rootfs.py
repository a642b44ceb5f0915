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

NEW_NAMES, NEW_IPC, NEW_USERS, NEW_PIDS, NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_MOST_LINKS = 40


def leave(kinds: int) -> bool:
    """Unshare namespaces of these kinds; False if not allowed."""
    return int(ctypes.CDLL(None).unshare(kinds)) == 0


def leave_as_user(*, network: bool = True) -> bool:
    """Enter new user, PID and IPC namespaces, and optionally a new network, as an ordinary user; False if not allowed.

    In its own user namespace a user may do what otherwise requires root. The user id stays the same.
    """
    user, group = os.getuid(), os.getgid()
    if not leave(NEW_USERS | NEW_PIDS | NEW_IPC | (NEW_NET if network else 0)):
        return False
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        pass  # the process then runs with an unmapped user id, which is harmless
    return True


def counts_users_apart() -> bool:
    """True if rlimit nproc counts processes per user namespace, as in Linux 5.14 and later."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return os.uname().sysname == "Linux" and tuple(int(number) for number in numbers if number.isdigit()) >= (5, 14)


def make_users() -> int | None:
    """Create a user namespace with the same users and return its descriptor; requires root. None if not possible.

    Processes in it are counted separately from other processes of the same user, and keep their user: files have the
    same owners on both sides. A helper process creates it, so that no process ends up in a half-configured one.
    """
    if not counts_users_apart():
        return None
    (told, tell), (wait, let_go) = os.pipe(), os.pipe()
    maker = os.fork()
    if maker == 0:
        try:
            os.close(let_go)
            os.write(tell, b"made" if leave(NEW_USERS) else b"")
            os.close(tell)
            os.read(wait, 1)
        finally:
            os._exit(0)
    for number in (tell, wait):
        os.close(number)
    try:
        return _with_our_users(maker) if os.read(told, 4) else None
    except OSError:
        return None
    finally:
        for number in (told, let_go):
            os.close(number)
        os.waitpid(maker, 0)


def _with_our_users(maker: int) -> int:
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/self/{name}") as ours:
            ranges = [(first, count) for first, _, count in map(str.split, ours)]
        with open(f"/proc/{maker}/{name}", "w") as theirs:
            theirs.write("".join(f"{first} {first} {count}\n" for first, count in ranges))
    return os.open(f"/proc/{maker}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def enter_users(users: int) -> None:
    """Join a namespace from `create_user_namespace`: with all capabilities there, and none here. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(users, NEW_USERS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "namespace of users")


def move_in(
    place: str,
    seen: Iterable[str],
    written: Iterable[str],
    mounts: Iterable[tuple[str, str, bool]] = (),
    memory_folder: tuple[str, str] | None = None,
) -> bool:
    """Make an empty folder the root, with the readable and writable paths at the same places, and each of the
    `mounts` (source, target, read-only) at its target. Raises OSError.

    `memory_folder`: a writable path and the options of a tmpfs to mount there; returns True if it was mounted.
    """
    os.umask(0o022)  # the program must be able to enter the folders that are created here
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", place, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=1m")
    root, seen, written = _Root(place), list(seen), list(written)
    below, above = _parted(mounts, [*seen, *written])
    for source, name, read_only in below:
        root.mount(source, name, read_only=read_only)
    for path in seen:
        root.show(path, read_only=True)
    for path in written:
        root.show(path, read_only=False)
    has_memory_folder = memory_folder is not None and root.cover(*memory_folder)
    for source, name, read_only in above:
        root.mount(source, name, read_only=read_only)
    _mount(None, place, None, _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    os.chroot(place)
    os.chdir("/")
    return has_memory_folder


_Mounts = list[tuple[str, str, bool]]


def _parted(mounts: Iterable[tuple[str, str, bool]], shown: list[str]) -> tuple[_Mounts, _Mounts]:
    """Split mounts into those that would hide visible paths, and must be mounted before them, and all others."""
    parts: tuple[_Mounts, _Mounts] = [], []
    for each in mounts:
        hides = not each[2] and any(path.startswith(f"{each[1].rstrip('/')}/") for path in shown)
        parts[not hides].append(each)
    return parts


class _Root:
    def __init__(self, place: str) -> None:
        self._place = place
        self._shown: set[str] = set()

    def show(self, path: str, *, read_only: bool, links: int = 0) -> None:
        """Bind a path of this machine into the root, with every symbolic link on the way to it."""
        at = ""
        parts = os.path.normpath(path).strip("/").split("/")
        for number, part in enumerate(parts):
            at = f"{at}/{part}"
            if os.path.islink(at) and links < _MOST_LINKS:
                target = os.path.join(os.path.dirname(at), os.readlink(at))
                self._link(at)
                self.show(os.path.join(target, *parts[number + 1 :]), read_only=read_only, links=links + 1)
                return
        if os.path.exists(at) and not self._is_shown(at, read_only):
            self._bind(at, read_only)

    def cover(self, path: str, options: str) -> bool:
        """Mount a tmpfs over a folder that is already bound; False if not allowed."""
        try:
            _mount("tmpfs", self._place + os.path.realpath(path), "tmpfs", _NO_SUID | _NO_DEVICES, options)
        except OSError:
            return False
        return True

    def mount(self, source: str, name: str, *, read_only: bool) -> None:
        """Bind a source at a target; an existing path is covered. Creates nothing in folders of the machine."""
        inside = os.path.realpath(self._place + os.path.normpath(f"/{name.strip('/')}"))
        if not f"{inside}/".startswith(f"{self._place}/"):
            raise PermissionError(1, "is outside the root folder", name)
        if not os.path.exists(inside):
            if self._is_shown(inside.removeprefix(self._place), read_only=True):
                raise PermissionError(1, "is in a folder of the machine, in which nothing can be mounted", name)
            os.makedirs(inside if os.path.isdir(source) else os.path.dirname(inside), 0o755, exist_ok=True)
            if not os.path.isdir(source):
                os.close(os.open(inside, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(source, inside, None, _BIND | _RECURSIVE)
        if read_only:
            _mount(None, inside, None, _BIND | _REMOUNT | _READ_ONLY | _NO_SUID)

    def _is_shown(self, at: str, read_only: bool) -> bool:
        return read_only and any(at == other or at.startswith(f"{other}/") for other in self._shown)

    def _link(self, at: str) -> None:
        inside = self._place + at
        if not os.path.lexists(inside):
            os.makedirs(os.path.dirname(inside), 0o755, exist_ok=True)
            os.symlink(os.readlink(at), inside)

    def _bind(self, at: str, read_only: bool) -> None:
        inside = self._place + at
        if not os.path.lexists(inside):
            os.makedirs(inside if os.path.isdir(at) else os.path.dirname(inside), 0o755, exist_ok=True)
            if not os.path.isdir(at):
                os.close(os.open(inside, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(at, inside, None, _BIND | _RECURSIVE)
        if read_only:
            try:
                _mount(None, inside, None, _BIND | _REMOUNT | _READ_ONLY | _NO_SUID)
            except OSError:
                pass  # Landlock and file permissions also forbid writing
            self._shown.add(at)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)
