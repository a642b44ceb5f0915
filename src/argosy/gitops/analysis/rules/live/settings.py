"""Live rules about invalid settings of the installation.

In: a live view. Out: violations. Never: a value of a Secret.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import Severity

RULES: Final = (
    build_live_rule(
        "AGY524",
        Severity.WARNING,
        "A setting of the installation is invalid",
        "The last valid value is used, and after a restart the default; for booleans, `cluster.maxMemory` and"
        " comparisons the default at once. `globalProjects`, `resource.exclusions`, `resource.inclusions` and"
        " `source.protocols` restrict, so the finding is an error: after a restart no Application is synced"
        " until they are valid; for `cluster.inClusterEnabled`, none that deploys to this cluster. An invalid"
        " AppProject allows nothing.",
        "The ConfigMaps and AppProjects are read as the controller reads them.",
        "Correct the value of the key, or remove the key to use the default.",
        lambda view: view.unreadable_settings,
    ),
)
