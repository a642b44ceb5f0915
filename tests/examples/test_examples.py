"""Every example folder whose README uses `argosy sandbox load` loads as that README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.clusters import argosy, sandbox

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "examples").glob("*/README.md"))
EXAMPLES = [page.parent for page in PAGES if "argosy sandbox load" in page.read_text()]


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_example_loads_as_its_readme_shows_and_a_second_load_is_unchanged(folder: Path, tmp_path: Path) -> None:
    with sandbox(tmp_path / "data", "--port", "0") as started:
        load = ("sandbox", "load", "--data-dir", started.folder, "-f", folder)
        done, again = argosy(*load, home=tmp_path), argosy(*load, home=tmp_path)
    resources = re.findall(r"^(\S+/\S+) created$", (folder / "README.md").read_text(), re.MULTILINE)
    assert resources, "the page shows what load prints"
    assert done.out.splitlines() == [f"{resource} created" for resource in resources], done.err
    assert again.out.splitlines() == [f"{resource} unchanged" for resource in resources], again.err
