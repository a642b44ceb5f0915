"""Interactive prompts: Ctrl-C ends the command at once, also while an event loop runs."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from argparse import Namespace

import pytest

from argosy.cli import prompts
from argosy.errors import UserError
from argosy.features.install.cli import run_plan_command
from argosy.features.install.plan import ChangeVerb, InstallPlan, InstallStep
from argosy.features.install.service import InstallOptions, PlannedInstall
from argosy.kube.resource_key import ResourceKey
from support.deadlines import wait_until

PROGRAM = """
import asyncio
from argosy.cli.prompts import read_line
async def main():
    print("question", flush=True)
    answer = read_line()
    print("wrote", repr(answer), flush=True)
asyncio.run(main())
"""


def test_ctrl_c_at_a_prompt_ends_the_command_without_output() -> None:
    ours, child_terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=child_terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "question\n"

    def end() -> bool:
        child.send_signal(signal.SIGINT)  # repeated, because the child may not be reading yet
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
        return child.returncode is not None

    wait_until(end, "Ctrl-C ends the command")
    os.close(ours)
    os.close(child_terminal)
    assert child.returncode != 0
    assert child.stdout.read() == ""


def test_read_line_returns_the_answer_and_then_end_of_input() -> None:
    before = signal.getsignal(signal.SIGINT)
    read, write = os.pipe()
    os.write(write, b"y\n")
    os.close(write)
    program = "from argosy.cli.prompts import read_line\nprint(repr(read_line()), repr(read_line()))"
    done = subprocess.run([sys.executable, "-c", program], stdin=read, capture_output=True, text=True, check=True)
    os.close(read)
    assert done.stdout == "'y\\n' ''\n"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_plan_is_shown_before_the_question_in_every_output_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    step = InstallStep(ChangeVerb.DELETE, ResourceKey("apps", "Deployment", "argosy", "argosy-server"), {})
    planned = PlannedInstall(InstallPlan((step,)), InstallOptions(namespace="argosy"), "https://plane", "ann")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(prompts, "read_line", lambda: "n\n")
    chosen = Namespace(output=output, dry_run=False, yes=False)
    with pytest.raises(UserError, match="nothing was changed"):
        run_plan_command(chosen, lambda talk: talk.confirm(planned), "UninstallPlan")
    plan, question, _ = capsys.readouterr().err.partition("Do it? [y/N] ")
    assert question and "- Deployment argosy-server in argosy\n" in plan
