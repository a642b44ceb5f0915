"""Hooks, waves, delete policies and sync options, read from annotations."""

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
def test_hook_phases_are_read_from_annotations(annotation_values: dict[str, str], expected: list[str]) -> None:
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
def test_wave_is_an_integer_or_the_helm_weight_or_zero(annotation_values: dict[str, str], expected: int) -> None:
    assert read_wave(manifest(**annotation_values)) == expected


def test_delete_policy_defaults_to_before_hook_creation() -> None:
    assert list_delete_policies(manifest(hook="Sync")) == {DeletePolicy.BEFORE_HOOK_CREATION}


def test_delete_policies_of_argo_cd_and_helm_are_combined() -> None:
    policies = list_delete_policies(manifest(policy="HookSucceeded, nonsense", helm_policy="hook-failed"))
    assert policies == {DeletePolicy.HOOK_SUCCEEDED, DeletePolicy.HOOK_FAILED}


def test_helm_crd_install_is_not_a_hook() -> None:
    assert not is_hook(manifest(helm="crd-install"))


def test_skip_applies_only_as_the_single_hook_value() -> None:
    assert is_skipped(manifest(hook="Skip")) and not is_skipped(manifest(hook="Skip,Sync"))


def test_sync_option_is_found_in_a_list_with_spaces() -> None:
    assert has_option(manifest(options="Prune=false, Replace=true"), "Replace=true")
    assert not has_option(None, "Replace=true")
