"""What `argosy demo` says when it is ready, and what it refuses before it begins."""

from __future__ import annotations

from dataclasses import replace

from argosy.cli.sandbox_folder_state import RunningInstance
from argosy.features.demo.cli import _render_banner

ADDONS = "argocd_operator,simulators"
RUN = RunningInstance(
    1, "https://127.0.0.1:1", "/d/kubeconfig", "/d", name="demo", repository="/d/r.git", addons=ADDONS
)


def render_banner(run: RunningInstance = RUN, *, has_engine: bool = True, goes_on: bool = False) -> str:
    return "\n".join(_render_banner(run, 1.0, has_engine, goes_on))


def test_a_kubeconfig_with_others_in_it_is_told_with_the_context_that_kubectl_needs() -> None:
    assert "--context" not in render_banner() and "ARGOSY_CONTEXT" not in render_banner()
    shared = render_banner(replace(RUN, context="argosy-demo"))
    assert "kubectl needs --context argosy-demo, unless it is current" in shared
    assert " ARGOSY_CONTEXT=argosy-demo " in shared  # without it argosy would go to the current context, too


def test_what_is_gone_on_with_is_not_told_as_if_it_were_new() -> None:
    assert "argosy app sync llmops-staging" in render_banner()
    again = render_banner(goes_on=True)
    assert "continued from /d" in again and "argosy app sync" not in again and "2 environments" not in again


def test_without_an_engine_nobody_is_sent_to_a_sync_but_to_an_engine() -> None:
    assert "argosy controller" in render_banner(has_engine=False) and "argosy app sync" not in render_banner(
        has_engine=False
    )
