"""Health rules of an installation, and the health of one pasted object, for the settings page.

In: settings of an installation, a manifest, optionally a script. Out: rows, a trial result. Never: runs a script in
this process; changes a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.errors import UserError
from argosy.features.health_checks.confined_test_runner import find_fault, insert_script_name
from argosy.features.health_checks.effective_health_rule_catalog import (
    HealthRuleRow,
    build_script_settings,
    list_rule_rows,
    render_rule_name,
)
from argosy.gitops.health.assess import HealthAssessor
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import Customizations, read_config_maps
from argosy.isolation import WorkerPool
from argosy.kube.objects import Manifest, key_of, read_manifests

MAX_TEXT_CHARACTERS: Final = 200_000  # characters of a manifest or of a script
SCRIPT_NAME: Final = "the script"


@dataclass(frozen=True)
class HealthTrialResult:
    key: str
    health: str
    message: str
    rule: str
    fault: str = ""


def list_kinds(
    argocd_cm: Mapping[str, str], argosy_cm: Mapping[str, str]
) -> tuple[list[HealthRuleRow], tuple[str, ...]]:
    """List all kinds with a health rule, and the errors in the settings."""
    customizations = read_config_maps(argocd_cm, argosy_cm)
    return [row for row in list_rule_rows(customizations) if row.source], tuple(map(str, customizations.faults))


def read_first_manifest(text: str) -> Manifest:
    """Parse the first manifest of a text; raise UserError if there is none."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UserError(
            f"has more than {MAX_TEXT_CHARACTERS:,} characters; remove fields that the check does not read",
            where="manifest",
        )
    manifests = [manifest_read for manifest_read in read_manifests(text, where="manifest") if manifest_read]
    if not manifests:
        raise UserError("is empty; paste one object as YAML or JSON", where="manifest")
    manifest = manifests[0]
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("metadata"), dict):
        raise UserError("has no kind or no metadata; paste a whole object", where="manifest")
    name = manifest["metadata"].get("name") or "pasted"
    return {**manifest, "metadata": {**manifest["metadata"], "name": str(name)}}


async def assess_pasted_manifest(
    pool: WorkerPool, manifest: Manifest, settings: Customizations, script: str = ""
) -> HealthTrialResult:
    key = key_of(manifest)
    if len(script) > MAX_TEXT_CHARACTERS:
        raise UserError(f"has more than {MAX_TEXT_CHARACTERS:,} characters; shorten it", where=SCRIPT_NAME)
    if script.strip():
        settings = build_script_settings(script, {key.group_kind}, open_libs=False, where=SCRIPT_NAME)
    assessment = (await HealthAssessor(HealthRules(settings), pool, max_cached=0).assess_all([manifest]))[0]
    name = f"{key.kind} {key.name}"
    if assessment is None:
        return HealthTrialResult(
            name, "", "no health rule for this kind: it counts as Healthy as soon as it exists", ""
        )
    rule = render_rule_name(assessment.rule)
    message = (
        "the check returned nothing" if assessment.health is None else insert_script_name(assessment.message, rule)
    )
    return HealthTrialResult(
        name, str(assessment.health or ""), message, rule, insert_script_name(find_fault(assessment), rule)
    )
