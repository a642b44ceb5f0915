"""Rules about served models.

In: a repository. Out: sights. Never: a runtime or a claim held missing that the cluster may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.advise.finding import Severity, Sight
from argosy.advise.repository import Item, Rendering, Repository
from argosy.advise.rules.rule import Rule
from argosy.schema.demand import read_amounts

_GROUP: Final = "serving.kserve.io"
_MODEL: Final = ("spec", "predictor", "model")
# KServe's first way to name a framework; its webhook writes spec.predictor.model instead.
_OLD: Final = ("sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm",
               "paddle")  # fmt: skip
_MODE: Final = "serving.kserve.io/deploymentMode"
_WITHOUT_CANARY: Final = ("RawDeployment", "Standard")
_MOVING: Final = frozenset({"latest", "main", "master", "dev", "nightly", "stable"})
_CAREFUL: Final = frozenset({"staging", "stage", "prod", "production", "prd"})


def _models(repository: Repository) -> Iterator[tuple[Rendering, Item]]:
    return (found for found in repository.objects() if found[1].kind == (_GROUP, "InferenceService"))


def _old_form(repository: Repository) -> Iterator[Sight]:
    for _, item in _models(repository):
        for name in _OLD:
            if isinstance(item.value("spec", "predictor", name), dict):
                message = f"{item.name}: spec.predictor.{name} is rewritten to spec.predictor.model by KServe's webhook"
                fix = f"write spec.predictor.model with modelFormat.name: {name}"
                yield Sight(item.at("spec", "predictor", name), message, fix, item.name, f"spec.predictor.{name}")


def _storage(repository: Repository) -> Iterator[Sight]:
    for rendering, item in _models(repository):
        uri = item.text(*_MODEL, "storageUri")
        if not uri:
            continue
        place = item.at(*_MODEL, "storageUri")
        if "://" not in uri:
            message = f"{item.name}: storageUri {uri!r} has no scheme, so nobody knows how to fetch it"
            yield Sight(place, message, "begin it with pvc://, s3://, gs://, oci://, hf:// or https://", item.name)
        elif uri.startswith("pvc://"):
            yield from _claim(rendering, item, uri)


def _claim(rendering: Rendering, item: Item, uri: str) -> Iterator[Sight]:
    claim = uri.removeprefix("pvc://").partition("/")[0]
    home = rendering.place_of(item)
    found = next((each for each in rendering.of("", "PersistentVolumeClaim") if each.key.name == claim), None)
    if found is None:
        return  # the cluster may have it
    place = item.at(*_MODEL, "storageUri")
    if rendering.place_of(found) != home:
        message = f"{item.name} is in {home}, but {found.name} is in {rendering.place_of(found)}: it cannot be mounted"
        yield Sight(place, message, "put both into one namespace", item.name)
    modes = found.all("spec", "accessModes")
    if modes == ["ReadWriteOncePod"] and _least(item) > 1:
        message = f"{item.name} runs {_least(item)} times, but only one Pod may mount {found.name} (ReadWriteOncePod)"
        yield Sight(place, message, "use a claim with ReadOnlyMany or ReadWriteMany", item.name)


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
            if near := next((name for name in known if name.endswith(wanted) or name.startswith(wanted)), ""):
                message = f"{item.name} wants the runtime {wanted}, but here it is called {near}"
                fix = f"write runtime: {near}; a namePrefix or nameSuffix does not reach this field"
                yield Sight(place, message, fix, item.name, "spec.predictor.model.runtime")
            continue
        if found.key.kind == "ServingRuntime" and rendering.place_of(found) != home:
            message = f"{item.name} is in {home}, but its runtime {wanted} is in {rendering.place_of(found)}"
            yield Sight(place, message, "put the runtime into the model's namespace", item.name)
        yield from _format(item, found)


def _format(item: Item, runtime: Item) -> Iterator[Sight]:
    wanted = item.text(*_MODEL, "modelFormat", "name")
    formats = [each.get("name") for each in runtime.all("spec", "supportedModelFormats") if isinstance(each, dict)]
    if wanted and formats and wanted not in formats:
        message = f"{item.name} has the format {wanted}, but {runtime.name} serves {', '.join(map(str, formats))}"
        fix = "name a runtime that serves the format, or add it to supportedModelFormats"
        yield Sight(item.at(*_MODEL, "modelFormat", "name"), message, fix, item.name)


def _quota(repository: Repository) -> Iterator[Sight]:
    for rendering, item in _models(repository):
        asked = item.fields(*_MODEL, "resources")
        for quota in rendering.of("", "ResourceQuota"):
            if rendering.place_of(quota) == rendering.place_of(item):
                yield from _beyond(item, asked, quota)


def _beyond(item: Item, asked: Mapping[str, Any], quota: Item) -> Iterator[Sight]:
    hard, count = quota.fields("spec", "hard"), _least(item)
    for part in ("requests", "limits"):
        given = asked.get(part)
        for name, each in (read_amounts(given) if isinstance(given, dict) else {}).items():
            key = _smallest(read_amounts(hard), part, name)
            if key and each * count > read_amounts(hard)[key]:
                much = f"{f'{count} × ' if count > 1 else ''}{asked[part][name]}"
                message = f"{item.name} {part} {much} {name}, but {quota.name} allows {hard[key]}: it never starts"
                fix = "ask for less, start fewer replicas, or raise the quota"
                yield Sight(item.at(*_MODEL, "resources", part, name), message, fix, item.name, f"{part}.{name}")


def _smallest(hard: Mapping[str, Decimal], part: str, name: str) -> str | None:
    # k8s: a bare cpu or memory in a quota is about requests.
    keys = [f"{part}.{name}", *([name] if part == "requests" and name in ("cpu", "memory") else [])]
    return min((key for key in keys if key in hard), key=lambda key: hard[key], default=None)


def _canary(repository: Repository) -> Iterator[Sight]:
    for _, item in _models(repository):
        percent = item.value("spec", "predictor", "canaryTrafficPercent")
        mode = str(item.fields("metadata", "annotations").get(_MODE, ""))
        if type(percent) is int and percent < 100 and mode in _WITHOUT_CANARY:
            message = f"{item.name}: canaryTrafficPercent {percent} does nothing with {mode}: the new model gets it all"
            fix = "take it out, or deploy with Serverless (Knative)"
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
            message = f"{item.name}: the tag {tag} of its model moves: a restart may serve another model"
            fix = "name a version, or the digest (@sha256:…)"
            yield Sight(item.at(*_MODEL, "storageUri"), message, fix, item.name, "spec.predictor.model.storageUri")


RULES: Final = (
    Rule(
        "AGY201",
        Severity.WARNING,
        "An InferenceService in KServe's first form",
        "KServe's webhook writes the predictor anew, so the live object differs from Git for ever: OutOfSync.",
        "The predictor names a framework as a field, and KServe's defaulting moves exactly these to predictor.model.",
        "Write spec.predictor.model with modelFormat.",
        _old_form,
    ),
    Rule(
        "AGY202",
        Severity.ERROR,
        "A model cannot be fetched from where it is said to be",
        "The storage initializer fails, and the model never becomes ready.",
        "The address has no scheme; or its claim is rendered beside it, in another namespace or for one Pod only.",
        "Begin the address with its scheme; keep claim and model together.",
        _storage,
    ),
    Rule(
        "AGY203",
        Severity.ERROR,
        "A model names a runtime that is called otherwise, or does not serve it",
        "KServe reports RuntimeNotRecognized or RuntimeUnsupported, and no Pod is made.",
        "A runtime of nearly this name is rendered beside the model, with a prefix or suffix; or the runtime is there"
        " and lists other formats. A runtime that only the cluster has is not spoken of.",
        "Write the rendered name in every overlay; or choose a runtime that lists the format.",
        _runtimes,
    ),
    Rule(
        "AGY204",
        Severity.ERROR,
        "A model asks for more than the quota of its namespace",
        "The Pods are refused, and the model never becomes ready.",
        "The ResourceQuota is rendered beside it for the same namespace, and the least number of replicas alone is"
        " above it.",
        "Ask for less, or raise the quota.",
        _quota,
    ),
    Rule(
        "AGY207",
        Severity.WARNING,
        "A canary in a mode that has none",
        "All traffic goes to the new model at once, although Git says that only a part shall.",
        "The deployment mode of the object is RawDeployment (Standard), in which KServe splits no traffic.",
        "Take canaryTrafficPercent out, or use Serverless.",
        _canary,
    ),
    Rule(
        "AGY208",
        Severity.INFO,
        "A model by a tag that moves",
        "What a restart serves depends on the day, and a rollback in Git changes nothing.",
        "The namespace or name says staging or production, and the tag moves by its very name, or there is none.",
        "Name a version or a digest.",
        _moving,
    ),
)
