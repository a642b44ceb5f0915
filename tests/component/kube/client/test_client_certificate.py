"""Client certificates and keys are loaded into OpenSSL and leave no files on disk."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.tls import build_ssl_context
from support.certificates import issue
from support.deadlines import HANG_SECONDS

KILLED_WHILE_LOADING = """
import os, signal, ssl, sys
from pathlib import Path
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.tls import build_ssl_context

ssl.SSLContext.load_cert_chain = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
cert, key = (Path(path).read_bytes() for path in sys.argv[1:])
build_ssl_context(Connection("https://h", cert_data=cert, key_data=key))
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def connection(**changes: Any) -> Connection:
    certificate = issue("client", is_for_clients=True)
    data = {"cert_data": certificate.pem, "key_data": certificate.key_pem, **changes}
    return Connection("https://h", name="h", **data)


def test_process_killed_while_loading_a_key_leaves_no_file(temporary: Path, tmp_path: Path) -> None:
    certificate = issue("client", is_for_clients=True)
    (tmp_path / "cert").write_bytes(certificate.pem)
    (tmp_path / "key").write_bytes(certificate.key_pem)
    command = [sys.executable, "-c", KILLED_WHILE_LOADING, str(tmp_path / "cert"), str(tmp_path / "key")]
    assert subprocess.run(command, check=False, timeout=HANG_SECONDS).returncode == -signal.SIGKILL
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("missing", ["", "function", "permission", "path"])
def test_certificate_and_key_load_with_and_without_memfd(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError("not allowed here")

    client_connection, descriptors = connection(), len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        if missing == "function":
            patch.delattr(os, "memfd_create")
        elif missing == "permission":
            patch.setattr(os, "memfd_create", refuse)
        elif missing == "path":
            patch.setattr(os, "access", lambda *_: False)
        assert isinstance(build_ssl_context(client_connection), ssl.SSLContext)
    assert list(temporary.iterdir()) == [] and len(os.listdir("/proc/self/fd")) == descriptors


def test_mismatched_key_is_an_error_and_leaves_no_file_or_descriptor(temporary: Path) -> None:
    client_connection, descriptors = connection(key_data=issue("other").key_pem), len(os.listdir("/proc/self/fd"))
    with pytest.raises(UserError, match="check that they belong together"):
        build_ssl_context(client_connection)
    assert list(temporary.iterdir()) == [] and len(os.listdir("/proc/self/fd")) == descriptors
