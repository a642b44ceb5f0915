"""The Job that waits for an image: its rendered manifest, and its script run by a real shell.

`oc` is a stub that reads a scripted scenario; `date` and `sleep` share a clock that only `sleep` moves.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.deadlines import HANG_SECONDS
from support.helm_charts import NAMESPACE, SCRIPT, URL, needs_helm, rendered, the
from support.tiers import IN_TEST_ALL

pytestmark = needs_helm

READ = ["get", "list", "watch"]
RULES = [
    {"apiGroups": ["image.openshift.io"], "resources": ["imagestreams", "imagestreamtags"], "verbs": READ},
    {"apiGroups": ["build.openshift.io"], "resources": ["builds"], "verbs": READ},
]
STARTING = {"apiGroups": ["build.openshift.io"], "resources": ["buildconfigs/instantiate"], "verbs": ["create"]}

OC = r"""#!/bin/sh
now=$(cat "$STORY/now")
echo "$*" >> "$STORY/calls"
case "$*" in
"get imagestreamtag "*)
  if [ -s "$STORY/tag" ] && [ "$now" -ge "$(cat "$STORY/tag")" ]; then exit 0; fi
  cat "$STORY/refusal" >&2
  exit 1 ;;
"get builds "*)
  echo "Warning: something is old" >&2
  while read -r at name phase; do [ "$now" -lt "$at" ] || echo "build $name $phase"; done < "$STORY/builds" ;;
"get build "*) echo "the Dockerfile is wrong" ;;
"start-build "*)
  echo "build.build.openshift.io/$2-1 started"
  echo "$now $2-1 Running" >> "$STORY/builds"
  echo $((now + 60)) > "$STORY/tag" ;;
*) exit 9 ;;
esac
"""
DATE = '#!/bin/sh\ncat "$STORY/now"\n'
SLEEP = '#!/bin/sh\necho $(($(cat "$STORY/now") + $1)) > "$STORY/now"\n'
NOT_FOUND = 'Error from server (NotFound): imagestreamtags.image.openshift.io "x:latest" not found'
FORBIDDEN = 'Error from server (Forbidden): imagestreamtags is forbidden: User "w" cannot get resource'
BEGAN = 1_000


class Ended(NamedTuple):
    code: int
    seconds: int
    out: str
    err: str
    calls: list[str]


@functools.cache
def job(**wait: Any) -> dict[str, Any]:
    """Rendered once for all tests that do not modify it."""
    return the(rendered({"git": {"repoURL": URL}, "waitForImage": wait}), "Job")


def run(folder: Path, job: dict[str, Any], *, shell: str = "", tag: int | None = None, builds: str = "",
        refusal: str = NOT_FOUND, **settings: str) -> Ended:  # fmt: skip
    """Run the container's command locally. `tag`: when the tag appears; `builds`: lines "when name phase"."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    story = folder / "story"
    story.mkdir()
    for name, text in (("oc", OC), ("date", DATE), ("sleep", SLEEP)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    lines = [line.split(maxsplit=1) for line in builds.splitlines()]
    (story / "builds").write_text("".join(f"{BEGAN + int(at)} {rest}\n" for at, rest in lines))
    (story / "tag").write_text("" if tag is None else str(BEGAN + tag))
    (story / "refusal").write_text(refusal)
    (story / "now").write_text(str(BEGAN))
    env = {variable["name"]: variable["value"] for variable in container["env"]} | settings
    program, *flags = container["command"]
    command = [shell or program, *flags, *container["args"]]
    done = subprocess.run(
        command, env={"PATH": f"{folder}:/usr/bin:/bin", "STORY": str(story), **env},
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    calls = (story / "calls").read_text().splitlines() if (story / "calls").exists() else []
    return Ended(done.returncode, int((story / "now").read_text()) - BEGAN, done.stdout, done.stderr, calls)


def test_wait_job_has_the_expected_manifest() -> None:
    manifest = job()
    spec = manifest["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (manifest["apiVersion"], manifest["metadata"]["name"]) == ("batch/v1", "wait-for-notebook-validator-image")
    assert manifest["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-wave": "-3",
        "argocd.argoproj.io/hook": "Sync",
        "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
    }
    assert (manifest["spec"]["backoffLimit"], manifest["spec"]["ttlSecondsAfterFinished"]) == (0, 300)
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("Never", "image-waiter")
    assert container["image"] == "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest"
    assert container["command"] == ["/bin/bash", "-c"]
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"},
    }  # fmt: skip
    assert {variable["name"]: variable["value"] for variable in container["env"]} == {
        "IMAGE_TAG": "notebook-validator:latest", "NAMESPACE": NAMESPACE, "BUILD_CONFIG": "notebook-validator",
        "TIMEOUT": "3600", "INTERVAL": "30", "AUTO_START": "false",
    }  # fmt: skip


def test_wait_for_image_values_reach_the_job() -> None:
    manifest = job(timeout=120, interval=5, autoStart=True, serviceAccount="waiter", image="tools/oc:4")
    spec = manifest["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    env = {variable["name"]: variable["value"] for variable in container["env"]}
    assert (env["TIMEOUT"], env["INTERVAL"], env["AUTO_START"]) == ("120", "5", "true")
    assert (spec["serviceAccountName"], container["image"]) == ("waiter", "tools/oc:4")
    assert manifest["spec"]["activeDeadlineSeconds"] > 120


# Most rows are in `make test-all`: each starts Helm or a shell.
@pytest.mark.parametrize("timeout", [None, *(pytest.param(value, marks=IN_TEST_ALL) for value in (0, ""))])
def test_empty_timeout_falls_back_to_one_hour(timeout: object) -> None:
    (container,) = job(timeout=timeout)["spec"]["template"]["spec"]["containers"]
    assert {"name": "TIMEOUT", "value": "3600"} in container["env"]


@pytest.mark.parametrize(("start", "rules"), [(False, RULES), (True, [*RULES, STARTING])])
def test_role_of_the_wait_job_grants_only_what_the_script_needs(start: bool, rules: list[Any]) -> None:
    manifests = rendered({"git": {"repoURL": URL}, "waitForImage": {"autoStart": start}})
    assert the(manifests, "Role")["rules"] == rules
    binding = the(manifests, "RoleBinding")
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "image-waiter"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "image-waiter", "namespace": NAMESPACE}]


def test_rendered_script_equals_the_script_file() -> None:
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    first, *script, last = SCRIPT.read_text().splitlines(keepends=True)
    assert first.startswith("{{- define") and last.startswith("{{- end")
    assert container["args"] == ["".join(script)]
    assert "{{" not in "".join(script)


SHELLS = ("bash", "dash")
if os.path.realpath(shutil.which("sh") or "") not in {os.path.realpath(shutil.which(name) or "") for name in SHELLS}:
    SHELLS += ("sh",)  # a third shell


# The Job's image has bash; the other shells run the script in `make test-all`.
@pytest.fixture(params=["bash", *(pytest.param(name, marks=IN_TEST_ALL) for name in SHELLS[1:])])
def shell(request: pytest.FixtureRequest) -> str:
    program = shutil.which(request.param)
    if not program:
        pytest.skip(f"{request.param}: there is none here")
    return program


def test_existing_tag_ends_the_wait_immediately(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(), shell=shell, tag=0)
    assert (ended.code, ended.seconds, ended.err) == (0, 0, "")
    assert len(ended.calls) == 1


def test_tag_that_appears_later_ends_the_wait(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(), shell=shell, tag=100, builds="0 b-1 Running")
    assert (ended.code, ended.seconds, ended.err) == (0, 120, "")
    assert "build b-1 is Running" in ended.out


@pytest.mark.parametrize(
    ("timeout", "interval"), [(100, 30), *(pytest.param(seconds, 30, marks=IN_TEST_ALL) for seconds in (1, 3600))]
)
def test_missing_tag_fails_exactly_at_the_timeout(tmp_path: Path, shell: str, timeout: int, interval: int) -> None:
    ended = run(tmp_path, job(timeout=timeout, interval=interval), shell=shell, builds="0 b-1 Running")
    assert (ended.code, ended.seconds) == (1, timeout)
    assert f"not there after {timeout} s" in ended.err


@pytest.mark.parametrize(
    "phase", ["Failed", *(pytest.param(phase, marks=IN_TEST_ALL) for phase in ("Error", "Cancelled"))]
)
def test_failed_build_ends_the_wait_immediately(tmp_path: Path, shell: str, phase: str) -> None:
    ended = run(tmp_path, job(), shell=shell, builds=f"0 b-1 Running\n60 b-1 {phase}")
    assert (ended.code, ended.seconds) == (1, 60)
    assert f"build b-1 ended as {phase}: the Dockerfile is wrong" in ended.err
    assert "oc start-build notebook-validator" in ended.err


def test_older_failed_build_is_ignored(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(), shell=shell, tag=60, builds="0 b-1 Failed\n0 b-2 Running")
    assert ended.code == 0


def test_tag_is_polled_sooner_after_a_complete_build(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(), shell=shell, tag=33, builds="0 b-1 Running\n30 b-1 Complete")
    assert (ended.code, ended.seconds) == (0, 35)


def test_auto_start_starts_a_build_if_there_is_none(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(autoStart=True), shell=shell)
    assert ended.code == 0, ended
    assert [call for call in ended.calls if call.startswith("start")] == [
        f"start-build notebook-validator -n {NAMESPACE}"
    ]


def test_auto_start_does_not_duplicate_a_build_that_a_trigger_starts(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(autoStart=True), shell=shell, tag=90, builds="10 b-1 Running")
    assert ended.code == 0
    assert not [call for call in ended.calls if call.startswith("start")]


def test_no_build_is_started_without_auto_start(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(timeout=300), shell=shell)
    assert (ended.code, ended.seconds) == (1, 300)
    assert not [call for call in ended.calls if call.startswith("start")]


def test_forbidden_read_names_the_required_permissions(tmp_path: Path, shell: str) -> None:
    ended = run(tmp_path, job(), shell=shell, refusal=FORBIDDEN)
    assert (ended.code, ended.seconds) == (1, 0)
    assert "needs get, list, watch on imagestreams, imagestreamtags and builds" in ended.err


@pytest.mark.parametrize("refusal", [pytest.param("", marks=IN_TEST_ALL), "Unable to connect to the server: EOF"])
def test_unreachable_server_is_retried(tmp_path: Path, shell: str, refusal: str) -> None:
    ended = run(tmp_path, job(), shell=shell, tag=60, builds="0 b-1 Running", refusal=refusal)
    assert (ended.code, ended.seconds) == (0, 60)
    assert "the tag cannot be read" in ended.out


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"IMAGE_TAG": "validator"}, "it must be name:tag"), ({"NAMESPACE": ""}, "NAMESPACE is not set"),
        ({"TIMEOUT": "1h"}, "whole number of seconds"), ({"INTERVAL": "010"}, "whole number of seconds"),
    ],
)  # fmt: skip
def test_invalid_setting_is_named(tmp_path: Path, shell: str, settings: dict[str, str], sentence: str) -> None:
    ended = run(tmp_path, job(), shell=shell, **settings)
    assert (ended.code, ended.calls) == (2, [])
    assert sentence in ended.err


def test_job_command_runs_unmodified_in_bash(tmp_path: Path) -> None:
    if not Path("/bin/bash").exists():
        pytest.skip("bash: there is none at /bin/bash")
    assert run(tmp_path, job(timeout=5, interval=1)).code == 1
