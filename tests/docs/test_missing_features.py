"""Argo CD features that the docs list as missing: the README names them, and the code really lacks them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.errors import SourceRefused
from argosy.features.argocd_cli.cli import UNSUPPORTED_COMMANDS
from argosy.gitops.application.repository_url_parser import parse_url

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "argosy"
HEADING = "## What is not there yet"
LINK = "docs/reference/argocd.md#what-is-not-there-yet"
# Code that would have to read a field of an Application or AppProject for it to affect a delivery.
ENGINE = ("gitops",)
KNOWN_NAMES = "gitops/application/unknown_fields.py"  # lists all field names, to detect misspelled ones


def rows() -> list[str]:
    """The first column of the table."""
    section = (ROOT / "docs/reference/argocd.md").read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines()[4:] if line.startswith("| ")]


def unread_fields() -> list[str]:
    return [name for row in rows() for name in re.findall(r"`spec\.(\w+)`", row)]


def test_readme_names_the_missing_features() -> None:
    text = (ROOT / "README.md").read_text()
    section = text.partition("## How it compares\n")[2].partition("\n## ")[0]
    assert LINK in section
    for word in ("ApplicationSets", "Helm repositories", "OCI", "hydrator", "source integrity"):
        assert word in section, word


def test_no_engine_module_reads_a_field_listed_as_missing() -> None:
    assert {"sourceHydrator"} <= set(unread_fields())
    files = [file for part in ENGINE for file in (SOURCE / part).rglob("*.py")]
    texts = {str(file.relative_to(SOURCE)): file.read_text() for file in files}
    texts.pop(KNOWN_NAMES)
    files_by_field = {field: [name for name, text in texts.items() if field in text] for field in unread_fields()}
    assert {field: names for field, names in files_by_field.items() if names} == {}


def test_applicationsets_and_oci_repositories_are_listed_and_unsupported() -> None:
    assert rows()[0] == "ApplicationSets" and UNSUPPORTED_COMMANDS["appset"] == "ApplicationSets are not delivered yet"
    assert any("`oci://`" in row for row in rows())
    with pytest.raises(SourceRefused):
        parse_url("oci://registry.example.com/app")


def test_submodule_and_git_lfs_limits_match_the_sources_page() -> None:
    section = (ROOT / "docs/reference/argocd.md").read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith("| submodules")]
    sources = " ".join((ROOT / "docs/reference/sources.md").read_text().split())
    for page in (row, sources):
        assert "whose path is in one is an error" in page
        assert "that is only a Git LFS pointer is an error" in page


def test_demo_reference_mentions_environment_variables_that_override_the_demo_cluster() -> None:
    text = " ".join((ROOT / "docs/reference/cli.md").read_text().partition("## `argosy demo`")[2].split())
    (promise,) = re.findall(r"[^.]*without flags[^.]*\.", text.partition("| flag |")[0])
    assert "`KUBECONFIG`" in promise and "`ARGOSY_CONTEXT`" in promise
