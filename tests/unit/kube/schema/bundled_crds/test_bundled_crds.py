"""Bundled CRDs: the API server accepts them, and their objects keep every field."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from typing import Any

import pytest

from argosy.errors import ClusterError, ManifestError, UserError
from argosy.kube.objects import Manifest, key_of, read_manifests
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import list_definition_names, load_definition, load_definitions
from argosy.kube.schema.bundled_crds.crd_notation_expansion import expand_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.contract_manifests import eventually
from support.paths import DATA

pytestmark = pytest.mark.anyio

FILES = sorted((DATA / "definitions").glob("*.yaml"))
EXAMPLES = [manifest for file in FILES for manifest in read_manifests(file.read_text(), where=file.name)]
NAMES = [f"{example_manifest['kind']}-{example_manifest['metadata']['name']}" for example_manifest in EXAMPLES]
JOB = "notebookvalidationjobs.mlops.mlops.dev"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def cluster(anyio_backend: str) -> AsyncIterator[EmbeddedCluster]:
    """API server with all bundled CRDs."""
    async with EmbeddedCluster.open() as opened:
        for definition in load_definitions():
            await opened.create(definition)
        for name in list_definition_names():
            await eventually(lambda name=name: established(opened, name))
        yield opened


async def established(cluster: EmbeddedCluster, name: str) -> bool:
    definition = await cluster.get(ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", name))
    assert definition is not None
    conditions = {condition["type"]: condition["status"] for condition in definition["status"].get("conditions") or ()}
    return conditions == {"NamesAccepted": "True", "Established": "True"}


def spec_of(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = load_definition(name)["spec"]
    return spec


def example(kind: str, name: str = "") -> Manifest:
    """Copy of the first example of this kind, or of the example with this name."""
    example_manifest = next(
        candidate for candidate in EXAMPLES if candidate["kind"] == kind and name in ("", candidate["metadata"]["name"])
    )
    return deepcopy(example_manifest)


async def stored(cluster: EmbeddedCluster, manifest: Manifest) -> Manifest:
    """Live object after both writes: a kind with a status subresource takes its status only there."""
    await cluster.create(manifest)
    key = key_of(manifest)
    parts = (await cluster.kinds())[key.group_kind].subresources
    if "status" in manifest and "status" in parts:
        await cluster.patch(key, {"status": manifest["status"]}, subresource="status")
    live = await cluster.get(key)
    assert live is not None
    return live


def lost(original: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Differences between the original and the stored value; additional fields are defaults."""
    if isinstance(original, dict) and isinstance(kept, dict):
        for key, value in original.items():
            yield from lost(value, kept[key], f"{path}.{key}") if key in kept else [f"{path}.{key} is gone"]
    elif isinstance(original, list) and isinstance(kept, list) and len(original) == len(kept):
        for number, (one, other) in enumerate(zip(original, kept)):
            yield from lost(one, other, f"{path}[{number}]")
    elif original != kept or type(original) is not type(kept):
        yield f"{path} was {original!r} and is {kept!r}"


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all leaves; the items of a list share one path."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from paths(child, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for item in value:
            yield from paths(item, f"{path}[]")
    else:
        yield path


def typed_paths(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Paths of all leaves that a schema declares; a map of values is one leaf."""
    if "properties" in schema:
        for key, child in schema["properties"].items():
            yield from typed_paths(child, f"{path}.{key}")
    elif schema.get("type") == "array":
        yield from typed_paths(schema["items"], f"{path}[]")
    else:
        yield path


# -- the definitions ---------------------------------------------------------------------------------------------------


async def test_every_definition_is_accepted_and_established(cluster: EmbeddedCluster) -> None:
    kinds = await cluster.kinds()
    for name in list_definition_names():
        assert await established(cluster, name), name
        assert GroupKind(spec_of(name)["group"], spec_of(name)["names"]["kind"]) in kinds


def test_every_definition_has_an_example() -> None:
    example_kinds = {(key_of(example_manifest).group, example_manifest["kind"]) for example_manifest in EXAMPLES}
    assert {
        (spec_of(name)["group"], spec_of(name)["names"]["kind"]) for name in list_definition_names()
    } == example_kinds


def test_load_definition_caches_the_definition() -> None:
    assert load_definition(JOB) is load_definition(JOB)
    assert load_definitions(JOB, "gitea.pfe.rhpds.com") == [
        load_definition(JOB),
        load_definition("gitea.pfe.rhpds.com"),
    ]


def test_unknown_definition_name_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'application.argoproj.io': did you mean applications.argoproj.io\?"):
        load_definition("application.argoproj.io")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"fields": {"spec": "strng"}}, "gears.example.org.yaml: KeyError: 'strng'"),
        ({"fields": {"spec": "$nothing"}}, "gears.example.org.yaml: KeyError: 'nothing'"),
        ({"fields": {"spec": "open"}, "columns": ["Phase .status.phase"]}, "invalid column 'Phase .status.phase'"),
    ],
)
def test_invalid_definition_file_is_named_in_the_error(written: dict[str, Any], said: str) -> None:
    with pytest.raises(ManifestError, match=said.replace(".", r"\.")):
        expand_definition("gears.example.org", {"kind": "Gear", "about": "x", "versions": ["v1"], **written}, {})


# -- names and columns -------------------------------------------------------------------------------------------------

READY = ".status.conditions[?(@.type=='Ready')].status"
TRAFFIC = ".status.components.predictor.traffic"
COLUMNS = {
    "applications.argoproj.io": [
        ("Sync Status", "string", ".status.sync.status", 0),
        ("Health Status", "string", ".status.health.status", 0),
        ("Revision", "string", ".status.sync.revision", 10),
        ("Project", "string", ".spec.project", 10),
    ],
    JOB: [
        ("Phase", "string", ".status.phase", 0),
        ("Notebook", "string", ".spec.notebook.path", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Message", "string", ".status.message", 1),
    ],
    "inferenceservices.serving.kserve.io": [
        ("URL", "string", ".status.url", 0),
        ("Ready", "string", READY, 0),
        ("Prev", "integer", f"{TRAFFIC}[?(@.tag=='prev')].percent", 0),
        ("Latest", "integer", f"{TRAFFIC}[?(@.latestRevision==true)].percent", 0),
        ("PrevRolledoutRevision", "string", f"{TRAFFIC}[?(@.tag=='prev')].revisionName", 0),
        ("LatestReadyRevision", "string", f"{TRAFFIC}[?(@.latestRevision==true)].revisionName", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
    ],
}
SHORT_NAMES = {
    "applications.argoproj.io": ["app", "apps"],
    "applicationsets.argoproj.io": ["appset", "appsets"],
    "appprojects.argoproj.io": ["appproj", "appprojs"],
    "buildconfigs.build.openshift.io": ["bc"],
    "clusterserviceversions.operators.coreos.com": ["csv", "csvs"],
    "datascienceclusters.datasciencecluster.opendatahub.io": ["dsc"],
    "eventlisteners.triggers.tekton.dev": ["el"],
    "externalsecrets.external-secrets.io": ["es"],
    "gateways.networking.istio.io": ["gw"],
    "imagestreams.image.openshift.io": ["is"],
    "imagestreamtags.image.openshift.io": ["istag"],
    "inferencegraphs.serving.kserve.io": ["ig"],
    "inferenceservices.serving.kserve.io": ["isvc"],
    "installplans.operators.coreos.com": ["ip"],
    JOB: ["nvj", "nvjob"],
    "operatorgroups.operators.coreos.com": ["og"],
    "pipelineruns.tekton.dev": ["pr", "prs"],
    "secretstores.external-secrets.io": ["ss"],
    "servicemeshcontrolplanes.maistra.io": ["smcp"],
    "subscriptions.operators.coreos.com": ["sub", "subs"],
    "taskruns.tekton.dev": ["tr", "trs"],
    "trainedmodels.serving.kserve.io": ["tm"],
    "triggerbindings.triggers.tekton.dev": ["tb"],
    "triggertemplates.triggers.tekton.dev": ["tt"],
}


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_printer_columns_match_the_original_crd(name: str) -> None:
    (version,) = spec_of(name)["versions"]
    columns = version["additionalPrinterColumns"]
    assert [
        (column["name"], column["type"], column["jsonPath"], column.get("priority", 0)) for column in columns
    ] == COLUMNS[name]


def test_short_names_match_the_original_crds() -> None:
    short_names = {
        name: spec_of(name)["names"]["shortNames"]
        for name in list_definition_names()
        if "shortNames" in spec_of(name)["names"]
    }
    assert short_names == SHORT_NAMES


def test_only_expected_kinds_are_cluster_scoped() -> None:
    cluster_wide = {
        spec_of(name)["names"]["kind"] for name in list_definition_names() if spec_of(name)["scope"] == "Cluster"
    }
    assert cluster_wide == {"ClusterPolicy", "ClusterServingRuntime", "DataScienceCluster"}


def test_only_expected_kinds_have_no_status_subresource() -> None:
    without = {
        spec_of(name)["names"]["kind"]
        for name in list_definition_names()
        if "subresources" not in spec_of(name)["versions"][0]
    }
    assert without == {"Application", "AppProject", "ServingRuntime", "ClusterServingRuntime", "ImageStreamTag"}


# -- objects -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest", EXAMPLES, ids=NAMES)
async def test_stored_example_keeps_every_field(cluster: EmbeddedCluster, manifest: Manifest) -> None:
    assert list(lost(manifest, await stored(cluster, manifest))) == []


def test_notebook_job_example_has_every_field_of_the_schema() -> None:
    """Compares the last two names of each path: shapes used in several places are shown once."""
    schema = spec_of(JOB)["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema_paths = typed_paths({"properties": {"spec": schema["spec"], "status": schema["status"]}})
    maps = ("limits", "requests", "nodeSelector", "matchLabels", "strategyConfig", "parameters")
    example_tails = {tail(path) for path in paths(example("NotebookValidationJob"))}
    assert [path for path in schema_paths if tail(path) not in example_tails and not path.endswith(maps)] == []


def tail(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[]", "").split(".")[-2:])


async def test_notebook_job_gets_the_documented_defaults(cluster: EmbeddedCluster) -> None:
    model = {"predictionValidation": {}}
    manifest = notebook("defaults", comparisonConfig={}, modelValidation=model, validationConfig={}, retryPolicy={})
    manifest["spec"]["podConfig"] |= {"buildConfig": {}, "tolerations": [{"key": "a"}]}
    spec = (await cluster.create(manifest))["spec"]
    assert spec["timeout"] == "30m"
    pod = spec["podConfig"]
    assert (pod["serviceAccountName"], pod["tolerations"]) == ("default", [{"key": "a", "operator": "Equal"}])
    assert pod["buildConfig"] == {
        "enabled": False,
        "strategy": "s2i",
        "baseImage": "quay.io/jupyter/minimal-notebook:latest",
        "autoGenerateRequirements": True,
        "preferDockerfile": False,
        "fallbackStrategy": "warn",
        "timeout": "15m",
    }
    assert spec["comparisonConfig"] == {
        "strategy": "normalized",
        "floatingPointTolerance": "0.0001",
        "ignoreTimestamps": True,
        "ignoreExecutionCount": True,
    }
    assert spec["retryPolicy"] == {"maxRetries": 3, "backoff": "1m"}
    assert spec["modelValidation"] == {
        "enabled": True,
        "platform": "kserve",
        "phase": "both",
        "timeout": "5m",
        "predictionValidation": {"enabled": True, "tolerance": "0.01"},
    }
    assert spec["validationConfig"] == {
        "level": "development",
        "strictMode": False,
        "failOnStderr": False,
        "failOnWarnings": False,
        "detectSilentFailures": True,
        "requireExplicitExitCodes": False,
        "checkOutputTypes": False,
        "verifyAssertions": False,
        "educationalMode": False,
    }


async def test_notebook_job_keeps_volumes_outside_pod_config(cluster: EmbeddedCluster) -> None:
    volumes = [{"name": "models", "persistentVolumeClaim": {"claimName": "ml-model-storage"}}]
    assert (await cluster.create(notebook("beside", volumes=volumes)))["spec"]["volumes"] == volumes


async def test_notebook_job_without_container_image_is_accepted(cluster: EmbeddedCluster) -> None:
    manifest = notebook("imageless")
    manifest["spec"]["podConfig"] = {"credentials": ["s3"]}
    stored_pod = (await cluster.create(manifest))["spec"]["podConfig"]
    assert stored_pod == {"credentials": ["s3"], "serviceAccountName": "default"}


async def test_unknown_field_of_notebook_job_is_pruned(cluster: EmbeddedCluster) -> None:
    assert "notebok" not in (await cluster.create(notebook("pruned", notebok={})))["spec"]


async def test_v1alpha1_argocd_is_read_as_v1beta1(cluster: EmbeddedCluster) -> None:
    old = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ArgoCD", "metadata": {"name": "old", "namespace": "default"}}
    await cluster.create({**old, "spec": {"rbac": {"scopes": "[groups]"}}})
    argocd = await cluster.get(ResourceKey("argoproj.io", "ArgoCD", "default", "old"))
    assert argocd is not None
    assert (argocd["apiVersion"], argocd["spec"]) == ("argoproj.io/v1beta1", {"rbac": {"scopes": "[groups]"}})


def notebook(name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "mlops.mlops.dev/v1alpha1",
        "kind": "NotebookValidationJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "notebook": {"git": {"url": "https://example.org/a.git", "ref": "main"}, "path": "a.ipynb"},
            "podConfig": {"containerImage": "image:1"},
            **spec,
        },
    }


ABSENT = object()
WRONG: list[tuple[str, str, Any]] = [
    ("Application", "spec.project", ABSENT),
    ("Application", "spec.destination", ABSENT),
    ("Application", "spec.source.repoURL", ABSENT),
    ("Application", "spec.source.kustomize.images", "a:b"),
    ("Application", "spec.syncPolicy.automated.prune", "yes"),
    ("Application", "spec.syncPolicy.retry.limit", "5"),
    ("Application", "spec.syncPolicy.syncOptions", {"CreateNamespace": True}),
    ("Application", "spec.ignoreDifferences[0].kind", ABSENT),
    ("Application", "status.operationState.startedAt", "yesterday"),
    ("AppProject", "spec.roles[0].name", ABSENT),
    ("ApplicationSet", "spec.syncPolicy.applicationsSync", "sometimes"),
    ("ArgoCD", "spec.resourceHealthChecks[0].check", 1),
    ("ArgoCD", "spec.rbac.policy", ["g, a, role:admin"]),
    ("ArgoCD", "spec.extraConfig.timeout", 60),
    ("NotebookValidationJob", "spec.notebook.git.url", "ftp://example.org"),
    ("NotebookValidationJob", "spec.notebook.git.ref", ABSENT),
    ("NotebookValidationJob", "spec.notebook.path", "train.py"),
    ("NotebookValidationJob", "spec.goldenNotebook.path", "train.py"),
    ("NotebookValidationJob", "spec.podConfig.containerImage", 1),
    ("NotebookValidationJob", "spec.podConfig.initContainers[0].name", "Fetch"),
    ("NotebookValidationJob", "spec.retryPolicy.on", "sometimes"),
    ("NotebookValidationJob", "spec.retryPolicy.maxRetries", 11),
    ("NotebookValidationJob", "spec.retryPolicy.backoff", "soon"),
    ("NotebookValidationJob", "spec.podConfig.resources.limits.cpu", 2),
    ("NotebookValidationJob", "spec.podConfig.env[0].name", ABSENT),
    ("NotebookValidationJob", "spec.podConfig.env[1].valueFrom.secretKeyRef.key", ABSENT),
    ("NotebookValidationJob", "spec.podConfig.volumes[0].name", "Models"),
    ("NotebookValidationJob", "spec.podConfig.volumes[0].persistentVolumeClaim.claimName", ""),
    ("NotebookValidationJob", "spec.podConfig.volumes[1].configMap.defaultMode", 512),
    ("NotebookValidationJob", "spec.podConfig.volumes[1].configMap.items[0].path", "/absolute"),
    ("NotebookValidationJob", "spec.podConfig.volumes[3].emptyDir.medium", "Disk"),
    ("NotebookValidationJob", "spec.podConfig.volumes[3].emptyDir.sizeLimit", "much"),
    ("NotebookValidationJob", "spec.podConfig.volumeMounts[0].mountPath", "relative"),
    ("NotebookValidationJob", "spec.podConfig.tolerations[0].operator", "Maybe"),
    ("NotebookValidationJob", "spec.podConfig.tolerations[0].effect", "Never"),
    ("NotebookValidationJob", "spec.podConfig.buildConfig.strategy", "make"),
    ("NotebookValidationJob", "spec.podConfig.buildConfig.dockerfile", "a b"),
    ("NotebookValidationJob", "spec.podConfig.buildConfig.fallbackStrategy", "ignore"),
    ("NotebookValidationJob", "spec.comparisonConfig.strategy", "fuzzy"),
    ("NotebookValidationJob", "spec.comparisonConfig.floatingPointTolerance", "-1"),
    ("NotebookValidationJob", "spec.timeout", "30 minutes"),
    ("NotebookValidationJob", "spec.modelValidation.platform", "other"),
    ("NotebookValidationJob", "spec.modelValidation.phase", "dirty"),
    ("NotebookValidationJob", "spec.modelValidation.timeout", "5"),
    ("NotebookValidationJob", "spec.validationConfig.level", "expert"),
    ("NotebookValidationJob", "spec.validationConfig.expectedOutputs[0].cell", -1),
    ("NotebookValidationJob", "spec.validationConfig.expectedOutputs[0].minValue", "low"),
    ("NotebookValidationJob", "status.phase", "Done"),
    ("NotebookValidationJob", "status.results[0].status", "Good"),
    ("NotebookValidationJob", "status.comparisonResult.diffs[0].cellType", "heading"),
    ("InferenceService", "spec.predictor", ABSENT),
    ("InferenceService", "spec.predictor.minReplicas", "1"),
    ("InferenceService", "spec.predictor.model.modelFormat.name", ABSENT),
    ("InferenceService", "spec.predictor.model.resources.limits.cpu", "two"),
    ("ServingRuntime", "spec.containers", ABSENT),
    ("TrainedModel", "spec.model.memory", ABSENT),
    ("InferenceGraph", "spec.nodes.root.routerType", "Ring"),
    ("Route", "spec.to.name", ABSENT),
    ("Route", "spec.tls.termination", "none"),
    ("BuildConfig", "spec.source.git.uri", ABSENT),
    ("BuildConfig", "spec.runPolicy", "Never"),
    ("Build", "status.phase", "Done"),
    ("ImageStream", "spec.lookupPolicy.local", "true"),
    ("Subscription", "spec.source", ABSENT),
    ("Subscription", "spec.installPlanApproval", "Later"),
    ("DataScienceCluster", "spec.components.kserve.managementState", "On"),
    ("Gateway", "spec.servers[0].hosts", ABSENT),
    ("DoclingServe", "spec.replicas", "one"),
    ("ExternalSecret", "spec.data[0].remoteRef.key", ABSENT),
    ("SecretStore", "spec.provider", ABSENT),
    ("SealedSecret", "spec.encryptedData", ABSENT),
    ("Gitea", "spec.giteaSsl", "true"),
    ("Pipeline", "spec.tasks[0].runAfter", "fetch"),
    ("Task", "spec.params[0].type", "number"),
]


@pytest.mark.parametrize(("kind", "path", "value"), WRONG, ids=[f"{kind}-{path}" for kind, path, _ in WRONG])
async def test_invalid_value_is_rejected_with_its_field_path(
    cluster: EmbeddedCluster, kind: str, path: str, value: Any
) -> None:
    manifest = example(kind)
    manifest["metadata"]["name"] = f"wrong-{kind.lower()}"
    put(manifest, path, value)
    with pytest.raises(ClusterError) as refused:
        try:
            await stored(cluster, manifest)
        finally:
            await cluster.delete(key_of(manifest)) if await cluster.get(key_of(manifest)) else None
    assert refused.value.code == 422
    assert path in refused.value.message


def put(manifest: Manifest, path: str, value: Any) -> None:
    *parents, last = path.replace("[", ".").replace("]", "").split(".")
    parent: Any = manifest
    for step in parents:
        parent = parent[int(step)] if isinstance(parent, list) else parent[step]
    if value is ABSENT:
        del parent[last]
    else:
        parent[last] = value
