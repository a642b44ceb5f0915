"""The steps of `argosy health apply`: install health checks into an Argo CD and wait for them.

In: a cluster and a request. Out: an outcome, and a message for each step. Never: prints; changes a check that was
not requested; reports success before argocd-cm holds every complete script.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.features.health_checks.argocd_install.merge import (
    INFERENCE_SERVICE,
    KSERVE,
    Check,
    changes,
    concerned,
    missing_from,
)
from argosy.features.health_checks.argocd_install.settings_location import (
    FIELD,
    Place,
    flags_to,
    read_place,
    write_checks,
)
from argosy.gitops.coexistence.application_refresh import affected, applications_to_show, refresh, settle, table_of
from argosy.gitops.coexistence.argocd_settings import SETTINGS, USUAL, Installation, NotInstalled, find_argocd
from argosy.gitops.coexistence.step_messages import Ask, Tell, banner
from argosy.gitops.health.kind_keys import key_text
from argosy.kube.client import Cluster
from argosy.kube.controller.wait import until
from argosy.kube.objects import Manifest, annotation

QUESTION: Final = "Do you want to continue? (y/n)"
AS_ARGO_CD: Final = "argocd"  # the profile that equals Argo CD's built-in check
TRACKING: Final = "argocd.argoproj.io/tracking-id"  # argo: starts with the application name
TOUCH: Final = "kubectl.kubernetes.io/restartedAt"


class Outcome(enum.Enum):
    DONE = "done"
    ABORTED = "aborted"
    NOT_PROPAGATED = "not propagated"


@dataclass(frozen=True)
class Request:
    checks: tuple[Check, ...]
    namespace: str = ""
    name: str = ""
    is_forced: bool = False
    is_rehearsal: bool = False
    timeout: float = 120.0  # seconds until argocd-cm must hold the checks
    settle: float = 30.0  # seconds until applications must be refreshed


async def apply(cluster: Cluster, request: Request, tell: Tell, ask: Ask) -> Outcome:
    place = await _find(cluster, request, tell)
    is_rerun = _state(place, request.checks, tell)
    if request.is_rehearsal:
        _rehearse(place, request.checks, tell)
        return Outcome.DONE
    if overruled := place.overruled(request.checks):
        _end_overruled(place.installation, overruled, tell)
        return Outcome.NOT_PROPAGATED
    has_entries = place.installation.is_operated and bool(place.entries)
    if (is_rerun or has_entries) and not _may_continue(place, request, tell, ask):
        return Outcome.ABORTED
    await _write(cluster, place, request.checks, tell, is_rerun=is_rerun)
    if not await _propagated(cluster, place.installation, request, tell):
        return Outcome.NOT_PROPAGATED
    await _refresh(cluster, place.installation.namespace, request, tell)
    shown = await applications_to_show(cluster, place.installation.namespace)
    _finish(place.installation, shown, request.checks, tell)
    return Outcome.DONE


async def _find(cluster: Cluster, request: Request, tell: Tell) -> Place:
    try:
        installation = await find_argocd(cluster, request.namespace, request.name)
        place = await read_place(cluster, installation)
    except NotInstalled:
        _begin("ArgoCD CR", tell)
        raise
    if installation.is_operated:
        _begin("ArgoCD CR", tell)
        tell("✓ ArgoCD CR found")
        why = f"the operator generates {SETTINGS} from it and removes other keys"
        tell(f"  {installation.name} in namespace {installation.namespace}; checks go into its spec.{FIELD}: {why}")
    else:
        _begin(SETTINGS, tell)
        tell("✓ Argo CD without an operator found")
        tell(f"  no ArgoCD CR owns {SETTINGS} in namespace {installation.namespace}, so checks go directly into it")
    return place


def _begin(where: str, tell: Tell) -> None:
    for line in (*banner(f"Applying Custom Health Checks to {where}"), "", f"Step 1: Checking if {where} exists..."):
        tell(line)


def _state(place: Place, wanted: Sequence[Check], tell: Tell) -> bool:
    """Report the existing checks; return True if the request touches any of them."""
    tell("\nStep 2: Checking if health checks are already configured...")
    where = "ArgoCD CR" if place.installation.is_operated else SETTINGS
    of_kserve = {check.of.group for check in wanted} == {KSERVE}
    if found := concerned(place.scripts, wanted):
        tell(f"⚠ Health checks for {'KServe' if of_kserve else 'these kinds'} already exist in {where}")
    elif place.installation.is_operated and place.entries is None:
        tell(f"✓ No existing {FIELD} found")
        tell(f"  Will create the list with {_counted(wanted)}")
    else:
        what = FIELD if place.installation.is_operated else SETTINGS
        missing = "KServe health checks" if of_kserve else "health checks for these kinds"
        tell(f"✓ {what} found, but no {missing} detected")
        tell(f"  Will add {_counted(wanted)} and keep the others")
    for line in _warnings(place, wanted):
        tell(line)
    return bool(found)


def _warnings(place: Place, wanted: Sequence[Check]) -> Iterator[str]:
    """Warn about settings that override the checks and about an Application that may revert them."""
    for check in place.overruled(wanted):
        yield f"⚠ spec.extraConfig holds {check.key}, which overrides spec.{FIELD}; remove it there"
    if tracked := annotation(place.live, TRACKING).partition(":")[0]:
        form = "cr" if place.installation.is_operated else "configmap"
        yield f"⚠ Application {tracked} syncs this object from Git and may revert the checks"
        yield f"  Add the checks to Git as well: argosy health export --as {form}"


def _end_overruled(installation: Installation, overruled: Sequence[Check], tell: Tell) -> None:
    keys = " and ".join(check.key for check in overruled)
    tell("✗ Nothing was written, because these checks would have no effect.")
    tell(f"  Remove {keys} from spec.extraConfig of ArgoCD {installation.name}, then run the command again")


def _counted(wanted: Sequence[Check]) -> str:
    return ", ".join(check.name for check in wanted)


def _may_continue(place: Place, request: Request, tell: Tell, ask: Ask) -> bool:
    _tell_changes(place, request.checks, tell)
    if request.is_forced:
        tell("  Force detected (--force): continuing without a prompt")
        return True
    if ask(QUESTION).strip() in ("y", "Y"):
        return True
    tell("Aborted by user.")
    return False


def _tell_changes(place: Place, wanted: Sequence[Check], tell: Tell) -> None:
    for change in changes(place.scripts, wanted):
        tell(f"  {change.sentence}")
    asked = {check.of for check in wanted}
    for of in place.scripts:
        if of not in asked:
            tell(f"  {key_text(*of)}: not requested, kept unchanged")


def _rehearse(place: Place, wanted: Sequence[Check], tell: Tell) -> None:
    tell(f"\nDry run: changes to {place.installation.key}")
    _tell_changes(place, wanted, tell)
    tell("Nothing was written" + ("." if place.patch(wanted) else ": it is already up to date."))


async def _write(cluster: Cluster, place: Place, wanted: Sequence[Check], tell: Tell, *, is_rerun: bool) -> None:
    tell(f"\nStep 3: Patching {'ArgoCD CR' if place.installation.is_operated else SETTINGS}...")
    if await write_checks(cluster, place, wanted):
        tell(f"✓ Health checks {'updated' if is_rerun else 'applied'}: {_counted(wanted)}")
    else:
        tell("✓ Health checks are already up to date; no patch was sent")


async def _propagated(cluster: Cluster, installation: Installation, request: Request, tell: Tell) -> bool:
    if installation.is_operated:
        tell(f"\nStep 4: Waiting for the operator to update ConfigMap {SETTINGS} (at most {request.timeout:g} s)...")
    else:
        tell("\nStep 4: Waiting for an operator is not needed here")
    seen: list[Manifest | None] = [None]

    def holds_all(live: Manifest | None) -> bool:
        seen[0] = live
        return live is not None and not missing_from(live.get("data") or {}, request.checks)

    done = await until(cluster, installation.settings, holds_all, request.timeout)
    tell("\nStep 5: Verifying that the health checks are in ConfigMap...")
    if done:
        tell("✓ Health check found in ConfigMap")
        return True
    tell("✗ Health check not found in ConfigMap. Manual verification needed.")
    data = (seen[0] or {}).get("data") or {}
    for check in missing_from(data, request.checks):
        tell(f"  {check.key}: {'holds another script' if check.key in data else 'not found'}")
    if installation.is_operated:
        for line in _advice(installation):
            tell(line)
    return False


def _advice(installation: Installation) -> list[str]:
    at = '"$(date +%Y-%m-%dT%H:%M:%S%z)"'
    name, namespace = installation.name, installation.namespace
    return [
        "  The CR has the checks, but its operator has not reconciled it. Check the operator, then trigger it:",
        f"    kubectl get pods -n {USUAL}-operator",
        f"    kubectl annotate argocd {name} -n {namespace} --overwrite {TOUCH}={at}",
    ]


async def _refresh(cluster: Cluster, namespace: str, request: Request, tell: Tell) -> None:
    tell("\nStep 6: Refreshing ArgoCD applications...")
    found = await applications_to_show(cluster, namespace)
    done = await refresh(cluster, affected(found, {check.of for check in request.checks}))
    for name in done.asked:
        tell(f"✓ {name}")
    for name in done.gone:
        tell(f"  {name}: skipped, it was deleted")
    for name in done.forbidden:
        tell(f"⚠ {name}: you are not allowed to refresh it; it is refreshed at its next reconciliation")
    if not (done.asked or done.gone or done.forbidden):
        why = "has such a resource" if found else f"is in namespace {namespace}, or you may not see them"
        tell(f"  No application {why}: nothing to refresh")
    if not done.asked:
        tell("\nStep 7: Waiting for health status to update is not needed")
        return
    tell(f"\nStep 7: Waiting for health status to update (at most {request.settle:g} s)...")
    if await settle(cluster, namespace, done.asked, request.settle):
        tell("✓ Argo CD has refreshed them")
    else:
        tell("⚠ Argo CD has not completed every refresh yet; the status below may be outdated")


def _finish(installation: Installation, found: Sequence[Manifest], wanted: Sequence[Check], tell: Tell) -> None:
    tell("")
    for line in banner("Current Application Status:"):
        tell(line)
    tell(table_of(found) if found else "  No applications found")
    tell("")
    for line in banner("Done!"):
        tell(line)
    tell("\nNext steps:")
    tell(f"  Verify the result:   argosy health verify{flags_to(installation, [check.of for check in wanted])}")
    tell(f"  Watch applications:  kubectl get applications.argoproj.io -n {installation.namespace} -w")
    for check in wanted:
        if check.of == INFERENCE_SERVICE and check.profile != AS_ARGO_CD:
            why = "newer Argo CD versions have a built-in check for InferenceService, which this check replaces"
            tell(f"  Note: {why}; compare them: argosy health diff isvc --profile {check.profile}")
