"""Files with keys and tokens: refused if other users can read or replace them, with the command that fixes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DataFolder
from argosy.errors import UserError
from argosy.features.local_sandbox.sandbox import _load_or_create_admin_token
from argosy.features.serve.web_server_run import WebServerOptions, _load_or_create_certificate, _write_audit_file
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.client.private_file_writer import write_private
from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from argosy.sandbox.apiserver.tls import ensure_certificates
from argosy.web.auth.login_codes import KEY_FILE_NAME, LoginCodes

STRANGER = 12345


@pytest.fixture
def key(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    write_private(folder / "secret.key", b"x" * 32)
    return folder / "secret.key"


def refusal(file: Path) -> str:
    with pytest.raises(UserError) as caught:
        check_private_file(file)
    return str(caught.value)


def test_own_private_file_and_missing_file_are_accepted(key: Path) -> None:
    check_private_file(key)
    check_private_file(key.with_name("later"))
    key.chmod(0o400)
    check_private_file(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o660, 0o666, 0o777, 0o601, 0o610])
def test_file_accessible_to_others_is_refused_with_a_chmod_command(key: Path, mode: int) -> None:
    key.chmod(mode)
    message = refusal(key)
    assert (
        message.startswith(f"{key}: ") and f"(mode {mode:04o})" in message and message.endswith(f"run: chmod 600 {key}")
    )
    key.chmod(0o600)
    check_private_file(key)


@pytest.mark.parametrize("mode", [0o702, 0o703, 0o707, 0o777])
def test_file_in_a_world_writable_folder_is_refused_unless_sticky(key: Path, mode: int) -> None:
    key.parent.chmod(mode)
    assert refusal(key).endswith(f"run: chmod go-w {key.parent}")
    key.parent.chmod(mode | 0o1000)  # sticky, as /tmp is
    check_private_file(key)


def test_file_of_another_user_or_folder_of_another_group_is_refused(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("to give a file away takes root")
    key.parent.chmod(0o770)
    check_private_file(key)
    os.chown(key.parent, 0, STRANGER)
    assert "chmod go-w" in refusal(key)
    os.chown(key.parent, 0, 0)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER + 1)
    os.chown(key, STRANGER, -1)
    assert f"belongs to another user (uid {STRANGER})" in refusal(key)
    os.chown(key, 0, -1)
    os.chown(key.parent, STRANGER, STRANGER)
    assert "who can replace the keys in it" in refusal(key)


def test_symlink_is_accepted_only_within_the_same_folder(key: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    write_private(elsewhere / "secret.key", b"x" * 32)
    link = key.with_name("link.key")
    link.symlink_to(elsewhere / "secret.key")
    assert f"is a link to {elsewhere / 'secret.key'}" in refusal(link)
    check_private_file(link, follow_links=True)
    (elsewhere / "secret.key").chmod(0o640)
    with pytest.raises(UserError, match="chmod 600"):
        check_private_file(link, follow_links=True)
    link.unlink()
    link.symlink_to(key.name)
    check_private_file(link)
    key.chmod(0o644)
    assert "chmod 600" in refusal(link)


@pytest.mark.parametrize("mode", [0o644, 0o440, 0o400])
def test_mounted_secret_file_is_accepted_with_the_mode_of_its_volume(tmp_path: Path, mode: int) -> None:
    """k8s: the kubelet's layout: tls.key -> ..data/tls.key, ..data -> ..2026_01_01."""
    volume = tmp_path / "tls"
    (volume / "..2026_01_01").mkdir(parents=True)
    volume.chmod(0o1777)
    (volume / "..2026_01_01" / "tls.key").write_bytes(b"x")
    (volume / "..2026_01_01" / "tls.key").chmod(mode)
    (volume / "..data").symlink_to("..2026_01_01")
    (volume / "tls.key").symlink_to("..data/tls.key")
    check_private_file(volume / "tls.key")
    volume.chmod(0o777)
    assert "chmod go-w" in refusal(volume / "tls.key")


def test_group_readable_key_of_root_is_accepted_for_another_user(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("a key of root's takes root")
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    key.chmod(0o640)
    check_private_file(key)
    key.chmod(0o644)
    assert "chmod 600" in refusal(key)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_write_private_sets_mode_0600_with_any_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_private(tmp_path / "secret.key", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["secret.key", "token.key", "argosy.db"])
async def test_control_plane_does_not_start_with_a_file_others_can_read(tmp_path: Path, name: str) -> None:
    folder = ControlPlaneFiles(tmp_path / "argosy.db", tmp_path / "secret.key", tmp_path / "token.key")
    async with ControlPlane.open(folder) as plane:
        await plane.tokens.ensure_key()
    (tmp_path / name).chmod(0o644)
    with pytest.raises(UserError, match=f"{name}: can be read or written by others .* run: chmod 600 "):
        async with ControlPlane.open(folder):
            pass
    (tmp_path / name).chmod(0o600)
    async with ControlPlane.open(folder):
        pass


def test_admin_token_and_tls_key_modes_are_checked(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    token = _load_or_create_admin_token(folder)
    folder.admin_token.chmod(0o644)
    with pytest.raises(UserError, match=r"admin\.token: can be read"):
        _load_or_create_admin_token(folder)
    folder.admin_token.chmod(0o600)
    assert _load_or_create_admin_token(folder) == token
    folder.admin_token.write_text("")
    assert len(_load_or_create_admin_token(folder)) == len(token), "nobody could log in with an empty token"
    certificates = ensure_certificates(folder.tls)
    certificates.key.chmod(0o640)
    with pytest.raises(UserError, match=r"server\.key: can be read"):
        ensure_certificates(folder.tls)


def test_web_server_tls_key_and_login_code_key_modes_are_checked(tmp_path: Path) -> None:
    options = WebServerOptions(folder=tmp_path / "page", listen="0.0.0.0")
    certificate = _load_or_create_certificate(options)
    assert certificate is not None
    certificate.key.chmod(0o644)
    with pytest.raises(UserError, match=r"tls\.key: can be read"):
        _load_or_create_certificate(options)
    codes = LoginCodes(tmp_path / "codes")
    code = codes.create_code()
    (tmp_path / "codes" / KEY_FILE_NAME).chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        codes.create_code()
    assert codes.redeem(code) is None
    (tmp_path / "codes" / KEY_FILE_NAME).chmod(0o600)
    assert codes.redeem(code)


def test_web_server_folder_is_created_with_mode_0700(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        with _write_audit_file(tmp_path / "state" / "page"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "state" / "page").stat().st_mode & 0o777 == 0o700


def test_no_login_code_is_created_in_a_folder_others_can_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    folder.chmod(0o777)
    codes = LoginCodes(folder)
    with pytest.raises(UserError, match="chmod go-w"):
        codes.create_code()
    assert not list(folder.iterdir())
    folder.chmod(0o700)
    code = codes.create_code()
    folder.chmod(0o777)
    assert codes.redeem(code) is None
    (record,) = caplog.records
    assert "login code refused" in record.getMessage() and f"chmod go-w {folder}" in record.getMessage()
