"""Which notebooks hold back which wave of whom."""

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
def test_the_blocked_wave_and_all_after_it_wait_and_none_before(wave: int, is_held: bool) -> None:
    assert bool(find_hold(wave, job())) == is_held


def test_a_wave_is_a_number_and_not_part_of_one() -> None:
    assert find_hold(3, job(block="13")) is None
    assert read_blocked_wave(job(block="four")) is None


def test_what_succeeded_holds_nothing_back_and_what_failed_says_so() -> None:
    assert find_hold(4, job(phase="Succeeded")) is None
    hold = find_hold(4, job(phase="ValidationRunning", name="a"), job(phase="Failed", status={"message": "No\nway"}))
    assert hold == WaveHold("NotebookValidationJob ml/train, which blocks wave 4, failed: No", has_failed=True)


def test_the_end_of_an_earlier_run_counts_for_nothing() -> None:
    old = job(phase="Succeeded", generation=2)
    rerun = job(phase="Failed", annotations={"mlops.dev/re-run": "again"})
    for stale_job in (old, rerun):
        hold = find_hold(4, stale_job)
        assert hold is not None
        assert (hold.has_failed, hold.message.endswith("(not started)")) == (False, True)


def test_a_job_never_waits_for_itself() -> None:
    assert find_hold(4, job(wave="4")) is None


def test_a_job_blocks_other_applications_of_its_namespace_or_those_that_it_names() -> None:
    other, far = application("other"), application("far", "elsewhere")
    named = job(annotations={"mlops.dev/block-application": "far, argocd/third"})
    assert find_hold(4, job(), app=other, is_own=False) is not None
    assert find_hold(4, job(), app=far, is_own=False) is None
    assert find_hold(4, named, app=far, is_own=False) is not None
    assert find_hold(4, named, app=application("third", "x"), is_own=False) is not None
    assert find_hold(4, named, app=other, is_own=False) is None
    assert find_hold(4, named) is not None


def test_a_job_that_goes_holds_nothing_back() -> None:
    assert find_hold(4, job(deletionTimestamp="2026-01-01T00:00:00Z")) is None
