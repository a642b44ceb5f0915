"""Notes on the default profile used for objects, and on the result of profile `strict`.

In: object health results, and a function that assesses with other settings. Out: sentences. Never: uses a profile that
a kind does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.features.health_checks.confined_test_runner import ObjectHealth
from argosy.features.health_checks.effective_health_rule_catalog import select_profile
from argosy.gitops.health.bundled_rules import DEFAULT_PROFILES, RuleOrigin, list_profiles_of_kind
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import Customizations
from argosy.kube.resource_key import GroupKind

STRICT_PROFILE: Final = "strict"
MAX_EXAMPLES: Final = 3
AssessWithSettings = Callable[[Customizations], Sequence[ObjectHealth]]  # the same objects, in the same order


def describe_profiles(
    settings: Customizations, verdicts: Sequence[ObjectHealth], assess: AssessWithSettings
) -> list[str]:
    """Render one sentence for each kind that has several profiles and uses a bundled one."""
    rulebook = HealthRules(settings)
    profile_by_kind: dict[GroupKind, str] = {}
    for verdict in verdicts:
        kind = verdict.key.group_kind
        rule = rulebook.find_rule(*kind)
        if (
            rule is not None
            and rule.origin is RuleOrigin.BUNDLED
            and rule.profile
            and len(list_profiles_of_kind(kind)) > 1
        ):
            profile_by_kind[kind] = rule.profile
    strict_verdicts: Sequence[ObjectHealth] = ()
    if any(
        STRICT_PROFILE in list_profiles_of_kind(kind) and profile != STRICT_PROFILE
        for kind, profile in profile_by_kind.items()
    ):
        strict_verdicts = assess(select_profile(settings, STRICT_PROFILE))
    return [
        f"{kind.kind} uses profile {_render_profile_name(kind, profile)}; "
        f"{_describe_other_profiles(kind, profile, pairs)}"
        for kind, profile in profile_by_kind.items()
        for pairs in [[pair for pair in zip(verdicts, strict_verdicts, strict=False) if pair[0].key.group_kind == kind]]
    ]


def _render_profile_name(kind: GroupKind, profile: str) -> str:
    return f"{profile}, the default" if DEFAULT_PROFILES.get(kind) == profile else profile


def _describe_other_profiles(kind: GroupKind, profile: str, pairs: Sequence[tuple[ObjectHealth, ObjectHealth]]) -> str:
    others = [other for other in list_profiles_of_kind(kind) if other != profile]
    if STRICT_PROFILE not in others:
        return f"--profile selects another one: {', '.join(others)}"
    differing_pairs = [
        (current, other)
        for current, other in pairs
        if (current.health, current.message) != (other.health, other.message)
    ]
    if not differing_pairs:
        diff_hint = f"argosy health diff {kind.kind} --profile {STRICT_PROFILE} shows where they differ"
        objects = "this object" if len(pairs) == 1 else "these objects"
        return f"profile {STRICT_PROFILE} has the same result for {objects}; {diff_hint}"
    examples = [
        f"{other.key.name} is {other.health or 'without health'} ({other.message})"
        for _, other in differing_pairs[:MAX_EXAMPLES]
    ]
    more_text = f" and {len(differing_pairs) - MAX_EXAMPLES} more differ" if len(differing_pairs) > MAX_EXAMPLES else ""
    return f"with profile {STRICT_PROFILE}, {', '.join(examples)}{more_text}; --profile {STRICT_PROFILE} selects it"
