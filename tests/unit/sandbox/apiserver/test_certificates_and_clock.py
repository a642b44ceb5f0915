"""Certificates that were issued while the clock was ahead are issued again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argosy.sandbox.apiserver import tls


class Ahead(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime.now(UTC) + timedelta(days=2)


def test_certificate_that_is_not_valid_yet_is_reissued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every client rejects the server until the clock has caught up."""
    with monkeypatch.context() as patched:
        patched.setattr(tls, "datetime", Ahead)
        first = tls.ensure_certificates(tmp_path)
        early = first.certificate.read_bytes()
        assert tls.ensure_certificates(tmp_path).certificate.read_bytes() == early
    again = tls.ensure_certificates(tmp_path).certificate.read_bytes()
    assert again != early
    assert tls.ensure_certificates(tmp_path).certificate.read_bytes() == again
