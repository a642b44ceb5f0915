"""Rules about notebook jobs, and about persistent data of an Application.

In: a repository. Out: violations. Never: reports a missing notebook of another repository.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from argosy import annotations as names
from argosy.errors import ArgosyError
from argosy.gitops.analysis.fix_edit_builders import add_annotation_word
from argosy.gitops.analysis.kustomize_prefixed_name_lookup import find_affixed_name
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.application import sync_annotations
from argosy.kube.objects import read_yaml
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB

_KEEPING_OPTIONS: Final = ("Prune=false", "Delete=false", "Prune=confirm", "Delete=confirm")


def _list_notebook_jobs(rendering: RenderedSource) -> list[ManifestWithLocations]:
    return list(rendering.list_of_kind(*NOTEBOOK_JOB))


def _find_missing_notebooks(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in repository.list_objects():
        if item.group_kind != NOTEBOOK_JOB:
            continue
        for field in ("notebook", "goldenNotebook"):
            url, ref = item.get_string("spec", field, "git", "url"), item.get_string("spec", field, "git", "ref")
            path = item.get_string("spec", field, "path")
            if url and path and repository.has_path(url, ref, path) is False:
                message = f"{item.name}: {path} does not exist in this repository"
                location = item.find_location("spec", field, "path")
                yield Violation(
                    location, message, "correct the path, or add the notebook", item.name, f"spec.{field}.path"
                )


def _find_mixed_notebook_images(repository: RepositoryView) -> Iterator[Violation]:
    path = ("spec", "podConfig", "containerImage")
    for rendering in repository.renderings:
        counts = Counter(item.get_string(*path) for item in _list_notebook_jobs(rendering) if item.get_string(*path))
        if rendering.declaration is None or len(counts) < 2:
            continue
        most_common_image = counts.most_common(1)[0][0]
        for item in _list_notebook_jobs(rendering):
            if item.get_string(*path) and item.get_string(*path) != most_common_image:
                message = (
                    f"{item.name} runs in a different image than the other notebooks of {rendering.declaration.name}"
                )
                yield Violation(
                    item.find_location(*path),
                    message,
                    f"use one tested image: {most_common_image}",
                    item.name,
                    ".".join(path),
                )


def _find_wrong_triggers(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        for item in _list_notebook_jobs(rendering):
            for entry in _read_trigger_entries(item):
                yield from _check_trigger_name(rendering, item, entry)


def _check_trigger_name(
    rendering: RenderedSource, item: ManifestWithLocations, entry: dict[str, Any]
) -> Iterator[Violation]:
    kind, name = str(entry.get("kind", "")), str(entry.get("name", ""))
    if entry.get("namespace") not in (None, "", rendering.resolve_namespace(item)) or not kind or not name:
        return
    known_names = [other.key.name for other in rendering.items if other.key.kind == kind]
    rendered_name = find_affixed_name(item, name, known_names) or _find_misspelt_name(name, known_names)
    if rendered_name:
        message = f"{item.name}: its trigger names {kind}/{name}, but the rendered name is {rendered_name}"
        fix = f"set name: {rendered_name}; namePrefix and nameSuffix do not change annotations"
        location = item.find_location("metadata", "annotations", names.ON_SUCCESS)
        yield Violation(location, message, fix, item.name, f"{kind}/{name}")


def _find_misspelt_name(name: str, known_names: list[str]) -> str:
    """Return the only known name that differs by a typo in one longer word; another letter or number is another
    object.
    """
    matches = (
        []
        if name in known_names
        else [candidate for candidate in known_names if _is_typo(name.split("-"), candidate.split("-"))]
    )
    return matches[0] if len(matches) == 1 else ""


def _is_typo(left: list[str], right: list[str]) -> bool:
    differing_words = [pair for pair in zip(left, right) if pair[0] != pair[1]]
    if len(left) != len(right) or len(differing_words) != 1:
        return False
    left_word, right_word = differing_words[0]
    is_word = min(len(left_word), len(right_word)) > 3 and (left_word + right_word).isalpha()
    return is_word and difflib.SequenceMatcher(None, left_word, right_word).ratio() >= 0.75


def _read_trigger_entries(item: ManifestWithLocations) -> list[dict[str, Any]]:
    text = sync_annotations.get_annotation(item.manifest, names.ON_SUCCESS)
    try:
        entries = read_yaml(text) if text else None
    except ArgosyError:
        return []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _find_models_served_too_early(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        claims = {claim_item.key.name for claim_item in rendering.list_of_kind("", "PersistentVolumeClaim")}
        for model in rendering.list_of_kind(*INFERENCE_SERVICE):
            uri = model.get_string("spec", "predictor", "model", "storageUri")
            claim = uri.removeprefix("pvc://").partition("/")[0] if uri.startswith("pvc://") else ""
            if claim in claims:
                yield from _check_training_order(rendering, model, claim)


def _check_training_order(rendering: RenderedSource, model: ManifestWithLocations, claim: str) -> Iterator[Violation]:
    writers = [job for job in _list_notebook_jobs(rendering) if claim in _list_writable_claims(job)]
    wave = sync_annotations.read_wave(model.manifest)
    if not writers or any(sync_annotations.read_wave(job.manifest) < wave for job in writers):
        return
    if any(str(entry.get("name")) == model.key.name for job in writers for entry in _read_trigger_entries(job)):
        return
    first_job = min(writers, key=lambda job: sync_annotations.read_wave(job.manifest))
    message = f"{model.name} is in wave {wave}, and {first_job.name}, which writes its claim, is in wave" \
              f" {sync_annotations.read_wave(first_job.manifest)}"  # fmt: skip
    fix = f"give {model.name} a later wave, or {first_job.name} a trigger ({names.ON_SUCCESS})"
    yield Violation(model.find_location("spec", "predictor", "model", "storageUri"), message, fix, model.name)


def _list_writable_claims(job: ManifestWithLocations) -> set[str]:
    volumes = [*job.get_list("spec", "podConfig", "volumes"), *job.get_list("spec", "volumes")]
    claims = (entry.get("persistentVolumeClaim") for entry in volumes if isinstance(entry, dict))
    return {str(entry.get("claimName")) for entry in claims if isinstance(entry, dict) and not entry.get("readOnly")}


def _find_prunable_claims(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        automated = rendering.declaration.app.policy.automated if rendering.declaration else None
        if rendering.declaration is None or automated is None or not (automated.is_on and automated.prune):
            continue
        for item in rendering.list_of_kind("", "PersistentVolumeClaim"):
            if not any(sync_annotations.has_option(item.manifest, option) for option in _KEEPING_OPTIONS):
                name = rendering.declaration.name
                message = f"{item.name}: {name} prunes automatically, so a claim removed from Git loses its data"
                fix = f"annotate it with {names.SYNC_OPTIONS}: Prune=false"
                file_fix = item.build_fix(add_annotation_word(names.SYNC_OPTIONS, "Prune=false"), "metadata")
                yield Violation(item.find_location("metadata", "name"), message, fix, item.name, file_fix=file_fix)


RULES: Final = (
    AnalysisRule(
        "AGY116",
        Severity.INFO,
        "A commit may delete data",
        "A claim that is renamed or moved in Git is pruned by the next sync, with all its data.",
        "The Application syncs and prunes automatically, renders the claim, and no sync option keeps it.",
        "Annotate the claim with argocd.argoproj.io/sync-options: Prune=false.",
        _find_prunable_claims,
        "by adding the annotation",
    ),
    AnalysisRule(
        "AGY205",
        Severity.WARNING,
        "A model is served before it is trained",
        "On the first sync the claim is empty: the model cannot be loaded, and its wave never ends.",
        "The Application creates the claim, the model is read from it, and every notebook that may write it is in the"
        " same wave or a later one and has no trigger for the model.",
        "Put the model into a later wave than the notebook.",
        _find_models_served_too_early,
    ),
    AnalysisRule(
        "AGY206",
        Severity.ERROR,
        "A trigger names an object that has another name",
        "The notebook succeeds, the trigger fails, and the old model is still served.",
        "An object of the same kind is rendered with this name plus the job's own prefix or suffix, or with a typo in"
        " one word; and none has exactly this name. Objects that only the cluster has are not considered.",
        "Set the rendered name in every overlay.",
        _find_wrong_triggers,
    ),
    AnalysisRule(
        "AGY301",
        Severity.ERROR,
        "A notebook does not exist at its job's path",
        "The run fails before its first cell.",
        "The URL is that of this repository, and neither the working tree nor the given ref has the file.",
        "Correct the path, or add the notebook.",
        _find_missing_notebooks,
    ),
    AnalysisRule(
        "AGY308",
        Severity.INFO,
        "Notebooks of one Application run in different images",
        "Packages that one notebook was tested with are missing for another; each image must be maintained.",
        "The jobs are rendered together, and their images differ.",
        "Use one tested image.",
        _find_mixed_notebook_images,
    ),
)
