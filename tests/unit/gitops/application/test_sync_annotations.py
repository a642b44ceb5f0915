"""What annotations say of a sync."""

from __future__ import annotations

import pytest

from argosy.gitops.application import SyncPhase
from argosy.gitops.application.sync_annotations import (
    DeletePolicy,
    has_option,
    is_hook,
    is_skipped,
    list_delete_policies,
    list_hook_phases,
    read_wave,
)
from argosy.kube.objects import Manifest


def manifest(**annotations: str) -> Manifest:
    names = {"hook": "argocd.argoproj.io/hook", "helm": "helm.sh/hook", "wave": "argocd.argoproj.io/sync-wave",
             "weight": "helm.sh/hook-weight", "policy": "argocd.argoproj.io/hook-delete-policy",
             "helm_policy": "helm.sh/hook-delete-policy", "options": "argocd.argoproj.io/sync-options"}  # fmt: skip
    return {"metadata": {"name": "m", "annotations": {names[name]: text for name, text in annotations.items()}}}


@pytest.mark.parametrize(
    ("annotation_values", "expected"),
    [
        ({"hook": "PreSync"}, ["PreSync"]),
        ({"hook": " PreSync , PostSync,PreSync"}, ["PreSync", "PostSync"]),
        ({"hook": "Skip"}, []),
        ({"hook": "Skip,Sync"}, ["Sync"]),
        ({"hook": "nonsense"}, []),
        ({"helm": "pre-install,pre-upgrade"}, ["PreSync"]),
        ({"helm": "post-delete"}, ["PostDelete"]),
        ({"helm": "test"}, []),
        ({"hook": "PostSync", "helm": "pre-install"}, ["PostSync"]),
    ],
)
def test_a_hook_runs_in_the_phases_that_it_names(annotation_values: dict[str, str], expected: list[str]) -> None:
    assert list_hook_phases(manifest(**annotation_values)) == tuple(map(SyncPhase, expected))


@pytest.mark.parametrize(
    ("annotation_values", "expected"),
    [
        ({}, 0),
        ({"wave": "-5"}, -5),
        ({"wave": "one"}, 0),
        ({"wave": "one", "weight": "3"}, 3),
        ({"wave": "2", "weight": "3"}, 2),
        ({"wave": "1.5"}, 0),
        ({"wave": " 1"}, 0),
        ({"wave": "٣"}, 0),
    ],
)
def test_a_wave_is_a_whole_number_or_helms_weight_or_zero(annotation_values: dict[str, str], expected: int) -> None:
    assert read_wave(manifest(**annotation_values)) == expected


def test_hooks_are_deleted_before_the_next_one_where_nothing_is_said() -> None:
    assert list_delete_policies(manifest(hook="Sync")) == {DeletePolicy.BEFORE_HOOK_CREATION}


def test_delete_policies_of_argo_cd_and_of_helm_are_both_heard() -> None:
    policies = list_delete_policies(manifest(policy="HookSucceeded, nonsense", helm_policy="hook-failed"))
    assert policies == {DeletePolicy.HOOK_SUCCEEDED, DeletePolicy.HOOK_FAILED}


def test_a_definition_that_helm_installs_first_is_no_hook() -> None:
    assert not is_hook(manifest(helm="crd-install"))


def test_skip_is_alone_or_it_is_nothing() -> None:
    assert is_skipped(manifest(hook="Skip")) and not is_skipped(manifest(hook="Skip,Sync"))


def test_an_option_is_asked_for_in_a_list_with_blanks() -> None:
    assert has_option(manifest(options="Prune=false, Replace=true"), "Replace=true")
    assert not has_option(None, "Replace=true")
