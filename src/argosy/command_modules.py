"""The commands of argosy, by the paths of their modules.

In: nothing. Out: module names as text, so that a command imports only its own. Never: imports a feature.
"""

from __future__ import annotations

from typing import Final

# Command name → module with its `add_commands`.
COMMANDS: Final = {
    "account": "argosy.features.accounts.cli",
    "admin": "argosy.features.backup.admin_initial_password_cli",
    "align": "argosy.features.align_git.cli",
    "app": "argosy.features.applications.cli",
    "check": "argosy.features.check.cli",
    "cluster": "argosy.features.clusters.cli",
    "controller": "argosy.features.controller.cli",
    "demo": "argosy.features.demo.cli",
    "doctor": "argosy.features.doctor.cli",
    "explain": "argosy.features.explain.cli",
    "generate": "argosy.features.generate.cli",
    "health": "argosy.features.health_checks.cli",
    "init": "argosy.features.init.cli",
    "install": "argosy.features.install.cli",
    "kubectl": "argosy.features.kubectl.cli",
    "model": "argosy.features.models.cli",
    "notebook": "argosy.features.notebooks.cli",
    "notifications": "argosy.features.notifications.cli",
    "oc": "argosy.features.kubectl.oc_cli",
    "open": "argosy.features.serve.open_cli",
    "preview": "argosy.features.preview.cli",
    "proj": "argosy.features.projects.cli",
    "promote": "argosy.features.promote.cli",
    "render": "argosy.features.render.cli",
    "sandbox": "argosy.features.local_sandbox.cli",
    "serve": "argosy.features.serve.cli",
    "setup": "argosy.features.setup.cli",
    "trace": "argosy.features.models.lineage_trace_cli",
    "uninstall": "argosy.features.install.uninstall_cli",
    "version": "argosy.features.version.cli",
}
