"""Live rules about single sign-on.

In: a live view. Out: violations. Never: a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation

SETTINGS_OBJECT: Final = "ConfigMap/argocd-cm"


def _find_unusable_sso(view: LiveView) -> Iterator[Violation]:
    is_argocd_only = view.settings.has_argocd is True and not view.settings.has_argosy
    if view.settings.sso_fault and not is_argocd_only:
        fix = "correct oidc.config in argocd-cm, or the Secret that it refers to; it is read again at once"
        yield Violation(
            FileLocation(SETTINGS_OBJECT),
            f"SSO is not usable: {view.settings.sso_fault}",
            fix,
            SETTINGS_OBJECT,
            "oidc.config",
        )


RULES: Final = (
    build_live_rule(
        "AGY523",
        Severity.ERROR,
        "SSO cannot be used",
        "Nobody can log in with the identity provider: the login page has no button for it.",
        "oidc.config of argocd-cm is read as the server reads it, with the keys of Secrets that it refers to.",
        "Correct oidc.config of argocd-cm, or add the key to the Secret.",
        _find_unusable_sso,
    ),
)
