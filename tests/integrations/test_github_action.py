"""The GitHub Action: its steps run as by a GitHub runner, on a repository created by `argosy init`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from argosy.features.init.service import initialize
from support.github_runner import Runner

ROOT = Path(__file__).parents[2]
STAGING = "argocd-apps/staging-application.yaml"


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with argosy already installed, because the installation takes long."""
    new_runner = bare(tmp_path)
    program = new_runner.temp / "argosy" / "bin" / "argosy"
    program.parent.mkdir(parents=True)
    path = os.environ.get("PYTHONPATH", "")
    program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m argosy "$@"\n')
    program.chmod(0o755)
    (program.parent / "python").symlink_to(sys.executable)
    return new_runner


def bare(folder: Path) -> Runner:
    initialize(folder / "workspace", "llmops", "", is_committed=True)
    (folder / "temp").mkdir()
    return Runner(ROOT, folder / "workspace", folder / "temp", {"HOME": str(folder)})


def break_staging(runner: Runner) -> None:
    file = runner.workspace / STAGING
    file.write_text(file.read_text().replace("    targetRevision:", "    nosuch: 1\n    targetRevision:"))


@pytest.mark.tier("all")
def test_valid_repository_passes_and_the_job_summary_counts_applications(runner: Runner) -> None:
    ran = runner.run()
    assert ran.failed == [] and ran.used == {}
    assert ran.outputs["result"] == "passed"
    assert ran.outputs["summary"].startswith("3 Applications, ") and ran.outputs["summary"] in ran.summary


def test_finding_annotates_its_line_goes_into_sarif_and_fails_the_job(runner: Runner) -> None:
    break_staging(runner)
    ran = runner.run(sarif="true")
    assert ran.failed == ["Run argosy"] and ran.outputs["result"] == "failed"
    assert f"::warning file={STAGING},line=14,title=AGY151::" in ran.printed["Run argosy"]
    uploaded = ran.used["github/codeql-action/upload-sarif@v3"]
    results = json.loads(Path(uploaded["sarif_file"]).read_text())["runs"][0]["results"]
    assert "AGY151" in {result["ruleId"] for result in results}


@pytest.mark.tier("all")
def test_fail_on_and_path_inputs_limit_the_check(runner: Runner) -> None:
    break_staging(runner)
    assert runner.run(fail_on="error").outputs["result"] == "passed"
    (runner.workspace / "two words").mkdir()
    ran = runner.run(path="deploy_model\ntwo words\n")
    assert ran.outputs["result"] == "passed" and "0 Applications" in ran.outputs["summary"]


@pytest.mark.tier("all")
def test_inputs_are_not_executed_and_invalid_input_fails_the_job(runner: Runner) -> None:
    proof = runner.temp / "run"
    ran = runner.run(path=f"$(touch {proof})`touch {proof}`;touch {proof}", baseline=f"$(touch {proof})")
    assert not proof.exists()
    assert ran.failed == ["Run argosy"] and ran.outputs["result"] == "error" and "next: " in ran.printed["Run argosy"]
    assert runner.run(path="--help").outputs["result"] == "error"


def test_too_old_python_is_an_error(tmp_path: Path) -> None:
    bare_runner = bare(tmp_path)
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    ran = bare_runner.run(python=str(old))
    assert ran.failed == ["Install argosy"]
    assert "::error title=argosy::needs Python 3.11 or newer" in ran.printed["Install argosy"]


@pytest.mark.tier("all")
def test_action_installs_argosy_from_its_own_checkout(tmp_path: Path) -> None:
    ran = bare(tmp_path).run(python=sys.executable)
    assert ran.failed == [], ran.printed
    assert "argosy 0.1.0" in ran.printed["Install argosy"] and ran.outputs["result"] == "passed"


OVERLAY = "deploy_model/overlays/dev/kustomization.yaml"


class Host(ThreadingHTTPServer):
    """GitHub's API for issue comments."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.comments: list[dict[str, Any]] = [
            {"id": 1, "user": {"type": "User"}, "body": "<!-- argosy-preview -->\nsomebody writes so by hand"},
            *({"id": 2 + number, "user": {"type": "User"}, "body": "talk"} for number in range(120)),
        ]
        self.refuses = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def previews(self) -> list[str]:
        return [comment["body"] for comment in self.comments if comment["user"]["type"] == "Bot"]


class Answers(BaseHTTPRequestHandler):
    server: Host

    def answer(self, document: Any) -> None:
        assert self.headers["Authorization"] == "Bearer s3cret"
        body = json.dumps(document).encode()
        self.send_response(self.server.refuses or 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        assert path == "/repos/acme/models/issues/7/comments"
        page = int(dict(pair.split("=") for pair in query.split("&"))["page"])
        self.answer(self.server.comments[(page - 1) * 100 : page * 100])

    def given(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def do_POST(self) -> None:
        assert self.path == "/repos/acme/models/issues/7/comments"
        self.server.comments.append({"id": 900, "user": {"type": "Bot"}, "body": self.given()})
        self.answer({})

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/acme/models/issues/comments/"))
        next(comment for comment in self.server.comments if comment["id"] == number)["body"] = self.given()
        self.answer({})

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host:
        threading.Thread(target=host.serve_forever, args=(0.01,), daemon=True).start()
        yield host
        host.shutdown()


def pull_request(runner: Runner, host: Host, old: str, new: str) -> Runner:
    """Check out a pull request as GitHub does: the merge of both sides, with only two commits of history."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        subprocess.run(["git", *who, *words], cwd=runner.workspace, check=True, capture_output=True)

    git("checkout", "-q", "-B", "feature", "main")
    file = runner.workspace / OVERLAY
    assert file.read_text().count(old) == 1
    file.write_text(file.read_text().replace(old, new))
    git("commit", "-qam", new)
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge feature into main", "feature")
    git("checkout", "-q", "--detach")
    git("branch", "-f", "main", "HEAD^1")
    event = runner.temp / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    there = {"GITHUB_API_URL": host.url, "GITHUB_REPOSITORY": "acme/models", "GITHUB_BASE_REF": "main"}
    environment = {"GITHUB_EVENT_PATH": str(event), "THE_TOKEN": "s3cret", **there}
    return Runner(runner.action, runner.workspace, runner.temp, {**runner.environment, **environment})


@pytest.mark.tier("all")
def test_preview_keeps_one_comment_per_pull_request_and_updates_it(runner: Runner, host: Host) -> None:
    there = pull_request(runner, host, 'value: "500m"', 'value: "800m"')
    ran = there.run(command="preview")
    assert ran.failed == [], ran.printed
    assert ran.outputs["result"] == "passed" and "1 app" in ran.outputs["summary"]
    assert json.loads(ran.outputs["changed-apps"]) == ["llmops-dev"]
    (first,) = host.previews()
    assert "llmops-dev" in first and "800m" in first and first in ran.summary
    ran = pull_request(runner, host, 'value: "500m"', 'value: "900m"').run(command="preview")
    assert ran.failed == [] and "updated the comment" in ran.printed["Comment on the pull request"]
    (second,) = host.previews()
    assert "900m" in second and "800m" not in second and len(host.comments) == 122


@pytest.mark.tier("all")
def test_token_without_write_permission_does_not_fail_the_job(runner: Runner, host: Host) -> None:
    host.refuses = 403
    ran = pull_request(runner, host, 'value: "500m"', 'value: "800m"').run(command="preview")
    assert ran.failed == [] and "800m" in ran.summary and host.previews() == []
    assert "GitHub answered 403; the summary of the job has it" in ran.printed["Comment on the pull request"]


@pytest.mark.tier("all")
def test_preview_outside_a_pull_request_is_only_in_the_job_summary(runner: Runner, host: Host) -> None:
    there = pull_request(runner, host, 'value: "500m"', 'value: "800m"')
    (there.temp / "event.json").write_text("{}")
    ran = there.run(command="preview", base="HEAD~1")
    assert ran.failed == [] and host.previews() == [] and "llmops-dev" in ran.summary
    ran = there.run(command="promote")
    assert ran.failed == ["Run argosy"] and "the input command is check or preview" in ran.printed["Run argosy"]


@pytest.mark.tier("all")
def test_failed_preview_is_an_error_and_writes_no_comment(runner: Runner, host: Host) -> None:
    there = pull_request(runner, host, 'value: "500m"', 'value: "800m"')
    ran = there.run(command="preview", base="no-such-branch")
    assert ran.failed == ["Run argosy"] and ran.outputs["result"] == "error" and host.previews() == []
