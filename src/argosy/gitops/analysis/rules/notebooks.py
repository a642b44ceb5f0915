"""Rules about notebook jobs, and about data that an Application holds.

In: a repository. Out: sights. Never: a notebook held missing in a repository that is not here.
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
                message = f"{item.name}: there is no {path} in this repository"
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
                message = f"{item.name} runs in another image than the other notebooks of {rendering.written.name}"
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
        message = f"{item.name}: its trigger names {kind}/{name}, but here it is called {near}"
        fix = f"write name: {near}; a namePrefix or nameSuffix does not reach annotations"
        place = item.at("metadata", "annotations", names.ON_SUCCESS)
        yield Sight(place, message, fix, item.name, f"{kind}/{name}")


def _misspelt(name: str, known: list[str]) -> str:
    """A slip of the finger in one longer word of the name; another letter or number is another object."""
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
    message = f"{model.name} is in wave {wave}, and {first.name}, which fills its claim, in wave" \
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
                message = f"{item.name}: {name} prunes by itself, so a claim that leaves Git is deleted with its data"
                fix = f"annotate it with {names.SYNC_OPTIONS}: Prune=false"
                mend = item.mended(with_word(names.SYNC_OPTIONS, "Prune=false"), "metadata")
                yield Sight(item.at("metadata", "name"), message, fix, item.name, mend=mend)


RULES: Final = (
    Rule(
        "AGY116",
        Severity.INFO,
        "Data that a commit may delete",
        "A claim that is renamed or moved in Git is pruned by the next sync, with all that is on it.",
        "The Application syncs and prunes by itself, renders the claim, and the claim has no option that keeps it.",
        "Annotate the claim with argocd.argoproj.io/sync-options: Prune=false.",
        _pruned_data,
        "by the annotation",
    ),
    Rule(
        "AGY205",
        Severity.WARNING,
        "A model is served before it is trained",
        "On the first sync the claim is empty: the model cannot be loaded, and its wave never ends.",
        "The Application makes the claim, the model is read from it, and every notebook that may fill it has the same"
        " wave or a later one and no trigger for the model.",
        "Give the model a later wave than the notebook.",
        _served_first,
    ),
    Rule(
        "AGY206",
        Severity.ERROR,
        "A trigger names what is called otherwise",
        "The notebook succeeds, the trigger fails, and the old model goes on being served.",
        "An object of the same kind is rendered beside it whose name is this one with the job's own prefix or suffix,"
        " or with a slip in one word; and none of the name itself. What only the cluster has is not spoken of.",
        "Write the rendered name in every overlay.",
        _triggers,
    ),
    Rule(
        "AGY301",
        Severity.ERROR,
        "A notebook is not where its job looks for it",
        "The run fails before its first cell.",
        "The address is this repository's, and neither the working tree nor the ref that is named holds the file.",
        "Correct the path, or add the notebook.",
        _missing,
    ),
    Rule(
        "AGY308",
        Severity.INFO,
        "Notebooks of one Application run in different images",
        "What one notebook was tested with, another does not have; images must be kept up one by one.",
        "The jobs are rendered together, and their images differ.",
        "Use one tested image.",
        _images,
    ),
)
