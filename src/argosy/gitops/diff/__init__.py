"""Compares desired and live manifests as Argo CD does.

In: manifests, live manifests by key, diff options. Out: a Comparison; every differing field as data; masked manifests.
Never: asks a cluster, waits, or runs user expressions that may not terminate.
"""

from argosy.gitops.diff.application_comparison import compare_manifests, list_jq_questions, needs_real_jq
from argosy.gitops.diff.argocd_cm_diff_settings_reader import read_diff_settings
from argosy.gitops.diff.crd_schemas import CrdShapes
from argosy.gitops.diff.diff_cache import DiffCache
from argosy.gitops.diff.diff_options import DiffOptions, DiffSettings, KnownField, build_diff_options
from argosy.gitops.diff.differences import format_pointer, list_differences
from argosy.gitops.diff.foreign_fields import list_foreign_fields
from argosy.gitops.diff.ignored_fields import NO_JQ_RESULTS, JqQuestion, JqResults
from argosy.gitops.diff.ignored_fields_only_update_check import UpdateFilter
from argosy.gitops.diff.respect_ignored import keep_ignored_live_values, list_respect_jq_questions
from argosy.gitops.diff.secret_masks import mask_pair, mask_secrets

__all__ = [
    "NO_JQ_RESULTS",
    "CrdShapes",
    "DiffCache",
    "DiffOptions",
    "DiffSettings",
    "JqQuestion",
    "JqResults",
    "KnownField",
    "UpdateFilter",
    "build_diff_options",
    "compare_manifests",
    "format_pointer",
    "keep_ignored_live_values",
    "list_differences",
    "list_foreign_fields",
    "list_jq_questions",
    "list_respect_jq_questions",
    "mask_pair",
    "mask_secrets",
    "needs_real_jq",
    "read_diff_settings",
]
