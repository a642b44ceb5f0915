"""Every folder of examples that is loaded works as its page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "examples").glob("*/README.md"))
EXAMPLES = [page.parent for page in PAGES if "argosy sandbox load" in page.read_text()]
ARGOSY = Path(sys.executable).parent / "argosy"


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_loads_as_its_page_shows(folder: Path, tmp_path: Path) -> None:
    command = [ARGOSY, "sandbox", "start", "--data-dir", tmp_path / "data", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and "ready" in process.stdout.readline()
            load = [ARGOSY, "sandbox", "load", "--data-dir", tmp_path / "data", "-f", folder]
            done = subprocess.run(load, capture_output=True, text=True, timeout=60, check=False)
            again = subprocess.run(load, capture_output=True, text=True, timeout=60, check=False)
        finally:
            process.terminate()
    shown = re.findall(r"^(\S+/\S+) created$", (folder / "README.md").read_text(), re.MULTILINE)
    assert shown, "the page shows what load prints"
    assert done.stdout.splitlines() == [f"{each} created" for each in shown], done.stderr
    assert again.stdout.splitlines() == [f"{each} unchanged" for each in shown], again.stderr
