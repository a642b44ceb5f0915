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
from argosy.gitops.analysis.fixes import with_word
from argosy.gitops.analysis.name_prefixes import renamed
from argosy.gitops.analysis.repository import Item, Rendering, Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application import hooks
from argosy.kube.objects import load

_JOB: Final = ("mlops.mlops.dev", "NotebookValidationJob")
_MODEL: Final = ("serving.kserve.io", "InferenceService")
_KEPT: Final = ("Prune=false", "Delete=false", "Prune=confirm", "Delete=confirm")


def _jobs(rendering: Rendering) -> list[Item]:
    return list(rendering.of(*_JOB))


def _missing(repository: Repository) -> Iterator[Sight]:
    for _, item in repository.objects():
        if item.kind != _JOB:
            continue
        for field in ("notebook", "goldenNotebook"):
            url, ref = item.text("spec", field, "git", "url"), item.text("spec", field, "git", "ref")
            path = item.text("spec", field, "path")
            if url and path and repository.has(url, ref, path) is False:
                message = f"{item.name}: {path} does not exist in this repository"
                place = item.at("spec", field, "path")
                yield Sight(place, message, "correct the path, or add the notebook", item.name, f"spec.{field}.path")


def _images(repository: Repository) -> Iterator[Sight]:
    path = ("spec", "podConfig", "containerImage")
    for rendering in repository.renderings:
        counts = Counter(item.text(*path) for item in _jobs(rendering) if item.text(*path))
        if rendering.written is None or len(counts) < 2:
            continue
        usual = counts.most_common(1)[0][0]
        for item in _jobs(rendering):
            if item.text(*path) and item.text(*path) != usual:
                message = f"{item.name} runs in a different image than the other notebooks of {rendering.written.name}"
                yield Sight(item.at(*path), message, f"use one tested image: {usual}", item.name, ".".join(path))


def _triggers(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        for item in _jobs(rendering):
            for entry in _entries(item):
                yield from _misnamed(rendering, item, entry)


def _misnamed(rendering: Rendering, item: Item, entry: dict[str, Any]) -> Iterator[Sight]:
    kind, name = str(entry.get("kind", "")), str(entry.get("name", ""))
    if entry.get("namespace") not in (None, "", rendering.place_of(item)) or not kind or not name:
        return
    known = [each.key.name for each in rendering.items if each.key.kind == kind]
    near = renamed(item, name, known) or _misspelt(name, known)
    if near:
        message = f"{item.name}: its trigger names {kind}/{name}, but the rendered name is {near}"
        fix = f"set name: {near}; namePrefix and nameSuffix do not change annotations"
        place = item.at("metadata", "annotations", names.ON_SUCCESS)
        yield Sight(place, message, fix, item.name, f"{kind}/{name}")


def _misspelt(name: str, known: list[str]) -> str:
    """Return the only known name that differs by a typo in one longer word; another letter or number is another
    object.
    """
    found = [] if name in known else [each for each in known if _is_slip(name.split("-"), each.split("-"))]
    return found[0] if len(found) == 1 else ""


def _is_slip(left: list[str], right: list[str]) -> bool:
    differing = [pair for pair in zip(left, right) if pair[0] != pair[1]]
    if len(left) != len(right) or len(differing) != 1:
        return False
    one, other = differing[0]
    is_word = min(len(one), len(other)) > 3 and (one + other).isalpha()
    return is_word and difflib.SequenceMatcher(None, one, other).ratio() >= 0.75


def _entries(item: Item) -> list[dict[str, Any]]:
    text = hooks.annotation_text(item.manifest, names.ON_SUCCESS)
    try:
        found = load(text) if text else None
    except ArgosyError:
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _served_first(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        claims = {each.key.name for each in rendering.of("", "PersistentVolumeClaim")}
        for model in rendering.of(*_MODEL):
            uri = model.text("spec", "predictor", "model", "storageUri")
            claim = uri.removeprefix("pvc://").partition("/")[0] if uri.startswith("pvc://") else ""
            if claim in claims:
                yield from _untrained(rendering, model, claim)


def _untrained(rendering: Rendering, model: Item, claim: str) -> Iterator[Sight]:
    writers = [job for job in _jobs(rendering) if claim in _mounted(job)]
    wave = hooks.wave(model.manifest)
    if not writers or any(hooks.wave(job.manifest) < wave for job in writers):
        return
    if any(str(entry.get("name")) == model.key.name for job in writers for entry in _entries(job)):
        return
    first = min(writers, key=lambda job: hooks.wave(job.manifest))
    message = f"{model.name} is in wave {wave}, and {first.name}, which writes its claim, is in wave" \
              f" {hooks.wave(first.manifest)}"  # fmt: skip
    fix = f"give {model.name} a later wave, or {first.name} a trigger ({names.ON_SUCCESS})"
    yield Sight(model.at("spec", "predictor", "model", "storageUri"), message, fix, model.name)


def _mounted(job: Item) -> set[str]:
    volumes = [*job.all("spec", "podConfig", "volumes"), *job.all("spec", "volumes")]
    claims = (each.get("persistentVolumeClaim") for each in volumes if isinstance(each, dict))
    return {str(each.get("claimName")) for each in claims if isinstance(each, dict) and not each.get("readOnly")}


def _pruned_data(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        automated = rendering.written.app.policy.automated if rendering.written else None
        if rendering.written is None or automated is None or not (automated.is_on and automated.prune):
            continue
        for item in rendering.of("", "PersistentVolumeClaim"):
            if not any(hooks.has_option(item.manifest, option) for option in _KEPT):
                name = rendering.written.name
                message = f"{item.name}: {name} prunes automatically, so a claim removed from Git loses its data"
                fix = f"annotate it with {names.SYNC_OPTIONS}: Prune=false"
                mend = item.mended(with_word(names.SYNC_OPTIONS, "Prune=false"), "metadata")
                yield Sight(item.at("metadata", "name"), message, fix, item.name, mend=mend)


RULES: Final = (
    Rule(
        "AGY116",
        Severity.INFO,
        "A commit may delete data",
        "A claim that is renamed or moved in Git is pruned by the next sync, with all its data.",
        "The Application syncs and prunes automatically, renders the claim, and no sync option keeps it.",
        "Annotate the claim with argocd.argoproj.io/sync-options: Prune=false.",
        _pruned_data,
        "by adding the annotation",
    ),
    Rule(
        "AGY205",
        Severity.WARNING,
        "A model is served before it is trained",
        "On the first sync the claim is empty: the model cannot be loaded, and its wave never ends.",
        "The Application creates the claim, the model is read from it, and every notebook that may write it is in the"
        " same wave or a later one and has no trigger for the model.",
        "Put the model into a later wave than the notebook.",
        _served_first,
    ),
    Rule(
        "AGY206",
        Severity.ERROR,
        "A trigger names an object that has another name",
        "The notebook succeeds, the trigger fails, and the old model is still served.",
        "An object of the same kind is rendered with this name plus the job's own prefix or suffix, or with a typo in"
        " one word; and none has exactly this name. Objects that only the cluster has are not considered.",
        "Set the rendered name in every overlay.",
        _triggers,
    ),
    Rule(
        "AGY301",
        Severity.ERROR,
        "A notebook does not exist at its job's path",
        "The run fails before its first cell.",
        "The URL is that of this repository, and neither the working tree nor the given ref has the file.",
        "Correct the path, or add the notebook.",
        _missing,
    ),
    Rule(
        "AGY308",
        Severity.INFO,
        "Notebooks of one Application run in different images",
        "Packages that one notebook was tested with are missing for another; each image must be maintained.",
        "The jobs are rendered together, and their images differ.",
        "Use one tested image.",
        _images,
    ),
)
