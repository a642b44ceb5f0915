"""Runs a composite GitHub Action locally, step by step, like a runner.

In: the folder of an action, a workspace, inputs. Out: the result of each step. Never: runs another action that is used;
its inputs are recorded.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.deadlines import TEST_HANG_SECONDS

EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
REGARDLESS = re.compile(r"(?:failure|cancelled|always)\(\)")
STATUS = re.compile(r"!?(?:success|failure|cancelled|always)\(\)")


@dataclass
class Ran:
    failed: list[str] = field(default_factory=list)  # names of steps
    printed: dict[str, str] = field(default_factory=dict)  # by step name
    used: dict[str, dict[str, str]] = field(default_factory=dict)  # other actions, with their inputs
    steps: dict[str, dict[str, str]] = field(default_factory=dict)  # outputs by id
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True)
class Runner:
    action: Path
    workspace: Path
    temp: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, **input_values: str) -> Ran:
        """Run the action. `fail_on="error"` sets its input `fail-on`."""
        document: dict[str, Any] = yaml.safe_load((self.action / "action.yml").read_text())
        declared = document["inputs"]
        typed = {name.replace("_", "-"): value for name, value in input_values.items()}
        assert typed.keys() <= declared.keys(), "a runner warns of inputs that an action does not declare"
        ran = Ran()
        inputs = {name: typed.get(name, str(declaration.get("default", ""))) for name, declaration in declared.items()}
        inputs = {name: self._filled(value, ran, {}) for name, value in inputs.items()}
        for step in document["runs"]["steps"]:
            condition = EXPRESSION.sub(r"\1", str(step.get("if", "success()")))
            is_asked = not ran.failed or bool(REGARDLESS.search(condition))
            if is_asked and self._holds(condition, ran, inputs):
                self._step(step, ran, inputs)
        ran.outputs = {
            name: self._filled(declaration["value"], ran, inputs) for name, declaration in document["outputs"].items()
        }
        summary = self.temp / "summary"
        ran.summary = summary.read_text() if summary.exists() else ""
        return ran

    def _step(self, step: Mapping[str, Any], ran: Ran, inputs: Mapping[str, str]) -> None:
        if "uses" in step:
            step_inputs = step["with"].items()
            ran.used[step["uses"]] = {name: self._filled(str(value), ran, inputs) for name, value in step_inputs}
            return
        assert step["shell"] == "bash" and not EXPRESSION.search(step["run"]), "inputs are no text of a script"
        script, output = self.temp / "step.sh", self.temp / "output"
        script.write_text(step["run"])
        output.write_text("")
        env = {
            **os.environ,
            **self.environment,
            **{name: self._filled(str(value), ran, inputs) for name, value in step.get("env", {}).items()},
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "RUNNER_TEMP": str(self.temp),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(
            command, env=env, cwd=self.workspace, text=True, check=False, stdin=subprocess.DEVNULL,
            timeout=TEST_HANG_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        ran.printed[step["name"]] = done.stdout
        if done.returncode:
            ran.failed.append(step["name"])
        if "id" in step:
            pairs = (line.partition("=") for line in output.read_text().splitlines())
            ran.steps[step["id"]] = {name: value for name, _, value in pairs}

    def _filled(self, text: str, ran: Ran, inputs: Mapping[str, str]) -> str:
        return EXPRESSION.sub(lambda match: self._value(match[1].strip(), ran, inputs), text)

    def _value(self, name: str, ran: Ran, inputs: Mapping[str, str]) -> str:
        if name.startswith("'"):
            return name.strip("'")
        match name.split("."):
            case ["inputs", each]:
                return inputs[each]
            case ["steps", step, "outputs", each]:
                return ran.steps.get(step, {}).get(each, "")
            case ["github", "token"]:
                return self.environment.get("THE_TOKEN", "")
        raise AssertionError(f"this runner does not know {name}")

    def _holds(self, condition: str, ran: Ran, inputs: Mapping[str, str]) -> bool:
        for term in condition.split("&&"):
            if STATUS.fullmatch(term.strip()):
                continue
            left_side, sign, right_side = re.split(r"\s*(==|!=)\s*", term.strip())
            if (self._value(left_side, ran, inputs) == self._value(right_side, ran, inputs)) is not (sign == "=="):
                return False
        return True
