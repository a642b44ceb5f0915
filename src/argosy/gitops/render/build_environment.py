"""Builds Argo CD's build environment (`ARGOCD_APP_NAME` …) and substitutes it in texts.

In: an Application, a source, a revision. Out: variables, and texts with variables replaced.
Never: reads this process's environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from argosy.gitops.application import Application, Source
from argosy.gitops.render.settings import BuildSettings

_VARIABLE_REFERENCE: Final = re.compile(r"\$(?:\{([^}]*)\}|(\{)|([*#$@!?\-0-9])|([A-Za-z_][A-Za-z0-9_]*))")


def build_environment(app: Application, source: Source, revision: str, settings: BuildSettings) -> dict[str, str]:
    return {
        "ARGOCD_APP_NAME": app.name,
        "ARGOCD_APP_NAMESPACE": app.destination.namespace,  # argo: the destination's namespace, not the Application's
        "ARGOCD_APP_PROJECT_NAME": app.project,
        "ARGOCD_APP_REVISION": revision,
        "ARGOCD_APP_REVISION_SHORT": revision[:7],
        "ARGOCD_APP_REVISION_SHORT_8": revision[:8],
        "ARGOCD_APP_SOURCE_PATH": source.path,
        "ARGOCD_APP_SOURCE_REPO_URL": source.repo_url,
        "ARGOCD_APP_SOURCE_TARGET_REVISION": source.ref,
        "KUBE_VERSION": settings.kube_version,
        "KUBE_API_VERSIONS": ",".join(settings.api_versions or settings.cluster_api_versions),
    }


def substitute(text: str, environment: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`; unknown variables become empty, `$$` becomes one dollar sign."""
    if "$" not in text:
        return text

    def replace_match(match: re.Match[str]) -> str:
        braced, _, special, plain = match.groups()
        name = braced or special or plain or ""
        # argo: an empty or unclosed brace is dropped.
        return "$" if name == "$" else environment.get(name, "") if name else ""

    return _VARIABLE_REFERENCE.sub(replace_match, text)
