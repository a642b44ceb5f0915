"""Desired and live, compared as Argo CD compares them.

In: manifests, live manifests by key, rules. Out: a Comparison; every differing field as data; masked manifests.
Never: asks a cluster, waits, or runs what a user wrote beyond paths that are known to end.
"""

from argosy.compare.additions import additions
from argosy.compare.differences import differences, readable
from argosy.compare.ignoring import NOTHING_REMOVED, Question, Removed
from argosy.compare.masks import masked, masked_pair
from argosy.compare.memory import Memory
from argosy.compare.pairs import compare, needs_confined, questions
from argosy.compare.respect import respect_questions, respecting
from argosy.compare.rules import CompareRules, CompareSettings, KnownField, rules_for
from argosy.compare.settings import read_compare_settings
from argosy.compare.shapes import CustomShapes
from argosy.compare.updates import UpdateFilter

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
