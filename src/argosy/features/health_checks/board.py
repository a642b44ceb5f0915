"""Health rules of an installation, and the health of one pasted object, for the settings page.

In: settings of an installation, a manifest, optionally a script. Out: rows, a trial result. Never: runs a script in
this process; changes a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.errors import UserError
from argosy.features.health_checks.catalog import Row, called, rows, with_script
from argosy.features.health_checks.service import fault_of, in_script
from argosy.gitops.health.assess import Assessor
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Customizations, from_config_maps
from argosy.isolation import Pool
from argosy.kube.objects import Manifest, key_of, read_manifests

MOST: Final = 200_000  # characters of a manifest or of a script
SCRIPT: Final = "the script"


@dataclass(frozen=True)
class Tried:
    key: str
    health: str
    message: str
    rule: str
    fault: str = ""


def kinds(argocd_cm: Mapping[str, str], argosy_cm: Mapping[str, str]) -> tuple[list[Row], tuple[str, ...]]:
    """List all kinds with a health rule, and the errors in the settings."""
    found = from_config_maps(argocd_cm, argosy_cm)
    return [each for each in rows(found) if each.source], tuple(map(str, found.faults))


def read_one(text: str) -> Manifest:
    """Parse the first manifest of a text; raise UserError if there is none."""
    if len(text) > MOST:
        raise UserError(
            f"has more than {MOST:,} characters; remove fields that the check does not read", where="manifest"
        )
    found = [each for each in read_manifests(text, where="manifest") if each]
    if not found:
        raise UserError("is empty; paste one object as YAML or JSON", where="manifest")
    manifest = found[0]
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("metadata"), dict):
        raise UserError("has no kind or no metadata; paste a whole object", where="manifest")
    name = manifest["metadata"].get("name") or "pasted"
    return {**manifest, "metadata": {**manifest["metadata"], "name": str(name)}}


async def tried(pool: Pool, manifest: Manifest, settings: Customizations, script: str = "") -> Tried:
    key = key_of(manifest)
    if len(script) > MOST:
        raise UserError(f"has more than {MOST:,} characters; shorten it", where=SCRIPT)
    if script.strip():
        settings = with_script(script, {key.group_kind}, open_libs=False, where=SCRIPT)
    found = (await Assessor(Rulebook(settings), pool, remembered=0).assess_all([manifest]))[0]
    name = f"{key.kind} {key.name}"
    if found is None:
        return Tried(name, "", "no health rule for this kind: it counts as Healthy as soon as it exists", "")
    rule = called(found.rule)
    message = "the check returned nothing" if found.health is None else in_script(found.message, rule)
    return Tried(name, str(found.health or ""), message, rule, in_script(fault_of(found), rule))
