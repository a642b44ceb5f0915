"""Banner that `argosy demo` prints when it is ready."""

from __future__ import annotations

from dataclasses import replace

from argosy.cli.sandbox_data_folder_and_lock import RunningInstance
from argosy.features.demo.cli import _render_banner

ADDONS = "argocd_operator,simulators"
RUN = RunningInstance(
    1, "https://127.0.0.1:1", "/d/kubeconfig", "/d", name="demo", repository="/d/r.git", addons=ADDONS
)


def render_banner(run: RunningInstance = RUN, *, has_engine: bool = True, goes_on: bool = False) -> str:
    return "\n".join(_render_banner(run, 1.0, has_engine, goes_on))


def test_banner_names_the_context_for_a_shared_kubeconfig() -> None:
    assert "--context" not in render_banner() and "ARGOSY_CONTEXT" not in render_banner()
    shared = render_banner(replace(RUN, context="argosy-demo"))
    assert "kubectl needs --context argosy-demo, unless it is current" in shared
    assert " ARGOSY_CONTEXT=argosy-demo " in shared  # without it, argosy would use the current context, too


def test_banner_of_a_continued_demo_says_continued() -> None:
    assert "argosy app sync llmops-staging" in render_banner()
    again = render_banner(goes_on=True)
    assert "continued from /d" in again and "argosy app sync" not in again and "2 environments" not in again


def test_banner_without_engine_suggests_starting_a_controller() -> None:
    assert "argosy controller" in render_banner(has_engine=False) and "argosy app sync" not in render_banner(
        has_engine=False
    )
