"""Validates Jobs and CronJobs."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import format_go_value, invalid, not_supported_unsorted, required
from argosy.kube.schema.validation import go_struct_format, pod
from argosy.kube.schema.validation.shared_field_checks import (
    IMMUTABLE_ERROR,
    FieldErrors,
    ManifestPart,
    check_immutable,
    check_label_selector,
    check_non_negative,
    check_required_choice,
    read_label_selector,
)
from argosy.kube.schema.validation.workloads import check_selector_matches_template
from argosy.languages.cron import CronError, parse_schedule

_COUNT_FIELDS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_IMMUTABLE_FIELDS = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MUTABLE_WHILE_SUSPENDED = ("nodeSelector", "tolerations", "schedulingGates")


def _get_spec(manifest: ManifestPart) -> ManifestPart:
    return manifest.get("spec") or {}


def _validate_job_spec(errors: FieldErrors, spec: ManifestPart, path: str) -> None:
    check_non_negative(errors, path, spec, *_COUNT_FIELDS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(
            not_supported_unsorted(f"{path}.completionMode", format_go_value(mode), ("NonIndexed", "Indexed"))
        )
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                errors.append(invalid(f"{path}.{name}", str(spec[name]), "requires indexed completion mode"))
    template = spec.get("template") or {}
    pod.validate_pod_template(errors, template, f"{path}.template")
    policy, field = (template.get("spec") or {}).get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        errors.append(required(field, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(not_supported_unsorted(field, format_go_value(policy), ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(field, format_go_value(policy), detail))


def _validate_selector(errors: FieldErrors, spec: ManifestPart) -> None:
    if spec.get("selector") is None:
        errors.append(required("spec.selector"))
    else:
        check_label_selector(errors, "spec.selector", spec["selector"])
    check_selector_matches_template(errors, spec, empty_matches=False)


def validate_job_create(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec, metadata = _get_spec(manifest), manifest.get("metadata") or {}
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        uid, name = metadata.get("uid") or "", metadata.get("name") or ""
        identity_labels = {"controller-uid": uid, "job-name": name}
        expected = {
            **identity_labels,
            **{f"batch.kubernetes.io/{key}": value for key, value in identity_labels.items()},
        }
        selector = read_label_selector(spec["selector"])
        if selector is not None and not selector.matches(expected):
            value_text = go_struct_format.format_label_selector(spec["selector"])
            errors.append(invalid("spec.selector", value_text, "`selector` not auto-generated"))
    _validate_job_spec(errors, spec, "spec")
    _validate_selector(errors, spec)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0 and metadata.get("name"):
        last_pod_name = f"{metadata['name']}-{spec['completions'] - 1}"
        if name_label_address_syntax.check_dns_label(last_pod_name):
            detail = f"will not able to create pod with invalid DNS label: {last_pod_name}"
            errors.append(invalid("metadata.name", format_go_value(metadata["name"]), detail))
    return errors


def validate_job_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec, old_spec = _get_spec(manifest), _get_spec(old)
    _validate_job_spec(errors, spec, "spec")
    _validate_selector(errors, spec)
    new_completions, old_completions = spec.get("completions"), old_spec.get("completions")
    if spec.get("completionMode") == "Indexed":
        if new_completions not in (old_completions, None) and new_completions != spec.get("parallelism"):
            detail = "can only be modified in tandem with spec.parallelism"
            errors.append(invalid("spec.completions", str(new_completions), detail))
    else:
        check_immutable(errors, "spec.completions", new_completions, old_completions)
    if spec.get("selector") != old_spec.get("selector"):
        errors.append(
            invalid("spec.selector", go_struct_format.format_label_selector(spec.get("selector")), IMMUTABLE_ERROR)
        )
    is_unstarted = bool(old_spec.get("suspend")) and not (old.get("status") or {}).get("startTime")
    if _immutable_template(spec, is_unstarted=is_unstarted) != _immutable_template(old_spec, is_unstarted=is_unstarted):
        errors.append(invalid("spec.template", "core.PodTemplateSpec{...}", IMMUTABLE_ERROR))
    for name in _IMMUTABLE_FIELDS:
        value_text = format_go_value(spec[name]) if isinstance(spec.get(name), (str, int)) else ""
        check_immutable(errors, f"spec.{name}", spec.get(name), old_spec.get(name), value_text)
    return errors


def _immutable_template(spec: ManifestPart, *, is_unstarted: bool) -> ManifestPart:
    """Return the immutable part of the template; scheduling fields of a suspended Job that never started may change."""
    template = spec.get("template") or {}
    if not is_unstarted:
        return template
    kept = {name: value for name, value in (template.get("spec") or {}).items() if name not in _MUTABLE_WHILE_SUSPENDED}
    affinity = {name: value for name, value in (kept.pop("affinity", None) or {}).items() if name != "nodeAffinity"}
    return {"spec": kept, "affinity": affinity}


def _validate_cron_job_spec(
    errors: FieldErrors, spec: ManifestPart, *, allow_zone_in_schedule: bool, check_zone: bool
) -> None:
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        try:
            parse_schedule(schedule)
        except CronError as error:
            errors.append(invalid("spec.schedule", format_go_value(schedule), error.reason))
        if "TZ" in schedule and not allow_zone_in_schedule:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid("spec.schedule", format_go_value(schedule), detail))
    check_non_negative(errors, "spec", spec, "startingDeadlineSeconds")
    if check_zone and spec.get("timeZone") is not None:
        _validate_time_zone(errors, spec["timeZone"])
    check_required_choice(
        errors, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace")
    )
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    _validate_job_spec(errors, template, "spec.jobTemplate.spec")
    if template.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        value_text = go_struct_format.format_label_selector(template["selector"])
        errors.append(invalid("spec.jobTemplate.spec.selector", value_text, detail))
    if template.get("manualSelector"):
        errors.append(not_supported_unsorted("spec.jobTemplate.spec.manualSelector", "true", ("nil", "false")))
    check_non_negative(errors, "spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _validate_time_zone(errors: FieldErrors, zone: str) -> None:
    import zoneinfo  # imported lazily: only CronJobs with a time zone need it

    if not zone:
        errors.append(invalid("spec.timeZone", '""', "timeZone must be nil or non-empty string"))
        return
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid("spec.timeZone", format_go_value(zone), detail))
    try:
        zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        errors.append(invalid("spec.timeZone", format_go_value(zone), f"unknown time zone {zone}"))


def validate_cron_job_create(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    _validate_cron_job_spec(errors, _get_spec(manifest), allow_zone_in_schedule=False, check_zone=True)
    name = (manifest.get("metadata") or {}).get("name") or ""
    if len(name) > 52:
        errors.append(invalid("metadata.name", format_go_value(name), name_label_address_syntax.length_error(52)))
    return errors


def validate_cron_job_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec, old_spec = _get_spec(manifest), _get_spec(old)
    _validate_cron_job_spec(
        errors,
        spec,
        allow_zone_in_schedule="TZ" in (old_spec.get("schedule") or ""),
        check_zone=spec.get("timeZone") != old_spec.get("timeZone"),
    )
    return errors
