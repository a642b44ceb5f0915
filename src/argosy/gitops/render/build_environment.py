"""The build environment: what a source may know of its application.

In: an application, a source, a revision. Out: variables, and texts with them put in. Never: this process's environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from argosy.gitops.application import Application, Source
from argosy.gitops.render.settings import BuildSettings

_REFERENCE: Final = re.compile(r"\$(?:\{([^}]*)\}|(\{)|([*#$@!?\-0-9])|([A-Za-z_][A-Za-z0-9_]*))")


def build_environment(app: Application, source: Source, revision: str, settings: BuildSettings) -> dict[str, str]:
    return {
        "ARGOCD_APP_NAME": app.name,
        "ARGOCD_APP_NAMESPACE": app.destination.namespace,  # argo: where it deploys to, not where the Application is
        "ARGOCD_APP_PROJECT_NAME": app.project,
        "ARGOCD_APP_REVISION": revision,
        "ARGOCD_APP_REVISION_SHORT": revision[:7],
        "ARGOCD_APP_REVISION_SHORT_8": revision[:8],
        "ARGOCD_APP_SOURCE_PATH": source.path,
        "ARGOCD_APP_SOURCE_REPO_URL": source.repo_url,
        "ARGOCD_APP_SOURCE_TARGET_REVISION": source.ref,
        "KUBE_VERSION": settings.kube_version,
        "KUBE_API_VERSIONS": ",".join(settings.api_versions),
    }


def substitute(text: str, environment: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}` become values, those that nobody knows nothing; `$$` is one dollar."""
    if "$" not in text:
        return text

    def value(found: re.Match[str]) -> str:
        braced, _, special, plain = found.groups()
        name = braced or special or plain or ""
        # argo: a brace that is empty or not closed is dropped.
        return "$" if name == "$" else environment.get(name, "") if name else ""

    return _REFERENCE.sub(value, text)
