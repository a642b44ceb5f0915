"""Validates Jobs and CronJobs."""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import go_value, invalid, required, unsupported
from argosy.kube.schema.validation import cron, go_format, pod
from argosy.kube.schema.validation.checks import (
    IMMUTABLE,
    Faults,
    Part,
    immutable,
    label_selector,
    non_negative,
    one_of,
    selector_of,
)
from argosy.kube.schema.validation.workloads import mismatch

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_WHILE_SUSPENDED = ("nodeSelector", "tolerations", "schedulingGates")


def _spec(manifest: Part) -> Part:
    return manifest.get("spec") or {}


def _job_spec(faults: Faults, spec: Part, path: str) -> None:
    non_negative(faults, path, spec, *_COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        faults.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        faults.append(unsupported(f"{path}.completionMode", go_value(mode), ("NonIndexed", "Indexed")))
    if mode == "Indexed" and spec.get("completions") is None:
        faults.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                faults.append(invalid(f"{path}.{name}", str(spec[name]), "requires indexed completion mode"))
    template = spec.get("template") or {}
    pod.template(faults, template, f"{path}.template")
    policy, field = (template.get("spec") or {}).get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        faults.append(required(field, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        faults.append(unsupported(field, go_value(policy), ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        faults.append(invalid(field, go_value(policy), words))


def _selector(faults: Faults, spec: Part) -> None:
    if spec.get("selector") is None:
        faults.append(required("spec.selector"))
    else:
        label_selector(faults, "spec.selector", spec["selector"])
    mismatch(faults, spec, empty_matches=False)


def job_created(manifest: Part) -> Faults:
    faults: Faults = []
    spec, metadata = _spec(manifest), manifest.get("metadata") or {}
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        uid, name = metadata.get("uid") or "", metadata.get("name") or ""
        made = {"controller-uid": uid, "job-name": name}
        expected = {**made, **{f"batch.kubernetes.io/{key}": value for key, value in made.items()}}
        selector = selector_of(spec["selector"])
        if selector is not None and not selector.matches(expected):
            shown = go_format.label_selector(spec["selector"])
            faults.append(invalid("spec.selector", shown, "`selector` not auto-generated"))
    _job_spec(faults, spec, "spec")
    _selector(faults, spec)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0 and metadata.get("name"):
        last = f"{metadata['name']}-{spec['completions'] - 1}"
        if name_syntax.dns_label(last):
            words = f"will not able to create pod with invalid DNS label: {last}"
            faults.append(invalid("metadata.name", go_value(metadata["name"]), words))
    return faults


def job_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    spec, before = _spec(manifest), _spec(old)
    _job_spec(faults, spec, "spec")
    _selector(faults, spec)
    new, past = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") == "Indexed":
        if new not in (past, None) and new != spec.get("parallelism"):
            words = "can only be modified in tandem with spec.parallelism"
            faults.append(invalid("spec.completions", str(new), words))
    else:
        immutable(faults, "spec.completions", new, past)
    if spec.get("selector") != before.get("selector"):
        faults.append(invalid("spec.selector", go_format.label_selector(spec.get("selector")), IMMUTABLE))
    loose = bool(before.get("suspend")) and not (old.get("status") or {}).get("startTime")
    if _template(spec, loose=loose) != _template(before, loose=loose):
        faults.append(invalid("spec.template", "core.PodTemplateSpec{...}", IMMUTABLE))
    for name in _FIXED:
        shown = go_value(spec[name]) if isinstance(spec.get(name), (str, int)) else ""
        immutable(faults, f"spec.{name}", spec.get(name), before.get(name), shown)
    return faults


def _template(spec: Part, *, loose: bool) -> Part:
    """Return the immutable part of the template; scheduling fields of a suspended Job that never started may change."""
    template = spec.get("template") or {}
    if not loose:
        return template
    kept = {name: value for name, value in (template.get("spec") or {}).items() if name not in _WHILE_SUSPENDED}
    affinity = {name: value for name, value in (kept.pop("affinity", None) or {}).items() if name != "nodeAffinity"}
    return {"spec": kept, "affinity": affinity}


def _cron_spec(faults: Faults, spec: Part, *, zone_in_schedule: bool, check_zone: bool) -> None:
    schedule = spec.get("schedule") or ""
    if not schedule:
        faults.append(required("spec.schedule"))
    else:
        if wrong := cron.problem(schedule):
            faults.append(invalid("spec.schedule", go_value(schedule), wrong))
        if "TZ" in schedule and not zone_in_schedule:
            words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            faults.append(invalid("spec.schedule", go_value(schedule), words))
    non_negative(faults, "spec", spec, "startingDeadlineSeconds")
    if check_zone and spec.get("timeZone") is not None:
        _time_zone(faults, spec["timeZone"])
    one_of(faults, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    _job_spec(faults, template, "spec.jobTemplate.spec")
    if template.get("selector") is not None:
        words = "`selector` will be auto-generated"
        shown = go_format.label_selector(template["selector"])
        faults.append(invalid("spec.jobTemplate.spec.selector", shown, words))
    if template.get("manualSelector"):
        faults.append(unsupported("spec.jobTemplate.spec.manualSelector", "true", ("nil", "false")))
    non_negative(faults, "spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _time_zone(faults: Faults, zone: str) -> None:
    import zoneinfo  # imported lazily: only CronJobs with a time zone need it

    if not zone:
        faults.append(invalid("spec.timeZone", '""', "timeZone must be nil or non-empty string"))
        return
    if zone.lower() == "local":
        words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        faults.append(invalid("spec.timeZone", go_value(zone), words))
    try:
        zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        faults.append(invalid("spec.timeZone", go_value(zone), f"unknown time zone {zone}"))


def cron_job_created(manifest: Part) -> Faults:
    faults: Faults = []
    _cron_spec(faults, _spec(manifest), zone_in_schedule=False, check_zone=True)
    name = (manifest.get("metadata") or {}).get("name") or ""
    if len(name) > 52:
        faults.append(invalid("metadata.name", go_value(name), name_syntax.at_most(52)))
    return faults


def cron_job_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    spec, before = _spec(manifest), _spec(old)
    _cron_spec(
        faults,
        spec,
        zone_in_schedule="TZ" in (before.get("schedule") or ""),
        check_zone=spec.get("timeZone") != before.get("timeZone"),
    )
    return faults
