"""Commands import only what they need: users wait for them, and scripts call them thousands of times."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.command_modules import COMMANDS
from argosy.features.applications import cli
from argosy.gitops.reconciler.worker_remote_bases import FetchedRemoteBases, RemoteBaseNeeded
from argosy.gitops.render import render
from argosy.main import OVERVIEW, build_parser

PROGRAM = """
import sys
from argosy.main import main
code = main(sys.argv[1:])
print("|".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
SLOW = {
    "argosy.sandbox.apiserver",
    "argosy.features.health_checks.cli",
    "argosy.features.local_sandbox.cli",
    "argosy.features.setup.cli",
    "argosy.kube.client",
    "argosy.isolation",
    "argosy.gitops.application.operations",
    "argosy.gitops.application.source_options",
    "argosy.gitops.application.step_results.comparison_task_health_types",
    "argosy.kube.schema",
    "argosy.gitops.source.git",
    "asyncio",
    "importlib.resources",
    "multiprocessing",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
}


@pytest.mark.skipif("coverage" in sys.modules, reason="what measures coverage imports it")
def test_render_of_a_folder_imports_no_slow_modules(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: a-\nresources: [config.yaml]\n")
    (tmp_path / "config.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "render", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "name: a-b" in done.stdout
    assert SLOW & set(done.stderr.strip().split("|")) == set()


@pytest.mark.skipif("coverage" in sys.modules, reason="what measures coverage imports it")
def test_worker_that_renders_imports_no_other_step() -> None:
    """Each command that renders starts a worker and waits for its imports."""
    call = pickle.dumps((render, FetchedRemoteBases({}), RemoteBaseNeeded))
    program = "import pickle, sys; pickle.load(sys.stdin.buffer); print('|'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], input=call, capture_output=True, check=True)
    modules = done.stdout.decode().strip().split("|")
    steps = ("app_memo", "reconcile", "reconciler_settings")
    assert [name for name in modules if name.startswith(("argosy.gitops.sync", "argosy.gitops.diff"))] == []
    assert {f"argosy.gitops.reconciler.{step}" for step in steps} & set(modules) == set()


@pytest.mark.parametrize("group", COMMANDS)
def test_parser_of_one_command_group_has_only_that_group(group: str) -> None:
    alone = build_parser(group)
    assert [action.choices.keys() for action in alone._actions if action.choices] == [{group}]
    assert group in OVERVIEW


def test_default_parser_has_all_command_groups() -> None:
    assert build_parser().format_help() == build_parser(*COMMANDS).format_help()


def test_app_subcommand_loaded_alone_has_the_same_help() -> None:
    def verbs(typed: str = "") -> dict[str, str]:
        (group,) = (
            action.choices["app"] for action in build_parser("app", subcommand=typed)._actions if action.choices
        )
        (parsers,) = (action.choices for action in group._actions if action.choices)
        return {name: parser.format_help() for name, parser in parsers.items()}

    among = verbs()
    assert set(among) == {verb for verbs in cli.VERBS_BY_MODULE.values() for verb in verbs}
    for name, module in [(verbs[0], verbs) for verbs in cli.VERBS_BY_MODULE.values()]:
        alone = verbs(name)
        assert set(alone) == set(module)
        assert alone == {verb_name: among[verb_name] for verb_name in module}


def test_app_list_imports_no_render_or_diff_modules(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "app", "list", "--kubeconfig", str(tmp_path / "none")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    modules = set(done.stderr.strip().splitlines()[-1].split("|"))
    assert "argosy.features.applications.read.cli" in modules
    unwanted = {
        "argosy.gitops.render",
        "argosy.gitops.diff",
        "argosy.isolation",
        "argosy.features.applications.edit.cli",
    }
    assert unwanted & modules == set()
