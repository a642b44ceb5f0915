"""Rules about sync waves that end too early, because nothing waits for an object's work.

In: a repository. Out: violations. Never: reports a missing health check if the installation's settings are not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.pod_specs import TRIGGERS, containers, script_of
from argosy.gitops.analysis.repository import Item, Rendering, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.rules.sync_order import turn_of
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.health.bundled import Origin
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import from_manifests
from argosy.gitops.health.settings_location import ARGOSY_CM, holds_settings

# argo: kinds that keep working after creation, and that Argo CD has no built-in health check for
_UNJUDGED: Final = frozenset({
    ("mlops.mlops.dev", "NotebookValidationJob"),
    *(("kubeflow.org", f"{kind}Job") for kind in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")),
    ("kubeflow.org", "Experiment"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("jobset.x-k8s.io", "JobSet"),
    ("batch.volcano.sh", "Job"),
    ("machinelearning.seldon.io", "SeldonDeployment"),
    ("mlops.seldon.io", "Model"),
    ("serving.kserve.io", "InferenceGraph"),
})  # fmt: skip
_BUILD: Final = ("build.openshift.io", "BuildConfig")
_NOTEBOOK: Final = ("mlops.mlops.dev", "NotebookValidationJob")
_JOB: Final = ("batch", "Job")
_INTERNAL: Final = re.compile(
    r"(?:image-registry\.openshift-image-registry\.svc(?:\.cluster\.local)?|docker-registry\.default\.svc)(?::\d+)?"
    r"/([^/:@]+)/([^/:@]+)(?::([^/:@]+))?"
)


def _unjudged(repository: Repository) -> Iterator[Sight]:
    everything = (*repository.loose, *(item for _, item in repository.objects()))
    settings = {item.at().file: item for item in everything if holds_settings(item.manifest)}
    if len(settings) != 1 or any(item.key.name == ARGOSY_CM for item in settings.values()):
        return  # no installation is kept here, or several, or argosy's own, which has checks for all of them
    ((file, held),) = settings.items()
    rulebook = Rulebook(from_manifests([held.manifest]))
    for rendering, item in repository.objects():
        if rendering.written is None or item.kind not in _UNJUDGED:
            continue
        rule, later = rulebook.rule_for(*item.kind), _first_later(rendering, item)
        if later and (rule is None or rule.origin is not Origin.ARGOCD_CM):
            message = f"{later.name} in a later wave does not wait for {item.name}: neither {file} nor Argo CD has a" \
                      " health check for it"  # fmt: skip
            fix = f"add a check for {item.key.kind} to {file}; argosy health export writes one"
            yield Sight(item.at("kind"), message, fix, item.name)


def _first_later(rendering: Rendering, item: Item) -> Item | None:
    turn = turn_of(item)
    if turn is None:
        return None
    found = [(other, each) for each in rendering.items if (other := turn_of(each)) is not None and other > turn]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _unbuilt(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        if rendering.written is None:
            continue
        built = {name: each for each in rendering.of(*_BUILD) if (name := _output(rendering, each))}
        for item in rendering.items if built else ():
            for path, image in _images(item):
                match = _INTERNAL.fullmatch(image)
                build = built.get((match[1], match[2], match[3] or "latest")) if match else None
                if build and match and not _is_awaited(rendering, item, match[2]):
                    message = f"{item.name} runs an image that {build.name} builds, and nothing waits for the build"
                    fix = "add a Job that waits in a wave between them; argosy generate wait-for-image prints one"
                    # A notebook job fails permanently; other Pods retry until the image exists.
                    severity = None if item.kind == _NOTEBOOK else Severity.INFO
                    yield Sight(item.at(*path), message, fix, item.name, ".".join(map(str, path)), severity)


def _output(rendering: Rendering, build: Item) -> tuple[str, str, str] | None:
    """Return namespace, name and tag of the image stream that the build writes to."""
    if build.text("spec", "output", "to", "kind") != "ImageStreamTag":
        return None
    name, _, tag = build.text("spec", "output", "to", "name").partition(":")
    home = build.text("spec", "output", "to", "namespace") or rendering.place_of(build)
    return (home, name, tag or "latest") if name and home else None


def _images(item: Item) -> Iterator[tuple[tuple[Step, ...], str]]:
    if TRIGGERS in item.fields("metadata", "annotations"):
        return  # OpenShift restarts it when the image exists
    if item.kind == _NOTEBOOK:
        path = ("spec", "podConfig", "containerImage")
        yield path, item.text(*path)
    for container in containers(item):
        yield (*container.path, "image"), str(container.spec.get("image") or "")


def _is_awaited(rendering: Rendering, item: Item, image: str) -> bool:
    """True if a Job in an earlier wave mentions the image."""
    turn = turn_of(item)
    word = re.compile(rf"(?<![\w-]){re.escape(image)}(?![\w-])")
    jobs = [each for each in rendering.of(*_JOB) if each is not item]
    earlier = [each for each in jobs if turn is None or (turn_of(each) or turn) < turn]
    return any(word.search(_said(each)) for each in earlier)


def _said(job: Item) -> str:
    """Return all commands and environment values of the Job's containers."""
    texts = []
    for container in containers(job):
        given = container.spec.get("env")
        values = [str(each.get("value")) for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        texts += [script_of(container), *values]
    return "\n".join(texts)


RULES: Final = (
    Rule(
        "AGY122",
        Severity.INFO,
        "A wave does not wait for a kind without a health check",
        "Argo CD treats an object of a kind without a health check as healthy at once: the next wave starts while it is"
        " still running, or after it has failed.",
        "The settings of one installation are in this repository without a check for the kind; Argo CD has no built-in"
        " one; the kind keeps working after its creation; and the Application has a later wave. argosy has a check, so"
        " this concerns Argo CD only.",
        "Add a check to the installation's settings; `argosy health export` writes the checks that argosy has.",
        _unjudged,
    ),
    Rule(
        "AGY302",
        Severity.WARNING,
        "An image is built in the cluster, and nothing waits for it",
        "On the first sync the image does not exist yet: a notebook job fails, and a wave with other Pods is shown as"
        " failing until the build has finished.",
        "The Application creates the BuildConfig that writes the image, and runs the image by its URL in the internal"
        " registry; a BuildConfig is healthy at once; and no Job in an earlier wave mentions the image.",
        "Add a Job that waits in a wave between them; `argosy generate wait-for-image` prints one.",
        _unbuilt,
    ),
)
