"""Source settings: invalid ones are named, and limits are read."""

from __future__ import annotations

import pytest

from argosy.errors import SourceRefused
from argosy.gitops.source.repository_access_settings import SourceLimits, read_source_settings


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"source.local.roots": "relative/path"}, "source.local.roots"),
        ({"source.mirrors": "https://github.example"}, "source.mirrors"),
        ({"source.mirrors": "ext::sh /srv"}, "source.mirrors"),
        ({"source.protocols": "https ext"}, "source.protocols"),
        ({"source.protocols": "file"}, "source.protocols"),
        ({"source.limit.fetch.seconds": "0"}, "source.limit.fetch.seconds"),
        ({"source.limit.file.bytes": "1e9"}, "source.limit.file.bytes"),
    ],
)
def test_invalid_source_setting_is_named(data: dict[str, str], where: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        read_source_settings(data)
    assert caught.value.where == where


def test_limits_are_read_from_settings() -> None:
    data = {"source.limit.fetch.seconds": "600", "source.limit.fetch.bytes": " 5000000000\n"}
    data |= {"source.limit.list.seconds": "30", "source.limit.file.bytes": "1000"}
    limits = read_source_settings(data).limits
    assert (limits.fetch_seconds, limits.list_seconds) == (600, 30)
    assert (limits.pack_bytes, limits.file_bytes) == (5 * 10**9, 1000)
    assert read_source_settings({}).limits == SourceLimits()
