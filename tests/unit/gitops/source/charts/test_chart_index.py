"""The index of a Helm repository: versions of one chart, and which of them a targetRevision selects."""

from __future__ import annotations

import json

import pytest

from argosy.errors import CorruptSource, UnknownRef
from argosy.gitops.source.charts import chart_index
from argosy.gitops.source.charts.chart_index import (
    ChartVersion,
    find_chart_version,
    list_chart_versions,
    list_charts,
    resolve_archive_url,
    resolve_version,
)

DIGEST = "a" * 64
# As `helm repo index` writes it: the lists have the indentation of their keys.
INDEX = f"""\
apiVersion: v1
entries:
  redis:
  - annotations:
      redis: "no heading"
    created: "2026-01-01T00:00:00Z"
    description: |
      entries:
        shop:
      - not a list
    digest: {DIGEST}
    name: redis
    urls:
    - redis-2.0.0.tgz
    version: 2.0.0
  - name: redis
    urls: [https://cdn.example.com/redis-1.10.0.tgz]
    version: 1.10.0
  "shop":
  - name: shop
    urls:
    - charts/shop-0.1.0.tgz
    version: 0.1.0
generated: "2026-01-01T00:00:00Z"
""".encode()
WHERE = "https://charts.example.com"


def test_versions_of_a_chart_are_listed_with_url_and_digest() -> None:
    assert list_chart_versions(INDEX, "redis", WHERE) == [
        ChartVersion("2.0.0", "redis-2.0.0.tgz", DIGEST),
        ChartVersion("1.10.0", "https://cdn.example.com/redis-1.10.0.tgz"),
    ]
    assert [version.version for version in list_chart_versions(INDEX, "shop", WHERE)] == ["0.1.0"]


def test_only_the_part_of_the_chart_is_parsed() -> None:
    broken_elsewhere = INDEX.replace(b"- charts/shop-0.1.0.tgz", b"- [charts/shop-0.1.0.tgz")
    assert len(list_chart_versions(broken_elsewhere, "redis", WHERE)) == 2
    with pytest.raises(CorruptSource, match=r"its index\.yaml cannot be read"):
        list_chart_versions(broken_elsewhere, "shop", WHERE)


@pytest.mark.parametrize(
    "index",
    [
        json.dumps({"entries": {"redis": [{"version": "1.0.0", "urls": ["a.tgz"]}]}}).encode(),
        b"entries: {redis: [{version: 1.0.0, urls: [a.tgz]}]}",
        b"entries:\n  redis: [{version: 1.0.0, urls: [a.tgz]}]\n",
        b"entries:\r\n  redis:\r\n  - version: 1.0.0\r\n    urls: [a.tgz]\r\n",
        b"# comment\nentries:\n\n    # comment\n    'redis':\n      - {version: 1.0.0, urls: [a.tgz]}\n",
    ],
    ids=["json", "flow", "flow-list", "crlf", "indented"],
)
def test_every_notation_of_an_index_is_read(index: bytes) -> None:
    assert list_chart_versions(index, "redis", WHERE) == [ChartVersion("1.0.0", "a.tgz")]


def test_index_in_json_has_limits_like_one_in_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"entries": {"redis": ' + b"[" * 200 + b"]" * 200 + b"}}"
    with pytest.raises(CorruptSource, match=r"its index\.yaml cannot be read: nested more than 100 levels"):
        list_chart_versions(deep, "redis", WHERE)
    large = json.dumps({"entries": {"redis": [{"version": "1.0.0", "urls": ["a.tgz"]}] * 100}}).encode()
    assert len(list_chart_versions(large, "redis", WHERE)) == 100
    monkeypatch.setattr(chart_index, "MAX_JSON_SIGNS", 500)
    with pytest.raises(CorruptSource, match="it has more than 500 commas, colons and brackets"):
        list_chart_versions(large, "redis", WHERE)


def test_unusable_entries_are_skipped() -> None:
    items = "null", "{version: 1}", "{version: latest, urls: [a]}", "{version: 1.0.0, urls: []}"
    usable = "{version: 1.0.1, urls: [a.tgz], digest: md5}"
    index = "entries:\n  a:\n" + "".join(f"  - {item}\n" for item in (*items, usable))
    assert list_chart_versions(index.encode(), "a", WHERE) == [ChartVersion("1.0.1", "a.tgz")]


def test_missing_chart_and_other_documents_are_errors() -> None:
    with pytest.raises(UnknownRef, match="chart 'reddis' not found in index"):
        list_chart_versions(INDEX, "reddis", WHERE)
    with pytest.raises(CorruptSource, match="this is not a Helm repository"):
        list_chart_versions(b"<html>sign in</html>", "redis", WHERE)


def test_all_charts_are_listed_by_name() -> None:
    assert list_charts(INDEX, WHERE) == {"redis": ["2.0.0", "1.10.0"], "shop": ["0.1.0"]}


@pytest.mark.parametrize(
    ("ref", "version"),
    [
        ("1.2.3", "1.2.3"),  # argo: a pin, whether or not the index has it
        ("v9.0", "v9.0"),
        ("*", "1.10.0"),
        ("^1.0", "1.10.0"),
        ("~1.2", "1.2.4"),
        ("1.x", "1.10.0"),
        (">=1.0.0-0", "2.0.0-rc.1"),
        ("nightly", "nightly"),
        ("latest", None),
        (">=3", None),
    ],
)
def test_target_revision_selects_a_version_as_in_argo_cd(ref: str, version: str | None) -> None:
    assert resolve_version(ref, ["2.0.0-rc.1", "1.10.0", "1.2.4", "1.2.3", "nightly"]) == version


def test_pin_is_the_exact_version_or_the_newest_that_helm_admits() -> None:
    versions = [ChartVersion(text, text) for text in ("1.2.5", "1.2", "1.3.0", "1.3.0+build")]
    assert find_chart_version(versions, "1.2") == versions[1]
    assert find_chart_version(versions[:1], "1.2") == versions[0]
    assert find_chart_version(versions, "1.3.0+build") == versions[3]
    assert find_chart_version(versions, "4.0.0") is None


def test_archive_url_is_relative_to_the_folder_of_the_index() -> None:
    assert resolve_archive_url(f"{WHERE}/stable", "charts/a.tgz", "") == f"{WHERE}/stable/charts/a.tgz"
    assert (
        resolve_archive_url(f"{WHERE}/stable", "https://cdn.example.com/a.tgz", "") == "https://cdn.example.com/a.tgz"
    )
    for url in ("oci://registry/a", "file:///etc/passwd", "https://[bad"):
        with pytest.raises(CorruptSource, match="not at an http or https address"):
            resolve_archive_url(WHERE, url, "")
