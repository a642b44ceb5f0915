"""Permission checks of key files on container volumes and in folders of private groups."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.kube.client import container_volume_detection
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.client.private_file_writer import write_private

USER, STRANGER, FS_GROUP = 12345, 23456, 34567


@pytest.fixture(autouse=True)
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("to give files away and to mount takes root")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data with a space"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(container_volume_detection.KUBERNETES_HOST_VARIABLE, "10.0.0.1")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(container_volume_detection.KUBERNETES_HOST_VARIABLE, raising=False)
    monkeypatch.setattr(container_volume_detection, "CONTAINER_MARKER_FILES", ())


@pytest.fixture
def mount() -> Iterator[Callable[[Path], None]]:
    mounted: list[Path] = []

    def bind(path: Path) -> None:
        if subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False).returncode:
            pytest.skip("mounting is not allowed here")
        mounted.append(path)

    yield bind
    for path in mounted:
        subprocess.run(["umount", "-l", path], check=True)


def be(monkeypatch: pytest.MonkeyPatch, user: int, *groups: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: user)
    monkeypatch.setattr(os, "getgroups", lambda: list(groups))


def put_key(folder: Path, owner: int, group: int, mode: int) -> Path:
    key = folder / "secret.key"
    write_private(key, b"x" * 32)
    os.chown(key, owner, group)
    key.chmod(mode)
    return key


def set_folder(folder: Path, owner: int, group: int, mode: int) -> None:
    os.chown(folder, owner, group)
    folder.chmod(mode)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize(("owner", "mode"), [(0, 0o444), (0, 0o644), (STRANGER, 0o644)])
def test_secret_mounted_as_a_single_file_is_accepted_with_one_warning(
    data: Path, mount: Callable[[Path], None], owner: int, mode: int,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Docker secrets are 0444 of root, a Secret's subPath is 0644 of root, a compose secret is as on the host."""
    key = put_key(data, owner, owner, mode)
    data.chmod(0o755)
    be(monkeypatch, USER)
    with pytest.raises(UserError):
        check_private_file(key)
    mount(key)
    for _ in range(3):
        check_private_file(key)
    (warning,) = warnings_of(caplog)
    assert str(key) in warning and f"mode {mode:04o}" in warning


@pytest.mark.usefixtures("host")
def test_mount_outside_a_container_is_not_an_exception(
    data: Path, mount: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = put_key(data, 0, 0, 0o644)
    mount(key)
    be(monkeypatch, USER)
    data.chmod(0o755)
    with pytest.raises(UserError, match="can be read or written by others"):
        check_private_file(key)


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("user", [USER, 0])
def test_writable_folder_is_accepted_only_if_it_is_a_mounted_volume(
    data: Path, mount: Callable[[Path], None], user: int,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    key = put_key(data, user, user, 0o600)
    set_folder(data, 0, 0, 0o777)
    be(monkeypatch, user)
    with pytest.raises(UserError, match="can be written by others"):
        check_private_file(key)
    mount(data)
    check_private_file(key)
    check_private_file(key)
    assert len(warnings_of(caplog)) == 1


@pytest.mark.usefixtures("host")
def test_volume_with_an_fs_group_is_accepted_after_kubelet_changed_modes(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_folder(data, 0, FS_GROUP, 0o2775)
    key = put_key(data, USER, FS_GROUP, 0o660)
    be(monkeypatch, USER, FS_GROUP)
    check_private_file(key)
    assert not warnings_of(caplog)
    key.chmod(0o664)
    with pytest.raises(UserError, match="chmod 600"):
        check_private_file(key)
    key.chmod(0o660)
    be(monkeypatch, USER)
    with pytest.raises(UserError, match="chmod 600"):
        check_private_file(key)


@pytest.mark.usefixtures("host")
def test_root_may_use_a_folder_of_another_user_with_one_warning(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = put_key(data, 0, 0, 0o600)
    set_folder(data, STRANGER, STRANGER, 0o755)
    check_private_file(key)
    check_private_file(key)
    (warning,) = warnings_of(caplog)
    assert f"belongs to uid {STRANGER}" in warning
    data.chmod(0o757)
    with pytest.raises(UserError, match="chmod go-w"):
        check_private_file(key)


def name_groups(monkeypatch: pytest.MonkeyPatch, group: grp.struct_group, *users: pwd.struct_passwd) -> None:
    by_number = {user.pw_uid: user for user in users}
    monkeypatch.setattr(grp, "getgrgid", lambda number: {group.gr_gid: group}[number])
    monkeypatch.setattr(pwd, "getpwuid", lambda number: by_number[number])
    monkeypatch.setattr(pwd, "getpwall", lambda: list(users))


def account(name: str, user: int, group: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", user, group, "", "/", "/bin/sh"))


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("group", "members", "others_group", "is_private"),
    [
        pytest.param("ada", [], 1, True, id="of the user's name"),
        pytest.param("ada", ["ada"], 1, True, id="with the user as its only member"),
        pytest.param("ada", ["www-data"], 1, False, id="with another member"),
        pytest.param("ada", [], FS_GROUP, False, id="the primary group of another user"),
        pytest.param("users", [], 1, False, id="of another name, where a directory may have more users"),
    ],
)
def test_group_writable_folder_is_accepted_only_if_the_group_is_private(
    data: Path, monkeypatch: pytest.MonkeyPatch, group: str, members: list[str], others_group: int, is_private: bool
) -> None:
    """With umask 002, new folders are 0775; the group id may differ from the user id."""
    set_folder(data, USER, FS_GROUP, 0o775)
    key = put_key(data, USER, FS_GROUP, 0o600)
    be(monkeypatch, USER)
    entry = grp.struct_group((group, "x", FS_GROUP, members))
    name_groups(monkeypatch, entry, account("ada", USER, FS_GROUP), account("bob", STRANGER, others_group))
    if is_private:
        check_private_file(key)
    else:
        with pytest.raises(UserError, match=r"can be written by others .* run: chmod go-w"):
            check_private_file(key)
