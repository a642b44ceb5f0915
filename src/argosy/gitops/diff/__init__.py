"""Compares desired and live manifests as Argo CD does.

In: manifests, live manifests by key, diff options. Out: a Comparison; every differing field as data; masked manifests.
Never: asks a cluster, waits, or runs user expressions that may not terminate.
"""

from argosy.gitops.diff.comparison import compare, needs_confined, questions
from argosy.gitops.diff.crd_schemas import CustomShapes
from argosy.gitops.diff.diff_cache import Memory
from argosy.gitops.diff.diff_options import CompareRules, CompareSettings, KnownField, rules_for
from argosy.gitops.diff.differences import differences, readable
from argosy.gitops.diff.foreign_fields import additions
from argosy.gitops.diff.ignored_fields import NOTHING_REMOVED, Question, Removed
from argosy.gitops.diff.relevant_updates import UpdateFilter
from argosy.gitops.diff.respect_ignored import respect_questions, respecting
from argosy.gitops.diff.secret_masks import masked, masked_pair
from argosy.gitops.diff.settings import read_compare_settings

__all__ = [
    "NOTHING_REMOVED",
    "CompareRules",
    "CompareSettings",
    "CustomShapes",
    "KnownField",
    "Memory",
    "Question",
    "Removed",
    "UpdateFilter",
    "additions",
    "compare",
    "differences",
    "masked",
    "masked_pair",
    "needs_confined",
    "questions",
    "read_compare_settings",
    "readable",
    "respect_questions",
    "respecting",
    "rules_for",
]
