"""The shell scripts of generated Jobs, run by real shells. Time and cluster are stubs: `sleep` moves the clock that
`date` reads, and `oc` and `kubectl` answer from a timeline."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from argosy.features.generate.image_wait_job_manifests import ImageWait
from argosy.features.generate.notebook_wait_job_manifests import NotebookWait
from support.deadlines import HANG_SECONDS
from support.paths import ROOT

CHART_SCRIPT = ROOT / "integrations/helm/charts/llmops-platform/charts/llmops-library/templates/_wait-for-image.sh.tpl"
SHELLS = [
    pytest.param("bash", marks=[] if shutil.which("bash") else pytest.mark.skip("no bash")),
    pytest.param("dash", marks=pytest.mark.tier("all") if shutil.which("dash") else pytest.mark.skip("no dash")),
]

CLOCK = """\
#!/bin/sh
cat "$STUBS/now"
"""
SLEEP = """\
#!/bin/sh
echo $(($(cat "$STUBS/now") + $1)) > "$STUBS/now"
"""
CLIENT = """\
#!/bin/sh
# get WHAT … or start-build …: the last line of the timeline WHAT whose moment has come is the answer
what=$2
[ "$1" = get ] || what=$1
echo "$(cat "$STUBS/now") $*" >> "$STUBS/calls"
[ -f "$STUBS/$what" ] || { echo "error: the server has no $what" >&2; exit 1; }
code=1
text='Error from server (NotFound): not found'
while IFS='|' read -r moment found said; do
  if [ "$moment" -le "$(cat "$STUBS/now")" ]; then code=$found; text=$said; fi
done < "$STUBS/$what"
if [ "$code" -eq 0 ]; then printf '%b' "$text"; else printf '%b\\n' "$text" >&2; fi
exit "$code"
"""
FORBIDDEN = "1|Error from server (Forbidden): you may not"


class Ended(NamedTuple):
    code: int
    output: str
    seconds: int
    calls: list[str]


Run = Callable[..., Ended]


@pytest.fixture(params=SHELLS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("date", CLOCK), ("sleep", SLEEP), ("oc", CLIENT), ("kubectl", CLIENT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def ended(wait: ImageWait | NotebookWait, **timelines: str) -> Ended:
        (tmp_path / "now").write_text("0\n")
        for name, lines in timelines.items():
            (tmp_path / name.replace("_", "-")).write_text(lines + "\n")
        container = wait.build_manifests()[-1]["spec"]["template"]["spec"]["containers"][0]
        environment = {variable["name"]: variable["value"] for variable in container["env"]}
        environment |= {"PATH": f"{programs}:/usr/bin:/bin", "STUBS": str(tmp_path)}
        command = [request.param, "-c", *container["args"]]
        options = {"env": environment, "timeout": HANG_SECONDS}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        calls = (tmp_path / "calls").read_text().splitlines()
        return Ended(done.returncode, done.stdout + done.stderr, int((tmp_path / "now").read_text()), calls)

    return ended


def image_wait(**changes: object) -> ImageWait:
    return ImageWait(name="trainer", image_tag="trainer:latest", namespace="ml", **changes)  # type: ignore[arg-type]


def notebook_wait(**changes: object) -> NotebookWait:
    return NotebookWait(name="model-training", namespace="ml", **changes)  # type: ignore[arg-type]


# -- images --------------------------------------------------------------------------------------------------------


def test_existing_tag_ends_the_wait_at_once(run: Run) -> None:
    ended = run(image_wait(), imagestreamtag="0|0|imagestreamtag/trainer:latest\\n")
    assert (ended.code, ended.seconds, len(ended.calls)) == (0, 0, 1)
    assert "get imagestreamtag trainer:latest -n ml" in ended.calls[0]


def test_wait_succeeds_when_the_tag_appears(run: Run) -> None:
    ended = run(image_wait(), imagestreamtag="90|0|trainer:latest\\n", builds="0|0|build trainer-1 Running\\n")
    assert (ended.code, ended.seconds) == (0, 90)
    assert [call.split()[0] for call in ended.calls if "imagestreamtag" in call] == ["0", "30", "60", "90"]


def test_image_wait_fails_after_the_timeout(run: Run) -> None:
    ended = run(image_wait(timeout=100), imagestreamtag="9999|0|", builds="0|0|build trainer-1 Running\\n")
    assert (ended.code, ended.seconds) == (1, 100)
    assert "100 s" in ended.output


@pytest.mark.parametrize("phase", ["Failed", "Error", "Cancelled"])
def test_failed_build_fails_the_wait_at_once(run: Run, phase: str) -> None:
    ended = run(
        image_wait(),
        imagestreamtag="9999|0|",
        builds=f"0|0|build trainer-1 Running\\n\n60|0|build trainer-1 {phase}\\n",
    )
    assert (ended.code, ended.seconds) == (1, 60)
    assert phase in ended.output


def test_only_the_newest_build_counts(run: Run) -> None:
    builds = "0|0|build trainer-1 Failed\\nbuild trainer-2 Running\\n"
    assert run(image_wait(), imagestreamtag="60|0|trainer:latest", builds=builds).code == 0


def test_complete_build_rechecks_the_tag_after_five_seconds(run: Run) -> None:
    ended = run(image_wait(), imagestreamtag="5|0|trainer:latest", builds="0|0|build trainer-1 Complete\\n")
    assert (ended.code, ended.seconds) == (0, 5)


def test_missing_build_is_started_once_if_starts_build_is_set(run: Run) -> None:
    timelines = {"imagestreamtag": "300|0|trainer:latest", "builds": "0|0|", "start_build": "0|0|build started"}
    assert not any("start-build" in call for call in run(image_wait(), **timelines).calls)
    started = [call for call in run(image_wait(starts_build=True), **timelines).calls if "start-build" in call]
    assert [call.split()[1:] for call in started] == [["start-build", "trainer", "-n", "ml"]]


def test_image_wait_fails_early_if_reading_tags_is_forbidden(run: Run) -> None:
    ended = run(image_wait(), imagestreamtag=f"0|{FORBIDDEN}", builds="0|0|")
    assert ended.code == 1
    assert ended.seconds < 600
    assert "imagestreamtags" in ended.output


def test_helm_chart_contains_the_same_script() -> None:
    inside = re.fullmatch(r"\{\{- define .*? -\}\}\n(.*)\{\{- end \}\}\n?", CHART_SCRIPT.read_text(), re.DOTALL)
    assert inside
    assert inside[1] == image_wait().build_manifests()[-1]["spec"]["template"]["spec"]["containers"][0]["args"][0]


# -- notebooks -----------------------------------------------------------------------------------------------------

JOBS = "notebookvalidationjobs.mlops.mlops.dev"


def test_notebook_wait_succeeds_when_the_notebook_succeeds(run: Run) -> None:
    ended = run(notebook_wait(), **{JOBS: "0|0|1//ValidationRunning\n30|0|1//Succeeded"})
    assert (ended.code, ended.seconds) == (0, 30)
    assert ended.output.splitlines() == [
        "Waiting for notebook validation to complete...",
        *["Still running..."] * 3,
        "Notebook validation succeeded, proceeding with sync",
    ]


def test_notebook_wait_fails_when_the_notebook_fails(run: Run) -> None:
    ended = run(notebook_wait(), **{JOBS: "0|0|1//\n10|0|1//Failed"})
    assert (ended.code, ended.seconds) == (1, 10)
    assert ended.output.splitlines()[-1] == "Notebook validation failed!"


def test_notebook_wait_waits_for_a_job_created_later(run: Run) -> None:
    assert run(notebook_wait(), **{JOBS: "40|0|1//Succeeded"}).seconds == 40


def test_notebook_wait_fails_after_the_timeout(run: Run) -> None:
    ended = run(notebook_wait(timeout=25), **{JOBS: "0|0|1//Running"})
    assert (ended.code, ended.seconds) == (2, 25)
    assert "did not end within 25 s: its phase is Running" in ended.output


def test_notebook_wait_ignores_the_result_of_an_earlier_generation(run: Run) -> None:
    ended = run(notebook_wait(), **{JOBS: "0|0|2/1/Succeeded\n20|0|2/2/Succeeded"})
    assert (ended.code, ended.seconds) == (0, 20)


def test_notebook_wait_fails_early_if_reading_jobs_is_forbidden(run: Run) -> None:
    ended = run(notebook_wait(), **{JOBS: f"0|{FORBIDDEN}"})
    assert (ended.code, ended.seconds) == (1, 20)
    assert "may not get notebookvalidationjobs in ml" in ended.output
