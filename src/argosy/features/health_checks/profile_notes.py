"""Notes on the default profile used for objects, and on the result of profile `strict`.

In: object health results, and a function that assesses with other settings. Out: sentences. Never: uses a profile that
a kind does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.features.health_checks.catalog import with_profile
from argosy.features.health_checks.service import Verdict
from argosy.gitops.health.bundled import DEFAULT_PROFILES, Origin, profiles_of
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Customizations
from argosy.kube.names import GroupKind

STRICT: Final = "strict"
MAX_EXAMPLES: Final = 3
Judge = Callable[[Customizations], Sequence[Verdict]]  # the same objects, in the same order


def describe_profiles(settings: Customizations, verdicts: Sequence[Verdict], judge: Judge) -> list[str]:
    """Render one sentence for each kind that has several profiles and uses a bundled one."""
    rulebook = Rulebook(settings)
    used: dict[GroupKind, str] = {}
    for verdict in verdicts:
        kind = verdict.key.group_kind
        rule = rulebook.rule_for(*kind)
        if rule is not None and rule.origin is Origin.BUNDLED and rule.profile and len(profiles_of(kind)) > 1:
            used[kind] = rule.profile
    strict: Sequence[Verdict] = ()
    if any(STRICT in profiles_of(kind) and profile != STRICT for kind, profile in used.items()):
        strict = judge(with_profile(settings, STRICT))
    return [
        f"{kind.kind} uses profile {_name_profile(kind, profile)}; {_describe_others(kind, profile, pairs)}"
        for kind, profile in used.items()
        for pairs in [[pair for pair in zip(verdicts, strict, strict=False) if pair[0].key.group_kind == kind]]
    ]


def _name_profile(kind: GroupKind, profile: str) -> str:
    return f"{profile}, the default" if DEFAULT_PROFILES.get(kind) == profile else profile


def _describe_others(kind: GroupKind, profile: str, pairs: Sequence[tuple[Verdict, Verdict]]) -> str:
    others = [other for other in profiles_of(kind) if other != profile]
    if STRICT not in others:
        return f"--profile selects another one: {', '.join(others)}"
    different = [(one, other) for one, other in pairs if (one.health, one.message) != (other.health, other.message)]
    if not different:
        compared = f"argosy health diff {kind.kind} --profile {STRICT} shows where they differ"
        objects = "this object" if len(pairs) == 1 else "these objects"
        return f"profile {STRICT} has the same result for {objects}; {compared}"
    examples = [
        f"{other.key.name} is {other.health or 'without health'} ({other.message})"
        for _, other in different[:MAX_EXAMPLES]
    ]
    rest = f" and {len(different) - MAX_EXAMPLES} more differ" if len(different) > MAX_EXAMPLES else ""
    return f"with profile {STRICT}, {', '.join(examples)}{rest}; --profile {STRICT} selects it"
