"""Rules about served models.

In: a repository. Out: violations. Never: reports a missing runtime or claim that the cluster may have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.name_prefixes import renamed
from argosy.gitops.analysis.repository import Item, Rendering, Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight

_GROUP: Final = "serving.kserve.io"
_MODEL: Final = ("spec", "predictor", "model")
# KServe's legacy way to name a framework; its webhook writes spec.predictor.model instead.
_OLD: Final = ("sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm",
               "paddle")  # fmt: skip
_MODE: Final = "serving.kserve.io/deploymentMode"
_WITHOUT_CANARY: Final = ("RawDeployment", "Standard")
_STORAGE: Final = "storage-config"  # where KServe looks up storage.key
_MOVING: Final = frozenset({"latest", "main", "master", "dev", "nightly", "stable"})
_CAREFUL: Final = frozenset({"staging", "stage", "prod", "production", "prd"})


def _models(repository: Repository) -> Iterator[tuple[Rendering, Item]]:
    return (found for found in repository.objects() if found[1].kind == (_GROUP, "InferenceService"))


def _old_form(repository: Repository) -> Iterator[Sight]:
    for _, item in _models(repository):
        for name in _OLD:
            if isinstance(item.value("spec", "predictor", name), dict):
                message = f"{item.name}: spec.predictor.{name} is rewritten to spec.predictor.model by KServe's webhook"
                fix = f"use spec.predictor.model with modelFormat.name: {name}"
                yield Sight(item.at("spec", "predictor", name), message, fix, item.name, f"spec.predictor.{name}")


def _storage(repository: Repository) -> Iterator[Sight]:
    for rendering, item in _models(repository):
        yield from _credentials(rendering, item)
        uri = item.text(*_MODEL, "storageUri")
        if not uri:
            continue
        place = item.at(*_MODEL, "storageUri")
        if "://" not in uri:
            message = f"{item.name}: storageUri {uri!r} has no scheme, so it cannot be fetched"
            yield Sight(place, message, "start it with pvc://, s3://, gs://, oci://, hf:// or https://", item.name)
        elif uri.startswith("pvc://"):
            yield from _claim(rendering, item, uri)


def _claim(rendering: Rendering, item: Item, uri: str) -> Iterator[Sight]:
    claim = uri.removeprefix("pvc://").partition("/")[0]
    home = rendering.place_of(item)
    found = next((each for each in rendering.of("", "PersistentVolumeClaim") if each.key.name == claim), None)
    place = item.at(*_MODEL, "storageUri")
    if found is None:  # it may exist in the cluster
        if near := _called_otherwise(rendering, item, "PersistentVolumeClaim", claim):
            message = f"{item.name} reads from claim {claim}, but the rendered name is {near}"
            fix = f"use pvc://{near}/…; namePrefix and nameSuffix do not change this field"
            yield Sight(place, message, fix, item.name, "spec.predictor.model.storageUri")
        return
    if rendering.place_of(found) != home:
        message = f"{item.name} is in {home}, but {found.name} is in {rendering.place_of(found)}: it cannot be mounted"
        yield Sight(place, message, "put both into one namespace", item.name)
    modes = found.all("spec", "accessModes")
    if modes == ["ReadWriteOncePod"] and _least(item) > 1:
        message = f"{item.name} has {_least(item)} replicas, but only one Pod can mount {found.name} (ReadWriteOncePod)"
        yield Sight(place, message, "use a claim with ReadOnlyMany or ReadWriteMany", item.name)


def _credentials(rendering: Rendering, item: Item) -> Iterator[Sight]:
    """Check the ServiceAccount with the storage credentials, and the entry in KServe's Secret."""
    account = item.text("spec", "predictor", "serviceAccountName")
    if account and (near := _called_otherwise(rendering, item, "ServiceAccount", account)):
        message = f"{item.name} runs as ServiceAccount {account}, but the rendered name is {near}"
        fix = f"set serviceAccountName: {near}; namePrefix and nameSuffix do not change this field"
        field = ("spec", "predictor", "serviceAccountName")
        yield Sight(item.at(*field), message, fix, item.name, ".".join(field))
    entry = item.text(*_MODEL, "storage", "key")
    secret = next((each for each in rendering.of("", "Secret") if each.key.name == _STORAGE), None)
    if entry and secret and rendering.place_of(secret) == rendering.place_of(item):
        held = {*secret.fields("data"), *secret.fields("stringData")}
        if held and entry not in held:
            message = f"{item.name} needs the entry {entry} of Secret/{_STORAGE}, which has {', '.join(sorted(held))}"
            yield Sight(item.at(*_MODEL, "storage", "key"), message, "use one of its entries, or add it", item.name)


def _called_otherwise(rendering: Rendering, item: Item, kind: str, name: str) -> str:
    return renamed(item, name, (each.key.name for each in rendering.of("", kind)))


def _least(item: Item) -> int:
    found = item.value("spec", "predictor", "minReplicas")
    return found if type(found) is int else 1


def _runtimes(repository: Repository) -> Iterator[Sight]:
    for rendering, item in _models(repository):
        wanted = item.text(*_MODEL, "runtime")
        if not wanted:
            continue
        home = rendering.place_of(item)
        known = {each.key.name: each for each in rendering.of(_GROUP, "ServingRuntime")}
        clustered = {each.key.name: each for each in rendering.of(_GROUP, "ClusterServingRuntime")}
        found = known.get(wanted) or clustered.get(wanted)
        place = item.at(*_MODEL, "runtime")
        if found is None:
            if near := renamed(item, wanted, known):
                message = f"{item.name} needs the runtime {wanted}, but the rendered name is {near}"
                fix = f"set runtime: {near}; namePrefix and nameSuffix do not change this field"
                yield Sight(place, message, fix, item.name, "spec.predictor.model.runtime")
            continue
        if found.key.kind == "ServingRuntime" and rendering.place_of(found) != home:
            message = f"{item.name} is in {home}, but its runtime {wanted} is in {rendering.place_of(found)}"
            yield Sight(place, message, "move the runtime to the model's namespace", item.name)
        yield from _format(item, found)


def _format(item: Item, runtime: Item) -> Iterator[Sight]:
    wanted = item.text(*_MODEL, "modelFormat", "name")
    formats = [each.get("name") for each in runtime.all("spec", "supportedModelFormats") if isinstance(each, dict)]
    if wanted and formats and wanted not in formats:
        message = f"{item.name} has the format {wanted}, but {runtime.name} serves {', '.join(map(str, formats))}"
        fix = "use a runtime that serves the format, or add it to supportedModelFormats"
        yield Sight(item.at(*_MODEL, "modelFormat", "name"), message, fix, item.name)


def _canary(repository: Repository) -> Iterator[Sight]:
    for _, item in _models(repository):
        percent = item.value("spec", "predictor", "canaryTrafficPercent")
        mode = str(item.fields("metadata", "annotations").get(_MODE, ""))
        if type(percent) is int and percent < 100 and mode in _WITHOUT_CANARY:
            message = f"{item.name}: canaryTrafficPercent {percent} has no effect with {mode}: no traffic is split"
            fix = "remove it, or deploy with Serverless (Knative)"
            place = item.at("spec", "predictor", "canaryTrafficPercent")
            yield Sight(place, message, fix, item.name, "spec.predictor.canaryTrafficPercent")


def _moving(repository: Repository) -> Iterator[Sight]:
    for rendering, item in _models(repository):
        uri = item.text(*_MODEL, "storageUri")
        words = {*rendering.place_of(item).split("-"), *item.key.name.split("-")}
        if not uri.startswith("oci://") or "@" in uri or not words & _CAREFUL:
            continue
        tag = uri.rpartition("/")[2].partition(":")[2] or "latest"
        if tag in _MOVING:
            message = f"{item.name}: the model's tag {tag} is mutable: a restart may serve another model"
            fix = "use a version, or the digest (@sha256:…)"
            yield Sight(item.at(*_MODEL, "storageUri"), message, fix, item.name, "spec.predictor.model.storageUri")


RULES: Final = (
    Rule(
        "AGY201",
        Severity.WARNING,
        "An InferenceService in KServe's legacy format",
        "KServe's webhook rewrites the predictor, so the live object stays OutOfSync.",
        "The predictor has a framework as a field, and KServe's defaulting moves exactly these to predictor.model.",
        "Use spec.predictor.model with modelFormat.",
        _old_form,
    ),
    Rule(
        "AGY202",
        Severity.ERROR,
        "A model cannot be fetched from its storage",
        "The storage initializer fails, and the model never becomes ready.",
        "The URI has no scheme; or its claim is rendered in another namespace, for one Pod only, or under a name with"
        " the model's own prefix or suffix; or so is the ServiceAccount with the credentials; or the Secret"
        " that KServe reads is rendered without the entry. Objects that only the cluster has are not considered.",
        "Start the URI with its scheme; keep claim and model in one namespace; use the rendered names.",
        _storage,
    ),
    Rule(
        "AGY203",
        Severity.ERROR,
        "A model names a runtime that has another name, or does not support its format",
        "KServe reports RuntimeNotRecognized or RuntimeUnsupported, and no Pod is created.",
        "A runtime is rendered with this name plus the prefix or suffix that the model has too, or with the name of"
        " another environment as prefix; or the runtime exists and lists other formats. Runtimes that only the cluster"
        " has are not considered.",
        "Set the rendered name in every overlay; or use a runtime that lists the format.",
        _runtimes,
    ),
    Rule(
        "AGY207",
        Severity.WARNING,
        "A canary in a deployment mode without canaries",
        "All traffic goes to the new model at once, although Git asks for a part only.",
        "The deployment mode of the object is RawDeployment (Standard), in which KServe does not split traffic.",
        "Remove canaryTrafficPercent, or use Serverless.",
        _canary,
    ),
    Rule(
        "AGY208",
        Severity.INFO,
        "A model with a mutable tag",
        "A restart may serve another model, and a rollback in Git has no effect.",
        "The namespace or name says staging or production, and the tag is mutable by its name, or missing.",
        "Use a version or a digest.",
        _moving,
    ),
)
