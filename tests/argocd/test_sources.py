"""Sources of every tool: Helm, Kustomize, Jsonnet, directories and several sources at once give the same objects."""

from __future__ import annotations

from typing import Any

import pytest

from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "values.yaml": "replicas: 1\nnested: {text: default, number: 1}\n",
    "values-prod.yaml": "replicas: 3\nnested: {text: prod}\n",
    "templates/settings.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
  labels: {chart: {{ .Chart.Name }}-{{ .Chart.Version }}, release: {{ .Release.Name }}}
data:
  replicas: {{ .Values.replicas | quote }}
  text: {{ .Values.nested.text | quote }}
  number: {{ .Values.nested.number | quote }}
  namespace: {{ .Release.Namespace }}
  revision: {{ .Release.Revision | quote }}
  upgrade: {{ .Release.IsUpgrade | quote }}
  kubernetes: {{ .Capabilities.KubeVersion.Version | trimPrefix "v" | regexFind "^[0-9]+" | quote }}
  widgets: {{ .Capabilities.APIVersions.Has "example.com/v1/Widget" | quote }}
""",
    "templates/hook.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-3"}
data: {when: before}
""",
    "templates/tests/probe.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: probe, annotations: {helm.sh/hook: test}}
data: {}
""",
}
HELM: dict[str, dict[str, Any]] = {
    "defaults": {},
    "parameters": {"parameters": [{"name": "replicas", "value": "5"}, {"name": "nested.text", "value": "a,b"}]},
    "string parameters": {"parameters": [{"name": "nested.number", "value": "0123", "forceString": True}]},
    "value files": {"valueFiles": ["values-prod.yaml"]},
    "missing value files": {"valueFiles": ["values-none.yaml", "values-prod.yaml"], "ignoreMissingValueFiles": True},
    "a missing value file": {"valueFiles": ["values-none.yaml"]},
    "values": {"values": "replicas: 7\nnested: {text: inline}\n"},
    "a values object": {"valuesObject": {"replicas": 8, "nested": {"text": "object", "number": None}}},
    "files and values": {"valueFiles": ["values-prod.yaml"], "values": "replicas: 9\n"},
    "a release name": {"releaseName": "other"},
    "API versions": {"apiVersions": ["example.com/v1/Widget"], "kubeVersion": "1.30.0"},
    "no tests": {"skipTests": True},
    "file parameters": {"fileParameters": [{"name": "nested.text", "path": "values-prod.yaml"}]},
}


@pytest.mark.parametrize("helm", HELM.values(), ids=HELM.keys())
def test_helm(story: Story, helm: dict[str, Any]) -> None:
    story.push(CHART)
    story.deliver(source={"helm": helm})
    story.sync()
    story.check()


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"value": "1"}}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
        },
    },
}
KUSTOMIZE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "names": {"namePrefix": "a-", "nameSuffix": "-z"},
    "images": {"images": ["nginx=registry.example/nginx:2"]},
    "replicas": {"replicas": [{"name": "web", "count": 2}]},
    "labels": {"commonLabels": {"team": "ml"}},
    "labels without selectors": {"commonLabels": {"team": "ml"}, "labelWithoutSelector": True},
    "labels in templates": {
        "commonLabels": {"team": "ml"}, "labelWithoutSelector": True, "labelIncludeTemplates": True
    },
    "annotations": {"commonAnnotations": {"note": "for $ARGOCD_APP_NAME"}, "commonAnnotationsEnvsubst": True},
    "a namespace": {"namespace": "default"},
    "patches": {
        "patches": [
            {"target": {"kind": "Deployment"}, "patch": "- {op: replace, path: /spec/replicas, value: 4}\n"}
        ]
    },
    "a patch that fails": {"patches": [{"target": {"kind": "Deployment"}, "patch": "- {op: remove, path: /none}\n"}]},
    "components": {"components": ["component"]},
    "missing components": {"components": ["none", "component"], "ignoreMissingComponents": True},
}  # fmt: skip


@pytest.mark.parametrize("kustomize", KUSTOMIZE.values(), ids=KUSTOMIZE.keys())
def test_kustomize(story: Story, kustomize: dict[str, Any]) -> None:
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "namePrefix": "c-"}
    story.push({
        "kustomization.yaml": "resources: [settings.yaml, web.yaml]\n",
        "settings.yaml": SETTINGS,
        "web.yaml": WEB,
        "component/kustomization.yaml": component,
    })  # fmt: skip
    story.deliver(source={"kustomize": kustomize})
    story.sync()
    story.check()


JSONNET = """
function(name="settings", value="1") {
  apiVersion: "v1", kind: "ConfigMap", metadata: {name: name}, data: {value: value, outside: std.extVar("outside")},
}
"""


@pytest.mark.parametrize(
    "jsonnet",
    [
        {"extVars": [{"name": "outside", "value": "x"}]},
        {
            "extVars": [{"name": "outside", "value": "'a' + 'b'", "code": True}],
            "tlas": [{"name": "value", "value": "2"}],
        },
        {},
    ],
    ids=["a variable", "code and an argument", "a missing variable"],
)
def test_jsonnet(story: Story, jsonnet: dict[str, Any]) -> None:
    story.push({"settings.jsonnet": JSONNET})
    story.deliver(source={"directory": {"jsonnet": jsonnet}})
    story.sync()
    story.check()


@pytest.mark.parametrize(
    "value_file", ["$values/values/prod.yaml", "$values/values/none.yaml"], ids=["present", "missing"]
)
def test_values_from_another_source(story: Story, value_file: str) -> None:
    story.push(CHART)
    story.repository.push({"values/prod.yaml": "replicas: 6\n"})
    url = story.repository.url
    story.deliver(
        sources=[
            {"repoURL": url, "path": "app", "targetRevision": "HEAD", "helm": {"valueFiles": [value_file]}},
            {"repoURL": url, "targetRevision": "HEAD", "ref": "values"},
        ],
    )
    story.sync()
    story.check()


def test_two_sources_with_the_same_object(story: Story) -> None:
    story.push({"settings.yaml": SETTINGS})
    story.repository.push({"other/settings.yaml": {**SETTINGS, "data": {"value": "2"}}})
    url = story.repository.url
    story.deliver(
        sources=[{"repoURL": url, "path": path, "targetRevision": "HEAD"} for path in ("app", "other")],
    )
    story.sync()
    story.check()


BROKEN: dict[str, dict[str, Any]] = {
    "YAML": {"settings.yaml": "kind: [\n"},
    "a document without a kind": {"settings.yaml": SETTINGS, "other.yaml": "just: text\n"},
    "an empty document": {"settings.yaml": SETTINGS, "other.yaml": "---\n---\n# nothing\n"},
    "a list": {
        "list.yaml": {"apiVersion": "v1", "kind": "List", "items": [SETTINGS]}
    },
    "two documents with one name": {"one.yaml": SETTINGS, "two.yaml": {**SETTINGS, "data": {"value": "2"}}},
    "JSON": {"settings.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}'},
    "a file to skip": {"settings.yaml": SETTINGS, "other.yaml": "# +argocd:skip-file-rendering\nkind: [\n"},
    "another namespace": {"settings.yaml": {**SETTINGS, "metadata": {"name": "settings", "namespace": "default"}}},
}  # fmt: skip


@pytest.mark.parametrize("files", BROKEN.values(), ids=BROKEN.keys())
def test_files_of_a_directory(story: Story, files: dict[str, Any]) -> None:
    story.push(files)
    story.deliver()
    story.sync()
    story.check()
