"""The board of environments, and actions from the page: promote, approve, hold and resume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.promote.cluster_thread_bridge import bridge_service
from argosy.features.promote.environments_board import EnvironmentBoard, build_board, filter_visible_stages
from argosy.features.promote.page_action_commits import run_action
from argosy.features.promote.promotion_log_trailers import PromotionActor
from argosy.features.promote.service import PromotionSession, open_session
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.resource_key import ResourceKey
from argosy.web import page_templates
from support.promotion_repository import OVERLAY, Shelf, begin, copy_of

ANN = PromotionActor("ann@example.com", "page")
KEY = ResourceKey("", "ConfigMap", "argocd", "settings")


@asynccontextmanager
async def nobody() -> AsyncIterator[ApplicationService]:
    raise UserError("there is no cluster")
    yield


@contextmanager
def opened(shelf: Shelf) -> Iterator[PromotionSession]:
    with open_session(shelf.folder, nobody, lambda: None, is_offline=True, log=lambda _: None) as session:
        yield session


def read_board(shelf: Shelf) -> EnvironmentBoard:
    with opened(shelf) as session:
        return build_board(session)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("first") / "web")


@pytest.fixture
def shelf(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return copy_of(first, tmp_path / "clone", monkeypatch)


def test_board_shows_the_next_promotion_of_each_environment(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    board = read_board(shelf)
    dev, staging, production = board.stages
    assert (board.is_chain, dev.coming, staging.after) == (True, None, "dev")
    assert staging.coming is not None
    assert [(move.kind, move.before, move.after) for move in staging.coming.moves] == [("image", "web:1.0", "web:2.0")]
    assert dev.images == ("web:2.0",) and production.coming is None


MODEL = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: fraud}
spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: "%s"}}}
"""


def serve_models(shelf: Shelf, **addresses: str) -> None:
    """Give each environment a model with this storageUri."""
    for name, address in addresses.items():
        shelf.write(f"{name}/model.yaml", MODEL % address)
        text = OVERLAY % {"name": name, "count": 1}
        shelf.write(f"{name}/kustomization.yaml", text.replace("../base\n", "../base\n  - model.yaml\n"))
    shelf.commit("Serve models")


def stage_text(shelf: Shelf, name: str) -> str:
    stage = next(candidate for candidate in read_board(shelf).stages if candidate.name == name)
    return page_templates.render_macro("promote/parts.html", "stage", stage, [], "")


def test_same_model_is_reported_only_if_the_storage_uris_match(shelf: Shelf) -> None:
    serve_models(shelf, dev="s3://models/fraud", staging="s3://models/fraud", production="s3://prod/fraud")
    staging, production = stage_text(shelf, "staging"), stage_text(shelf, "production")
    assert "same image and model as dev." in staging
    assert "same image as staging." in production
    assert "InferenceService/fraud differs: s3://models/fraud in staging, s3://prod/fraud in production." in production


def test_pvc_models_are_reported_as_possibly_different(shelf: Shelf) -> None:
    serve_models(shelf, **dict.fromkeys(("dev", "staging", "production"), "pvc://models/fraud"))
    staging = stage_text(shelf, "staging")
    assert "same image as dev." in staging and "may differ: each reads pvc://models/fraud" in staging


def test_next_promotion_is_unknown_if_the_previous_environment_cannot_be_built(shelf: Shelf) -> None:
    shelf.write("dev/kustomization.yaml", "resources: [missing.yaml]\n")
    shelf.commit("Break dev")
    staging = stage_text(shelf, "staging")
    assert "Nothing to promote" not in staging
    assert "dev cannot be built, so the next promotion is unknown." in staging


def test_promotion_is_recorded_with_the_requesting_user(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    with opened(shelf) as session:
        plan = build_board(session).stages[1].coming
        assert plan is not None
        done = run_action(session, "promote", "staging", ANN, commit=plan.commit)
    assert (done.is_new and 'newTag: "2.0"' in shelf.images("staging")) or "2.0" in shelf.images("staging")
    history = read_board(shelf).history[0]
    assert (history.action, history.by, history.known_by) == ("promote", "ann@example.com", "page")


def test_promotion_of_an_outdated_release_is_rejected(shelf: Shelf) -> None:
    shelf.pin("dev", "2.0")
    with opened(shelf) as session, pytest.raises(UserError, match="the next release has changed"):
        run_action(session, "promote", "staging", ANN, commit="0" * 40)


def test_promotion_is_blocked_until_a_user_with_the_role_approves(shelf: Shelf) -> None:
    shelf.pin("staging", "2.0")
    with opened(shelf) as session, pytest.raises(UserError, match="approval"):
        run_action(session, "promote", "production", ANN)
    with opened(shelf) as session, pytest.raises(UserError, match="does not have the role"):
        run_action(session, "approve", "production", PromotionActor("bob", "page"))
    with opened(shelf) as session:
        run_action(session, "approve", "production", ANN)
    coming = read_board(shelf).stages[2].coming
    assert coming is not None and not coming.awaits_approval


def test_hold_and_resume_are_shown_on_the_board(shelf: Shelf) -> None:
    with opened(shelf) as session:
        run_action(session, "hold", "production", ANN, reason="quarter end")
    assert "quarter end" in read_board(shelf).stages[2].holds[0].why
    with opened(shelf) as session:
        run_action(session, "resume", "production", ANN)
    assert read_board(shelf).stages[2].holds == ()


def test_visible_stages_are_limited_to_permitted_applications(shelf: Shelf) -> None:
    board = filter_visible_stages(read_board(shelf), ["web-dev"])
    assert [stage.name for stage in board.stages] == ["dev"]


@pytest.mark.anyio
async def test_thread_calls_the_cluster_client_on_its_own_loop() -> None:
    class Here:
        async def get(self, key: object) -> dict[str, object]:
            return {"loop": asyncio.get_running_loop(), "key": key}

    loop = asyncio.get_running_loop()
    opening = bridge_service(ApplicationService(Here(), "here", "argocd", "argocd"), loop)  # type: ignore[arg-type]

    async def asked() -> object:
        async with opening() as desk:
            return await desk.cluster.get(KEY)

    answer = await asyncio.to_thread(lambda: asyncio.run(asked()))
    assert answer == {"loop": loop, "key": KEY}
