"""Runtime selection, Pod templates and webhook defaults of InferenceServices (pure functions)."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.pod_specs import build_pod_template
from argosy.sandbox.simulators.kserve.runtime_selection import choose_runtime
from argosy.sandbox.simulators.kserve.webhooks import apply_defaults, validate
from support.serving_manifests import cluster_runtime, model, runtime

VLLM = {"modelFormat": {"name": "vLLM"}}


def format_(name: str = "vLLM", **more: Any) -> list[Manifest]:
    return [{"name": name, "autoSelect": True, **more}]


def name_of(chosen: Any) -> str:
    return str(chosen.runtime["metadata"]["name"]) if chosen.runtime else str(chosen.reason)


def test_namespace_runtime_is_preferred_over_a_cluster_runtime() -> None:
    shared = cluster_runtime("shared", formats=format_(priority=9))
    assert name_of(choose_runtime(VLLM, [runtime("own")], [shared])) == "own"
    assert choose_runtime(VLLM, [], [shared]).is_cluster_runtime


def test_runtime_with_the_highest_priority_is_chosen() -> None:
    runtimes = [runtime("a"), runtime("b", format_(priority=1)), runtime("c", format_(priority=2))]
    assert name_of(choose_runtime(VLLM, runtimes, [])) == "c"
    assert name_of(choose_runtime(VLLM, runtimes[:2], [])) == "b"


def test_newest_runtime_is_chosen_among_equals() -> None:
    old, new = runtime("a"), runtime("b")
    old["metadata"]["creationTimestamp"], new["metadata"]["creationTimestamp"] = "2026-01-01", "2026-01-02"
    assert name_of(choose_runtime(VLLM, [old, new], [])) == "b"


@pytest.mark.parametrize(
    "unfit",
    [
        runtime("x", [{"name": "vLLM"}]),
        runtime("x", format_("onnx")),
        runtime("x", disabled=True),
        runtime("x", multiModel=True),
        runtime("x", protocolVersions=["v2"]),
    ],
    ids=["it does not offer itself", "other format", "disabled", "of many models", "another protocol"],
)
def test_unsuitable_runtime_is_not_chosen(unfit: Manifest) -> None:
    assert name_of(choose_runtime(VLLM, [unfit], [])) == "NoSupportingRuntime"


def test_model_format_version_must_match() -> None:
    model_spec = {"modelFormat": {"name": "vLLM", "version": "2"}}
    assert name_of(choose_runtime(model_spec, [runtime("one", format_(version="1"))], [])) == "NoSupportingRuntime"
    assert name_of(choose_runtime(model_spec, [runtime("two", format_(version="2"))], [])) == "two"
    assert name_of(choose_runtime(VLLM, [runtime("two", format_(version="2"))], [])) == "two"


@pytest.mark.parametrize(
    ("named", "reason", "message"),
    [
        (runtime("other"), "RuntimeNotRecognized", "Waiting for runtime to become available"),
        (runtime("it", disabled=True), "RuntimeDisabled", "Specified runtime is disabled"),
        (
            runtime("it", format_("onnx")),
            "NoSupportingRuntime",
            "Specified runtime does not support specified framework/version",
        ),
        (
            runtime("it", protocolVersions=["grpc-v2"]),
            "NoSupportingRuntime",
            "Specified runtime does not support specified protocol version",
        ),
    ],
)
def test_unusable_named_runtime_is_reported_with_a_reason(named: Manifest, reason: str, message: str) -> None:
    chosen = choose_runtime({**VLLM, "runtime": "it", "protocolVersion": "v2"}, [named], [])
    assert (chosen.reason, chosen.message) == (reason, message)


def test_named_runtime_does_not_need_auto_select() -> None:
    assert name_of(choose_runtime({**VLLM, "runtime": "it"}, [runtime("it", [{"name": "vLLM"}])], [])) == "it"


def test_webhook_defaults_are_idempotent() -> None:
    for service in (model(), model(predictor={"containers": [{"name": "side", "image": "x"}]})):
        once = apply_defaults(service)
        assert apply_defaults(once) == once


def test_custom_container_gets_a_default_name_and_resources() -> None:
    own = model()
    own["spec"]["predictor"] = {"containers": [{"image": "mine:1"}]}
    (container,) = apply_defaults(own)["spec"]["predictor"]["containers"]
    assert container["name"] == "kserve-container" and container["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}


@pytest.mark.parametrize("framework", ["triton", "onnx", "huggingface"])
def test_some_legacy_frameworks_default_to_protocol_v2(framework: str) -> None:
    old = model()
    old["spec"]["predictor"] = {framework: {"storageUri": "s3://a/b"}}
    assert apply_defaults(old)["spec"]["predictor"]["model"]["protocolVersion"] == "v2"


def test_two_frameworks_in_one_predictor_are_rejected() -> None:
    wrong = model()
    wrong["spec"]["predictor"] = {"sklearn": {}, "xgboost": {}}
    with pytest.raises(UserError, match=r"exactly one of \[model, xgboost\]"):
        validate(apply_defaults(wrong))


def test_model_settings_override_runtime_settings() -> None:
    base = runtime(volumes=[{"name": "shm", "emptyDir": {}}], annotations={"prometheus.io/port": "8080"})
    base["spec"]["containers"][0] |= {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}
    beside = {"nodeSelector": {"gpu": "yes"}}
    service = model(args=["--max-model-len=1"], env=[{"name": "B", "value": "2"}], predictor=beside)
    pod_template = build_pod_template(service, "predictor", base)
    container = pod_template["spec"]["containers"][0]
    assert container["args"] == ["--served-model-name=web", "--max-model-len=1"]
    assert container["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert (
        pod_template["spec"]["nodeSelector"] == {"gpu": "yes"} and pod_template["spec"]["volumes"][0]["name"] == "shm"
    )
    assert pod_template["metadata"]["annotations"]["prometheus.io/port"] == "8080"
    assert pod_template["metadata"]["labels"]["serving.kserve.io/inferenceservice"] == "web"


def test_argocd_and_sandbox_annotations_are_not_copied_to_pods() -> None:
    service = model({"argocd.argoproj.io/tracking-id": "x", "sandbox.argosy.dev/fail": "NotReady", "mine": "kept"})
    annotations = build_pod_template(service, "predictor", runtime())["metadata"]["annotations"]
    assert "mine" in annotations and not any(name.startswith(("argocd", "sandbox")) for name in annotations)


@pytest.mark.parametrize(
    ("uri", "containers", "first"),
    [
        ("oci://registry.example.com/models:qwen", ["kserve-container", "modelcar"], ["modelcar-init"]),
        ("s3://models/qwen", ["kserve-container"], ["storage-initializer"]),
        ("pvc://models/qwen", ["kserve-container"], []),
    ],
)
def test_storage_uri_scheme_determines_the_pod_containers(uri: str, containers: list[str], first: list[str]) -> None:
    pod = build_pod_template(model(storageUri=uri), "predictor", runtime())["spec"]
    assert [container["name"] for container in pod["containers"]] == containers
    assert [init_container["name"] for init_container in pod.get("initContainers") or ()] == first
