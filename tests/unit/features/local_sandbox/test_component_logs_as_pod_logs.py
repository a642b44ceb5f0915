"""Log records of argosy's components, served as logs of the simulated Pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.features.local_sandbox.component_logs_as_pod_logs import MAX_LINES, ComponentLogs
from argosy.kube.objects import Manifest
from support.deadlines import HANG_SECONDS

NOTEBOOKS = "jupyter-notebook-validator-operator-controller-manager"
CONTROLLER = "openshift-gitops-application-controller"


class Others:
    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        yield "of others"


def pod(name: str, **annotations: str) -> Manifest:
    marks = {"sandbox.argosy.dev/simulated": "simulated by argosy", **annotations}
    return {"metadata": {"name": f"{name}-0", "labels": {"app.kubernetes.io/name": name}, "annotations": marks}}


async def read_log_lines(logs: ComponentLogs, of: Manifest, **how: Any) -> list[str]:
    return [line async for line in logs.lines(of, container="", **{"follow": False, "tail": None, **how})]


@pytest.mark.parametrize(
    ("logger", "name"),
    [
        ("argosy.gitops.reconciler.application_controller", CONTROLLER),
        ("argosy.gitops.reconciler.app_state_values", "argocd-application-controller"),
        ("argosy.gitops.source.git.mirror", "openshift-gitops-repo-server"),
        ("argosy.sandbox.apiserver.http.asgi", "openshift-gitops-server"),
        ("argosy.sandbox.simulators.openshift_gitops.operator", "openshift-gitops-operator-controller-manager"),
        ("argosy.features.notebooks.controller", "jupyter-notebook-validator-operator-controller-manager"),
    ],
)
async def test_log_record_appears_only_in_the_pod_of_its_component(logger: str, name: str) -> None:
    logs = ComponentLogs(Others())
    with logs.collect_records():
        logging.getLogger(logger).info("said %s", "so")
    (line,) = await read_log_lines(logs, pod(name))
    assert line.startswith('time="') and line.endswith('Z" level=info msg="said so"')
    parts = ("application-controller", "repo-server", "server", "operator-controller-manager")
    every = (*(f"openshift-gitops-{part}" for part in parts), NOTEBOOKS)
    others = [pod_name for pod_name in every if pod_name != name.replace("argocd-", "openshift-gitops-")]
    assert [await read_log_lines(logs, pod(pod_name)) for pod_name in others] == [[]] * 4


@pytest.mark.parametrize(
    ("logger", "name"),
    [
        ("argosy.gitops.health", "cluster"),
        ("argosy.gitops.reconciler.application_controller", "cluster"),
        ("argosy.sandbox.simulators.openshift_gitops.operator", "openshift-gitops-operator"),
    ],
)
async def test_deployments_named_in_guides_show_the_log_of_their_component(logger: str, name: str) -> None:
    logs = ComponentLogs(Others())
    with logs.collect_records():
        logging.getLogger(logger).warning("health check failed: Lua error")
        logging.getLogger("argosy.sandbox.apiserver").info("of the server")
    (line,) = await read_log_lines(logs, pod(name))
    assert line.endswith('level=warning msg="health check failed: Lua error"')


async def test_worker_records_belong_to_the_controller_in_their_first_argument() -> None:
    logs = ComponentLogs(Others())
    with logs.collect_records():
        logging.getLogger("argosy.kube.controller.controller_informers_and_workers").warning(
            "%s %s: %s", "application", "models", 'no "branch"'
        )
        logging.getLogger("argosy.kube.controller.controller_informers_and_workers").warning(
            "%s %s: %s", "pods", "a", "not ours"
        )
    (line,) = await read_log_lines(logs, pod(CONTROLLER))
    assert line.endswith(r'level=warning msg="application models: no \"branch\""')


async def test_logs_of_other_pods_come_from_the_wrapped_reader() -> None:
    logs = ComponentLogs(Others())
    unmarked = {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": CONTROLLER}}}
    assert await read_log_lines(logs, unmarked) == ["of others"]
    assert await read_log_lines(logs, pod("openshift-gitops-redis")) == ["of others"]


async def test_log_buffer_is_limited_and_tail_returns_the_last_lines() -> None:
    logs = ComponentLogs(Others())
    with logs.collect_records():
        for number in range(MAX_LINES + 5):
            logging.getLogger("argosy.gitops.reconciler").info("%d", number)
    assert len(await read_log_lines(logs, pod(CONTROLLER))) == MAX_LINES
    assert [line[-4:-1] for line in await read_log_lines(logs, pod(CONTROLLER), tail=2)] == ["003", "004"]


async def test_followed_log_yields_each_new_line_once() -> None:
    logs = ComponentLogs(Others())
    log = logging.getLogger("argosy.gitops.reconciler")
    with logs.collect_records():
        log.info("first")
        following = logs.lines(pod(CONTROLLER), container="", follow=True, tail=1)
        async with asyncio.timeout(HANG_SECONDS):
            assert (await anext(following)).endswith('"first"')
            log.info("second")
            assert (await anext(following)).endswith('"second"')
            log.info("third")
            assert (await anext(following)).endswith('"third"')
