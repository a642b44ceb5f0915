"""Runs the shell blocks of docs/guides/notebooks-with-argocd.md in order against each kind of demo."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator

import pytest

from support.clusters import KUBECTL
from support.demo import demo
from support.guide_blocks import NOTEBOOK_BLOCKS, Block, text_of
from support.guide_terminal import ROOT, Reader, blocks_of

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)"),
]
[PAGE] = {block.page for block in NOTEBOOK_BLOCKS}
SCENARIOS = ROOT / "docs/reference/scenarios.md"
TEST = "[`test_guide_block_gives_the_documented_result`](../../tests/scenarios/test_notebook_guide_on_the_demo.py)"
# Replacements that the page gives for OpenShift GitOps
OPENSHIFT = {
    "-n argocd": "-n openshift-gitops",
    "argocd-server": "openshift-gitops-server",
    "argocd-application-controller": "openshift-gitops-application-controller",
}


@pytest.fixture(scope="module", params=["plain", "openshift"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with demo(tmp_path_factory.mktemp("demo") / "home", "--api-port", "0", "--argocd", request.param) as running_demo:
        guide_reader = Reader(running_demo)
        shutil.copytree(ROOT / "examples", guide_reader.home / "examples")
        guide_reader.places[PAGE] = guide_reader.home
        guide_reader.words = {} if request.param == "plain" else OPENSHIFT
        yield guide_reader


def read(block: Block, reader: Reader) -> str:
    """Return a block's text with the reader's own names and, on OpenShift, those of OpenShift GitOps."""
    text = text_of(block, NOTEBOOK_BLOCKS, blocks_of(PAGE))
    for before, after in {**reader.words, **block.reads}.items():
        text = text.replace(before, after)
    return text


@pytest.mark.tier("all")
@pytest.mark.parametrize("block", NOTEBOOK_BLOCKS, ids=lambda guide_block: guide_block.id)
def test_guide_block_gives_the_documented_result(reader: Reader, block: Block) -> None:
    if "jq " in read(block, reader) and shutil.which("jq") is None:
        pytest.skip("jq: there is none, and this block needs it")
    prepared = reader.others(PAGE, block.first)
    assert prepared.failed == [], prepared.out
    typed = reader.type(PAGE, read(block, reader))
    typed.checked(block.shows, block.fails)
    if block.then:
        assert reader.others(PAGE, f"come_true {shlex.quote(block.then)}").failed == [], typed.out


def test_every_guide_block_is_tested_and_has_a_scenarios_row() -> None:
    assert [text_of(guide_block, NOTEBOOK_BLOCKS, blocks_of(PAGE)) for guide_block in NOTEBOOK_BLOCKS] == blocks_of(
        PAGE
    )
    rows = SCENARIOS.read_text()
    missing = [
        row
        for guide_block in NOTEBOOK_BLOCKS
        if (row := f"| {guide_block.id} | {guide_block.told} | {TEST} |") not in rows
    ]
    assert missing == []
