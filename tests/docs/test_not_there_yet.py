"""What the documents say is not there yet of Argo CD's kinds: the first page names it, and it is really missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.errors import SourceRefused
from argosy.features.argocd_cli.cli import UNSUPPORTED_COMMANDS
from argosy.gitops.application.repository_url import parse_url

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "argosy"
HEADING = "## What is not there yet"
LINK = "docs/reference/argocd.md#what-is-not-there-yet"
# Where a field of an Application or AppProject would have to be read to have any effect on a delivery.
ENGINE = ("gitops",)
KNOWN_NAMES = "gitops/application/unknown_fields.py"  # the names of all fields, to find one that is misspelled


def rows() -> list[str]:
    """The first column of the table."""
    section = (ROOT / "docs/reference/argocd.md").read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines()[4:] if line.startswith("| ")]


def unread_fields() -> list[str]:
    return [name for row in rows() for name in re.findall(r"`spec\.(\w+)`", row)]


def test_the_first_page_says_what_is_not_there_yet() -> None:
    text = (ROOT / "README.md").read_text()
    section = text.partition("## How it compares\n")[2].partition("\n## ")[0]
    assert LINK in section
    for word in ("ApplicationSets", "Helm repositories", "OCI", "hydrator", "source integrity"):
        assert word in section, word


def test_fields_that_are_listed_are_read_by_no_part_of_the_engine() -> None:
    assert {"sourceHydrator"} <= set(unread_fields())
    files = [file for part in ENGINE for file in (SOURCE / part).rglob("*.py")]
    texts = {str(file.relative_to(SOURCE)): file.read_text() for file in files}
    texts.pop(KNOWN_NAMES)
    files_by_field = {field: [name for name, text in texts.items() if field in text] for field in unread_fields()}
    assert {field: names for field, names in files_by_field.items() if names} == {}


def test_application_sets_and_registries_are_listed_because_they_are_not_delivered_from() -> None:
    assert rows()[0] == "ApplicationSets" and UNSUPPORTED_COMMANDS["appset"] == "ApplicationSets are not delivered yet"
    assert any("`oci://`" in row for row in rows())
    with pytest.raises(SourceRefused):
        parse_url("oci://registry.example.com/app")


def test_what_is_said_of_submodules_and_git_lfs_is_what_the_page_of_sources_says() -> None:
    section = (ROOT / "docs/reference/argocd.md").read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith("| submodules")]
    sources = " ".join((ROOT / "docs/reference/sources.md").read_text().split())
    for page in (row, sources):
        assert "whose path is in one is an error" in page
        assert "that is only a Git LFS pointer is an error" in page


def test_no_page_promises_that_commands_find_a_demo_whatever_the_environment_says() -> None:
    text = " ".join((ROOT / "docs/reference/cli.md").read_text().partition("## `argosy demo`")[2].split())
    (promise,) = re.findall(r"[^.]*without flags[^.]*\.", text.partition("| flag |")[0])
    assert "`KUBECONFIG`" in promise and "`ARGOSY_CONTEXT`" in promise
