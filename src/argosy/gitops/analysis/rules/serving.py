"""Rules about served models.

In: a repository. Out: violations. Never: reports a missing runtime or claim that the cluster may have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.kustomize_prefixed_name_lookup import find_affixed_name
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation

_KSERVE_GROUP: Final = "serving.kserve.io"
_MODEL_PATH: Final = ("spec", "predictor", "model")
# KServe's legacy way to name a framework; its webhook writes spec.predictor.model instead.
_LEGACY_FRAMEWORKS: Final = (
    "sklearn",
    "xgboost",
    "tensorflow",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
)
_DEPLOYMENT_MODE_ANNOTATION: Final = "serving.kserve.io/deploymentMode"
_MODES_WITHOUT_CANARY: Final = ("RawDeployment", "Standard")
_STORAGE_SECRET: Final = "storage-config"  # where KServe looks up storage.key
_MUTABLE_TAGS: Final = frozenset({"latest", "main", "master", "dev", "nightly", "stable"})
_RELEASE_ENVIRONMENT_WORDS: Final = frozenset({"staging", "stage", "prod", "production", "prd"})


def _list_models(repository: RepositoryView) -> Iterator[tuple[RenderedSource, ManifestWithLocations]]:
    return (pair for pair in repository.list_objects() if pair[1].group_kind == (_KSERVE_GROUP, "InferenceService"))


def _find_legacy_predictors(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in _list_models(repository):
        for name in _LEGACY_FRAMEWORKS:
            if isinstance(item.get_value("spec", "predictor", name), dict):
                message = f"{item.name}: spec.predictor.{name} is rewritten to spec.predictor.model by KServe's webhook"
                fix = f"use spec.predictor.model with modelFormat.name: {name}"
                yield Violation(
                    item.find_location("spec", "predictor", name), message, fix, item.name, f"spec.predictor.{name}"
                )


def _find_storage_problems(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item in _list_models(repository):
        yield from _check_storage_credentials(rendering, item)
        uri = item.get_string(*_MODEL_PATH, "storageUri")
        if not uri:
            continue
        location = item.find_location(*_MODEL_PATH, "storageUri")
        if "://" not in uri:
            message = f"{item.name}: storageUri {uri!r} has no scheme, so it cannot be fetched"
            yield Violation(
                location, message, "start it with pvc://, s3://, gs://, oci://, hf:// or https://", item.name
            )
        elif uri.startswith("pvc://"):
            yield from _check_claim(rendering, item, uri)


def _check_claim(rendering: RenderedSource, item: ManifestWithLocations, uri: str) -> Iterator[Violation]:
    claim = uri.removeprefix("pvc://").partition("/")[0]
    namespace = rendering.resolve_namespace(item)
    claim_item = next(
        (candidate for candidate in rendering.list_of_kind("", "PersistentVolumeClaim") if candidate.key.name == claim),
        None,
    )
    location = item.find_location(*_MODEL_PATH, "storageUri")
    if claim_item is None:  # it may exist in the cluster
        if rendered_name := _find_rendered_name(rendering, item, "PersistentVolumeClaim", claim):
            message = f"{item.name} reads from claim {claim}, but the rendered name is {rendered_name}"
            fix = f"use pvc://{rendered_name}/…; namePrefix and nameSuffix do not change this field"
            yield Violation(location, message, fix, item.name, "spec.predictor.model.storageUri")
        return
    if rendering.resolve_namespace(claim_item) != namespace:
        message = (
            f"{item.name} is in {namespace}, but {claim_item.name} is in "
            f"{rendering.resolve_namespace(claim_item)}: it cannot be mounted"
        )
        yield Violation(location, message, "put both into one namespace", item.name)
    modes = claim_item.get_list("spec", "accessModes")
    if modes == ["ReadWriteOncePod"] and _read_min_replicas(item) > 1:
        message = (
            f"{item.name} has {_read_min_replicas(item)} replicas, but only one Pod can mount "
            f"{claim_item.name} (ReadWriteOncePod)"
        )
        yield Violation(location, message, "use a claim with ReadOnlyMany or ReadWriteMany", item.name)


def _check_storage_credentials(rendering: RenderedSource, item: ManifestWithLocations) -> Iterator[Violation]:
    """Check the ServiceAccount with the storage credentials, and the entry in KServe's Secret."""
    account = item.get_string("spec", "predictor", "serviceAccountName")
    if account and (rendered_name := _find_rendered_name(rendering, item, "ServiceAccount", account)):
        message = f"{item.name} runs as ServiceAccount {account}, but the rendered name is {rendered_name}"
        fix = f"set serviceAccountName: {rendered_name}; namePrefix and nameSuffix do not change this field"
        field = ("spec", "predictor", "serviceAccountName")
        yield Violation(item.find_location(*field), message, fix, item.name, ".".join(field))
    entry = item.get_string(*_MODEL_PATH, "storage", "key")
    secret = next(
        (candidate for candidate in rendering.list_of_kind("", "Secret") if candidate.key.name == _STORAGE_SECRET), None
    )
    if entry and secret and rendering.resolve_namespace(secret) == rendering.resolve_namespace(item):
        secret_keys = {*secret.get_map("data"), *secret.get_map("stringData")}
        if secret_keys and entry not in secret_keys:
            message = (
                f"{item.name} needs the entry {entry} of Secret/{_STORAGE_SECRET}, which has "
                f"{', '.join(sorted(secret_keys))}"
            )
            yield Violation(
                item.find_location(*_MODEL_PATH, "storage", "key"),
                message,
                "use one of its entries, or add it",
                item.name,
            )


def _find_rendered_name(rendering: RenderedSource, item: ManifestWithLocations, kind: str, name: str) -> str:
    return find_affixed_name(item, name, (candidate.key.name for candidate in rendering.list_of_kind("", kind)))


def _read_min_replicas(item: ManifestWithLocations) -> int:
    value = item.get_value("spec", "predictor", "minReplicas")
    return value if type(value) is int else 1


def _find_runtime_problems(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item in _list_models(repository):
        runtime_name = item.get_string(*_MODEL_PATH, "runtime")
        if not runtime_name:
            continue
        namespace = rendering.resolve_namespace(item)
        runtimes = {
            runtime_item.key.name: runtime_item
            for runtime_item in rendering.list_of_kind(_KSERVE_GROUP, "ServingRuntime")
        }
        cluster_runtimes = {
            runtime_item.key.name: runtime_item
            for runtime_item in rendering.list_of_kind(_KSERVE_GROUP, "ClusterServingRuntime")
        }
        runtime = runtimes.get(runtime_name) or cluster_runtimes.get(runtime_name)
        location = item.find_location(*_MODEL_PATH, "runtime")
        if runtime is None:
            if rendered_name := find_affixed_name(item, runtime_name, runtimes):
                message = f"{item.name} needs the runtime {runtime_name}, but the rendered name is {rendered_name}"
                fix = f"set runtime: {rendered_name}; namePrefix and nameSuffix do not change this field"
                yield Violation(location, message, fix, item.name, "spec.predictor.model.runtime")
            continue
        if runtime.key.kind == "ServingRuntime" and rendering.resolve_namespace(runtime) != namespace:
            message = (
                f"{item.name} is in {namespace}, but its runtime {runtime_name} is in "
                f"{rendering.resolve_namespace(runtime)}"
            )
            yield Violation(location, message, "move the runtime to the model's namespace", item.name)
        yield from _check_model_format(item, runtime)


def _check_model_format(item: ManifestWithLocations, runtime: ManifestWithLocations) -> Iterator[Violation]:
    model_format = item.get_string(*_MODEL_PATH, "modelFormat", "name")
    formats = [
        supported_format.get("name")
        for supported_format in runtime.get_list("spec", "supportedModelFormats")
        if isinstance(supported_format, dict)
    ]
    if model_format and formats and model_format not in formats:
        message = f"{item.name} has the format {model_format}, but {runtime.name} serves {', '.join(map(str, formats))}"
        fix = "use a runtime that serves the format, or add it to supportedModelFormats"
        yield Violation(item.find_location(*_MODEL_PATH, "modelFormat", "name"), message, fix, item.name)


def _find_ineffective_canaries(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in _list_models(repository):
        percent = item.get_value("spec", "predictor", "canaryTrafficPercent")
        mode = str(item.get_map("metadata", "annotations").get(_DEPLOYMENT_MODE_ANNOTATION, ""))
        if type(percent) is int and percent < 100 and mode in _MODES_WITHOUT_CANARY:
            message = f"{item.name}: canaryTrafficPercent {percent} has no effect with {mode}: no traffic is split"
            fix = "remove it, or deploy with Serverless (Knative)"
            location = item.find_location("spec", "predictor", "canaryTrafficPercent")
            yield Violation(location, message, fix, item.name, "spec.predictor.canaryTrafficPercent")


def _find_mutable_model_tags(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item in _list_models(repository):
        uri = item.get_string(*_MODEL_PATH, "storageUri")
        words = {*rendering.resolve_namespace(item).split("-"), *item.key.name.split("-")}
        if not uri.startswith("oci://") or "@" in uri or not words & _RELEASE_ENVIRONMENT_WORDS:
            continue
        tag = uri.rpartition("/")[2].partition(":")[2] or "latest"
        if tag in _MUTABLE_TAGS:
            message = f"{item.name}: the model's tag {tag} is mutable: a restart may serve another model"
            fix = "use a version, or the digest (@sha256:…)"
            yield Violation(
                item.find_location(*_MODEL_PATH, "storageUri"),
                message,
                fix,
                item.name,
                "spec.predictor.model.storageUri",
            )


RULES: Final = (
    AnalysisRule(
        "AGY201",
        Severity.WARNING,
        "An InferenceService in KServe's legacy format",
        "KServe's webhook rewrites the predictor, so the live object stays OutOfSync.",
        "The predictor has a framework as a field, and KServe's defaulting moves exactly these to predictor.model.",
        "Use spec.predictor.model with modelFormat.",
        _find_legacy_predictors,
    ),
    AnalysisRule(
        "AGY202",
        Severity.ERROR,
        "A model cannot be fetched from its storage",
        "The storage initializer fails, and the model never becomes ready.",
        "The URI has no scheme; or its claim is rendered in another namespace, for one Pod only, or under a name with"
        " the model's own prefix or suffix; or so is the ServiceAccount with the credentials; or the Secret"
        " that KServe reads is rendered without the entry. Objects that only the cluster has are not considered.",
        "Start the URI with its scheme; keep claim and model in one namespace; use the rendered names.",
        _find_storage_problems,
    ),
    AnalysisRule(
        "AGY203",
        Severity.ERROR,
        "A model names a runtime that has another name, or does not support its format",
        "KServe reports RuntimeNotRecognized or RuntimeUnsupported, and no Pod is created.",
        "A runtime is rendered with this name plus the prefix or suffix that the model has too, or with the name of"
        " another environment as prefix; or the runtime exists and lists other formats. Runtimes that only the cluster"
        " has are not considered.",
        "Set the rendered name in every overlay; or use a runtime that lists the format.",
        _find_runtime_problems,
    ),
    AnalysisRule(
        "AGY207",
        Severity.WARNING,
        "A canary in a deployment mode without canaries",
        "All traffic goes to the new model at once, although Git asks for a part only.",
        "The deployment mode of the object is RawDeployment (Standard), in which KServe does not split traffic.",
        "Remove canaryTrafficPercent, or use Serverless.",
        _find_ineffective_canaries,
    ),
    AnalysisRule(
        "AGY208",
        Severity.INFO,
        "A model with a mutable tag",
        "A restart may serve another model, and a rollback in Git has no effect.",
        "The namespace or name says staging or production, and the tag is mutable by its name, or missing.",
        "Use a version or a digest.",
        _find_mutable_model_tags,
    ),
)
