"""Wave holds: which NotebookValidationJobs hold back which sync wave of which application."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.sync.notebook_wave_holds import WaveHold, find_wave_hold, read_blocked_wave
from argosy.kube.objects import Manifest, key_of


def application(name: str = "models", namespace: str = "ml") -> Application:
    source = {"repoURL": "https://git.example.com/a.git", "path": "a", "targetRevision": "main"}
    spec = {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": namespace}}
    metadata = {"name": name, "namespace": "argocd"}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return read_application({**kind, "metadata": metadata, "spec": spec}, name, None)


def job(wave: str = "3", block: str = "4", *, name: str = "train", namespace: str = "ml", **more: Any) -> Manifest:
    annotations = {"argocd.argoproj.io/sync-wave": wave, "mlops.dev/block-wave": block, **more.pop("annotations", {})}
    status = {"phase": more.pop("phase", "ValidationRunning"), "observedGeneration": 1, **more.pop("status", {})}
    metadata = {"name": name, "namespace": namespace, "generation": 1, "annotations": annotations, **more}
    kind = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob"}
    return {**kind, "metadata": metadata, "status": status}


def find_hold(wave: int, *jobs: Manifest, app: Application | None = None, is_own: bool = True) -> WaveHold | None:
    return find_wave_hold(
        wave, jobs, app or application(), {key_of(manifest) for manifest in jobs} if is_own else set()
    )


@pytest.mark.parametrize(("wave", "is_held"), [(3, False), (4, True), (5, True), (13, True), (-4, False)])
def test_blocked_wave_and_later_waves_are_held_and_earlier_ones_are_not(wave: int, is_held: bool) -> None:
    assert bool(find_hold(wave, job())) == is_held


def test_block_wave_is_parsed_as_a_whole_number() -> None:
    assert find_hold(3, job(block="13")) is None
    assert read_blocked_wave(job(block="four")) is None


def test_succeeded_job_holds_nothing_and_failed_job_gives_the_reason() -> None:
    assert find_hold(4, job(phase="Succeeded")) is None
    hold = find_hold(4, job(phase="ValidationRunning", name="a"), job(phase="Failed", status={"message": "No\nway"}))
    assert hold == WaveHold("NotebookValidationJob ml/train, which blocks wave 4, failed: No", has_failed=True)


def test_stale_phase_of_an_earlier_generation_or_run_is_ignored() -> None:
    old = job(phase="Succeeded", generation=2)
    rerun = job(phase="Failed", annotations={"mlops.dev/re-run": "again"})
    for stale_job in (old, rerun):
        hold = find_hold(4, stale_job)
        assert hold is not None
        assert (hold.has_failed, hold.message.endswith("(not started)")) == (False, True)


def test_job_is_not_held_by_itself() -> None:
    assert find_hold(4, job(wave="4")) is None


def test_job_holds_apps_of_its_namespace_or_the_apps_it_names() -> None:
    other, far = application("other"), application("far", "elsewhere")
    named = job(annotations={"mlops.dev/block-application": "far, argocd/third"})
    assert find_hold(4, job(), app=other, is_own=False) is not None
    assert find_hold(4, job(), app=far, is_own=False) is None
    assert find_hold(4, named, app=far, is_own=False) is not None
    assert find_hold(4, named, app=application("third", "x"), is_own=False) is not None
    assert find_hold(4, named, app=other, is_own=False) is None
    assert find_hold(4, named) is not None


def test_job_that_is_being_deleted_holds_nothing() -> None:
    assert find_hold(4, job(deletionTimestamp="2026-01-01T00:00:00Z")) is None
