"""The RBAC rights of an installation are necessary and sufficient: controller and server run with exactly the Roles
that `argosy install` creates, using their ServiceAccount tokens, against an API server that enforces RBAC.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from argosy.errors import ArgosyError
from argosy.features.install.options import InstallOptions
from support import permission_actions as deeds
from support.deadlines import HANG_SECONDS
from support.permission_actions import Deed
from support.permissions import Right, Scene, real_rights_scene, rights_of, rights_scene
from support.proof_scale import is_full
from support.real_server import REAL

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
FULL, OBSERVER = InstallOptions(), InstallOptions(is_read_only=True)
RIGHTS = {FULL: rights_of(FULL), OBSERVER: rights_of(OBSERVER)}

# Which action fails without which right: group, resource, verb, and the resource name if the rule names one
CONTROLLER: dict[tuple[str, ...], Deed] = {
    ("*", "*", "get"): deeds.shares_the_work,
    ("*", "*", "update"): deeds.shares_the_work,
    ("*", "*", "list"): deeds.finds_what_was_there,
    ("*", "*", "watch"): deeds.notices_what_comes,
    ("*", "*", "create"): deeds.delivers_with_hooks_into_a_namespace_that_it_makes,
    ("*", "*", "patch"): deeds.finds_what_was_there,
    ("*", "*", "delete"): deeds.prunes,
    ("rbac.authorization.k8s.io", "roles", "escalate"): deeds.hands_out_roles,
    ("rbac.authorization.k8s.io", "clusterroles", "escalate"): deeds.hands_out_cluster_roles,
    ("rbac.authorization.k8s.io", "roles", "bind"): deeds.binds_roles,
    ("rbac.authorization.k8s.io", "clusterroles", "bind"): deeds.binds_cluster_roles,
}
LOOKS: dict[tuple[str, ...], Deed] = {
    ("*", "*", "get"): deeds.starts,
    ("*", "*", "list"): deeds.lists_applications,
    ("*", "*", "watch"): deeds.notices_and_streams,
}
SERVER: dict[tuple[str, ...], Deed] = {
    **LOOKS,
    ("*", "*", "patch"): deeds.syncs,
    ("*", "*", "delete"): deeds.deletes_applications,
    ("batch", "jobs", "create"): deeds.runs_a_cron_job_now,
    ("argoproj.io", "applications", "create"): deeds.declares_applications,
    ("argoproj.io", "applicationsets", "create"): deeds.declares_sets,
    ("argoproj.io", "applicationsets", "update"): deeds.changes_sets,
    ("argoproj.io", "appprojects", "create"): deeds.declares_projects,
    ("argoproj.io", "appprojects", "update"): deeds.changes_projects,
    ("", "secrets", "create"): deeds.declares_repositories,
    ("", "secrets", "update"): deeds.changes_repositories,
    ("", "configmaps", "create"): deeds.believes_the_first_host,
    ("", "configmaps", "update"): deeds.believes_one_more_host,
    ("", "events", "create"): deeds.tells_of_what_it_did,
}
WATCHER: dict[tuple[str, ...], Deed] = {
    **LOOKS,
    ("", "secrets", "patch", "argocd-secret"): deeds.signs_with_a_key_of_its_own,
    ("", "secrets", "patch", "argocd-initial-admin-secret"): deeds.makes_the_first_password,
    ("", "configmaps", "patch", "argosy-login-attempts"): deeds.signs_in,
    ("", "configmaps", "patch", "argosy-sessions"): deeds.signs_out,
}


def deed_for(right: Right, options: InstallOptions) -> Deed:
    named = (right.group, right.resource, right.verb, *([right.name] if right.name else []))
    if right.role[1] == "argosy-controller":
        return CONTROLLER[named]
    return (WATCHER if options.is_read_only else SERVER)[named]


def chosen(options: InstallOptions) -> list[Any]:
    """In a full run every right by its name; in a short run one random right."""
    rights = [pytest.param(right, id=right.shown) for right in RIGHTS[options]]
    return rights if is_full() else [pytest.param(None, id="any")]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["embedded", REAL])
async def installed(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    opened = real_rights_scene if request.param == "real" else rights_scene
    async with opened(tmp_path_factory.mktemp("installed"), FULL) as opened_scene:
        yield opened_scene


@pytest.fixture(scope="module", params=["embedded", REAL])
async def observed(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    opened = real_rights_scene if request.param == "real" else rights_scene
    async with opened(tmp_path_factory.mktemp("observed"), OBSERVER) as opened_scene:
        yield opened_scene


@pytest.fixture
async def scene(installed: Scene) -> Scene:
    return await _ready(installed)


@pytest.fixture
async def observing(observed: Scene) -> Scene:
    return await _ready(observed)


async def _ready(current_scene: Scene) -> Scene:
    current_scene.refused.clear()
    if not current_scene.session:
        await deeds.signs_in(current_scene)
    return current_scene


def check_needed(options: InstallOptions, rights: list[Right]) -> None:
    assert len(set(rights)) == len(rights)
    for right in rights:
        try:
            assert deed_for(right, options)
        except KeyError:
            raise AssertionError(f"no deed needs it: {right.shown}") from None


def test_every_granted_right_has_an_action_that_needs_it() -> None:
    for options, rights in RIGHTS.items():
        check_needed(options, rights)


def test_proof_detects_an_unneeded_right() -> None:
    """Let the server also create Roles, which none of its actions needs."""
    server = next(right for right in RIGHTS[FULL] if right.role[1] == "argosy-server")
    extra = server._replace(group="rbac.authorization.k8s.io", resource="roles", verb="create", name="")
    with pytest.raises(AssertionError, match=r"no deed needs it: server: create rbac.authorization.k8s.io/roles"):
        check_needed(FULL, [*RIGHTS[FULL], extra])


async def test_installed_rights_allow_every_action(scene: Scene, size: Callable[..., int], rng: random.Random) -> None:
    """Run all actions; `make test` runs a sample."""
    everything = list(dict.fromkeys((*CONTROLLER.values(), *SERVER.values(), deeds.signs_in, deeds.signs_out)))
    indexes = range(len(everything))
    some = rng.sample(indexes, min(len(indexes), size(20 * len(indexes), test=4)))
    async with scene.standing():
        await check_done(scene, [everything[index] for index in sorted(some)])


async def check_done(scene: Scene, some: Iterable[Deed]) -> None:
    for deed in some:
        await deed(scene)
        assert scene.refused == [], deed.__name__


@pytest.mark.tier("prove")
async def test_read_only_install_allows_every_observer_action(observing: Scene) -> None:
    await check_done(observing, dict.fromkeys(WATCHER.values()))


@pytest.mark.tier("prove")
async def test_read_only_install_forbids_changes(observing: Scene) -> None:
    for deed in (deeds.syncs, deeds.deletes_applications, deeds.declares_applications,
                 deeds.declares_projects, deeds.declares_repositories, deeds.believes_the_first_host):  # fmt: skip
        observing.refused.clear()
        with pytest.raises(AssertionError):
            await deed(observing)
        assert observing.refused, deed.__name__


async def fails_without(scene: Scene, right: Right, deed: Deed) -> None:
    async with scene.without(right):
        try:
            async with asyncio.timeout(HANG_SECONDS):
                await deed(scene)
        except (AssertionError, ArgosyError):
            assert scene.refused, f"{deed.__name__} failed, but not for want of {right.shown}"
        else:
            raise AssertionError(f"{deed.__name__} needs no such right: {right.shown}")


@pytest.mark.parametrize("right", chosen(FULL))
async def test_removing_a_right_breaks_its_action(scene: Scene, right: Right | None, rng: random.Random) -> None:
    right = right or rng.choice(RIGHTS[FULL])
    await fails_without(scene, right, deed_for(right, FULL))


def server_right(resource: str, verb: str) -> Right:
    return next(right for right in RIGHTS[FULL] if "server" in right.role[1] and right[2:4] == (resource, verb))


@pytest.mark.tier("all", "prove")
async def test_proof_detects_an_action_that_does_not_need_its_right(scene: Scene) -> None:
    with pytest.raises(AssertionError, match="lists_applications needs no such right: server-acts: delete"):
        await fails_without(scene, server_right("*", "delete"), deeds.lists_applications)


@pytest.mark.tier("all", "prove")
async def test_proof_detects_a_missing_right(scene: Scene) -> None:
    """Do not let the server create AppProjects."""
    async with scene.without(server_right("appprojects", "create")):
        with pytest.raises(AssertionError, match=r"cannot create resource .*appprojects"):
            await check_done(scene, [deeds.declares_projects])


@pytest.mark.tier("all", "prove")
@pytest.mark.parametrize("right", chosen(OBSERVER))
async def test_removing_an_observer_right_breaks_its_action(
    observing: Scene, right: Right | None, rng: random.Random
) -> None:
    right = right or rng.choice(RIGHTS[OBSERVER])
    await fails_without(observing, right, deed_for(right, OBSERVER))
