"""Kustomizations of public repositories give no finding that is not true.

The data set holds what `kustomize build` reads of text; scripts and binaries are not in it, so files are missing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.app.checking.checking import Checked, check

INPUTS = Path(__file__).parents[3] / "shared" / "data" / "kustomize" / "inputs"
NEEDS_DATA = pytest.mark.skipif(not INPUTS.is_dir(), reason="../shared/data/kustomize is not here")
SECRET_NAME = re.compile(r"(?i)data\.\S*(pass|token|secret|htpasswd)\S* has a value")


@pytest.fixture(scope="module")
def checked() -> Checked:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(INPUTS)
        return check(["."], talk=lambda text: None)


@NEEDS_DATA
def test_what_does_not_build_lacks_a_file(checked: Checked) -> None:
    said = [each.sight.message for each in checked.findings if each.rule.id == "AGY102"]
    assert len(said) > 10
    assert [each for each in said if "does not exist" not in each] == []


@NEEDS_DATA
def test_what_is_called_a_secret_is_named_like_one(checked: Checked) -> None:
    said = [each.sight.message for each in checked.findings if each.rule.id == "AGY601"]
    assert len(said) > 10
    assert [each for each in said if not SECRET_NAME.search(each)] == []


@NEEDS_DATA
def test_all_else_that_is_found_is_true(checked: Checked) -> None:
    """Two hooks that stay when they fail, labels that stand beside `labels`, a binding that is called cluster-admin."""
    found = {(each.rule.id, Path(each.place.file).name) for each in checked.findings}
    assert {each for each in found if each[0] not in ("AGY102", "AGY601")} == {
        ("AGY132", "patch-cluster-api-cert-job.yaml"),
        ("AGY132", "patch-cluster-wildcard-cert-job.yaml"),
        ("AGY151", "scc.yaml"),
        ("AGY602", "rolebinding.yaml"),
    }
