"""Environments side by side, and what is done to them from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from argosy.desk.applications.desk import Desk
from argosy.desk.boards.environments import Board, board, visible
from argosy.desk.promoting.bridge import bridged
from argosy.desk.promoting.deeds import do
from argosy.desk.promoting.session import Session, session
from argosy.model.errors import UserError
from argosy.promote.log import By
from support.promotion_repository import Shelf, begin, copy_of

ANN = By("ann@example.com", "page")


@asynccontextmanager
async def nobody() -> AsyncIterator[Desk]:
    raise UserError("there is no cluster")
    yield


@contextmanager
def opened(shelf: Shelf) -> Iterator[Session]:
    with session(shelf.folder, nobody, lambda: None, is_offline=True, talk=lambda _: None) as found:
        yield found


def shown(shelf: Shelf) -> Board:
    with opened(shelf) as found:
        return board(found)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("first") / "web")


@pytest.fixture
def shelf(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return copy_of(first, tmp_path / "clone", monkeypatch)


def test_a_board_says_what_would_come_and_which_gate_is_in_the_way(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    found = shown(shelf)
    dev, staging, production = found.stages
    assert (found.is_chain, dev.coming, staging.after) == (True, None, "dev")
    assert staging.coming is not None
    assert [(each.kind, each.before, each.after) for each in staging.coming.moves] == [
        ("image", "web:1.0", "web:2.0")
    ]
    assert dev.images == ("web:2.0",) and production.coming is None


def test_a_promotion_is_a_commit_by_who_asked(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    with opened(shelf) as found:
        plan = board(found).stages[1].coming
        assert plan is not None
        done = do(found, "promote", "staging", ANN, commit=plan.commit)
    assert (done.is_new and 'newTag: "2.0"' in shelf.images("staging")) or "2.0" in shelf.images("staging")
    history = shown(shelf).history[0]
    assert (history.action, history.by, history.known_by) == ("promote", "ann@example.com", "page")


def test_another_release_than_was_seen_is_not_promoted(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    with opened(shelf) as found, pytest.raises(UserError, match="another release comes next"):
        do(found, "promote", "staging", ANN, commit="0" * 40)


def test_a_closed_gate_keeps_a_promotion_away_until_somebody_of_the_role_approves(shelf: Shelf) -> None:
    shelf.pin("staging", "2.0")
    with opened(shelf) as found, pytest.raises(UserError, match="approval"):
        do(found, "promote", "production", ANN)
    with opened(shelf) as found, pytest.raises(UserError, match="does not have the role"):
        do(found, "approve", "production", By("bob", "page"))
    with opened(shelf) as found:
        do(found, "approve", "production", ANN)
    coming = shown(shelf).stages[2].coming
    assert coming is not None and not coming.needs_answer


def test_a_hold_and_its_end_are_told(shelf: Shelf) -> None:
    with opened(shelf) as found:
        do(found, "hold", "production", ANN, reason="quarter end")
    assert "quarter end" in shown(shelf).stages[2].holds[0].why
    with opened(shelf) as found:
        do(found, "resume", "production", ANN)
    assert shown(shelf).stages[2].holds == ()


def test_who_may_see_one_application_sees_its_environment_alone(shelf: Shelf) -> None:
    found = visible(shown(shelf), ["web-dev"])
    assert [each.name for each in found.stages] == ["dev"]


@pytest.mark.anyio
async def test_a_cluster_of_this_loop_is_asked_from_a_thread() -> None:
    class Here:
        async def get(self, key: object) -> dict[str, object]:
            return {"loop": asyncio.get_running_loop(), "key": key}

    loop = asyncio.get_running_loop()
    opening = bridged(Desk(Here(), "here", "argocd", "argocd"), loop)  # type: ignore[arg-type]

    async def asked() -> object:
        async with opening() as desk:
            return await desk.cluster.get("k")  # type: ignore[arg-type]

    answer = await asyncio.to_thread(lambda: asyncio.run(asked()))
    assert answer == {"loop": loop, "key": "k"}
