"""Helm chart rendering with both engines: all Helm options of an Application and the resulting manifests."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from argosy.errors import RenderError
from argosy.gitops.application import HelmOptions, HelmParameter
from argosy.gitops.render import helm
from argosy.kube.objects import key_of
from support import helm_charts
from support.file_trees import TextTree
from support.helm_charts import needs_helm
from support.helm_engines import (
    APP,
    CHART,
    SHOWN,
    a_chart,
    both_engines,
    library_first,
    needs_both,
    needs_one,
    program_first,
    render,
    the_engine,
)

RELEASE = """apiVersion: v1
kind: ConfigMap
metadata: {name: about}
data:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  service: {{ .Release.Service }}
  install: {{ .Release.IsInstall | quote }}
  kube: {{ .Capabilities.KubeVersion.Version }}
  gateways: {{ .Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1" | quote }}
  found: {{ lookup "v1" "Secret" "shop" "x" | toJson | quote }}
  host: {{ getHostByName "example.com" | quote }}
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.shop.example.com}
"""


def config(name: str, extra: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{extra}"


def hook(name: str, events: str, kind: str = "Job") -> str:
    annotations = f'{{"helm.sh/hook": "{events}"}}'
    return f"apiVersion: batch/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations: {annotations}\n"


def read_rendered_values(manifests: list[dict[str, Any]]) -> Any:
    return json.loads(manifests[0]["data"]["values"])


def names(manifests: list[dict[str, Any]]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


@both_engines
def test_release_name_and_namespace_default_to_the_application(engine: str) -> None:
    (about,) = render(engine, a_chart({"templates/a.yaml": RELEASE}))
    assert about["data"] == {
        "name": "web",
        "namespace": "shop",
        "service": "Helm",
        "install": "true",
        "kube": "v1.32.0",
        "gateways": "false",
        "found": "{}",
        "host": "",
    }


@program_first
def test_helm_options_override_name_namespace_and_capabilities(engine: str) -> None:
    options = HelmOptions(
        release_name="till", namespace="cellar", kube_version="v1.29.3+k3s1",
        api_versions=("gateway.networking.k8s.io/v1",), version="v3",
    )  # fmt: skip
    (about,) = render(engine, a_chart({"templates/a.yaml": RELEASE}), options, api_versions=("x/v1",))
    data = about["data"]
    assert (data["name"], data["namespace"], data["kube"], data["gateways"]) == ("till", "cellar", "v1.29.3", "true")


@program_first
def test_value_precedence_is_parameters_values_value_files_chart(engine: str) -> None:
    files = {"values.yaml": "a: chart\nb: chart\nc: chart\nd: chart\nmap: {x: 1, z: 2}\n",
             "more.yaml": "b: file\nc: file\nd: file\nmap: {z: 3}\n", "templates/a.yaml": SHOWN}  # fmt: skip
    options = HelmOptions(
        value_files=("more.yaml",), values="c: inline\nd: inline\n", parameters=(HelmParameter("d", "parameter"),)
    )
    values = read_rendered_values(render(engine, a_chart(files), options))
    assert values == {"a": "chart", "b": "file", "c": "inline", "d": "parameter", "map": {"x": 1, "z": 3}}


@library_first
def test_values_object_replaces_values_even_when_empty(engine: str) -> None:
    tree = a_chart({"templates/a.yaml": SHOWN})
    assert read_rendered_values(render(engine, tree, HelmOptions(values="a: 1", values_object={"b": {"c": [1]}}))) == {
        "b": {"c": [1]}
    }
    assert read_rendered_values(render(engine, tree, HelmOptions(values="a: 1", values_object={}))) == {}


@program_first
def test_null_value_removes_chart_default(engine: str) -> None:
    tree = a_chart({"values.yaml": "a: 1\nmap: {x: 1, z: 2}\n", "templates/a.yaml": SHOWN})
    assert read_rendered_values(render(engine, tree, HelmOptions(values="a: null\nmap: {x: null}"))) == {
        "map": {"z": 2}
    }


@program_first
def test_parameters_are_parsed_like_helm_set(engine: str) -> None:
    options = HelmOptions(
        values="list: [{name: a, size: 1}, {name: b}]\nkept: {x: 1}",
        parameters=(
            HelmParameter("number", "7"),
            HelmParameter("flag", "true"),
            HelmParameter("nothing", "null"),
            HelmParameter("text", "7", True),
            HelmParameter("commas", "a,b,c"),
            HelmParameter("escaped", "a\\,b"),
            HelmParameter("braces", "{x,y}"),
            HelmParameter("deep.er", "1.5"),
            HelmParameter("list[0].size", "2"),
            HelmParameter("new[1]", "z"),
            HelmParameter("with\\.dot", "d"),
            HelmParameter("kept.y", "2"),
            HelmParameter("app", "$NAME-1"),
            HelmParameter("twice", "a"),
            HelmParameter("twice", "b"),
            HelmParameter("equal", "a=b"),
        ),
    )
    tree = a_chart({"templates/a.yaml": SHOWN})
    values = read_rendered_values(render(engine, tree, options, substitute=lambda text: text.replace("$NAME", "web")))
    assert values == {
        "number": 7, "nothing": None, "flag": True, "text": "7", "commas": "a,b,c", "escaped": "a,b",
        "braces": ["x", "y"], "deep": {"er": "1.5"},
        "list": [{"name": "a", "size": 2}, {"name": "b"}], "new": [None, "z"],
        "with.dot": "d", "kept": {"x": 1, "y": 2}, "app": "web-1", "twice": "b", "equal": "a=b",
    }  # fmt: skip


@program_first
def test_file_parameter_has_the_content_of_the_file(engine: str) -> None:
    from argosy.gitops.application import HelmFileParameter

    tree = a_chart({"templates/a.yaml": SHOWN, "conf/a.ini": "x=1,2\ny={3}\n", "/shared.txt": "s"})
    options = HelmOptions(
        file_parameters=(HelmFileParameter("a.ini", "conf/a.ini"), HelmFileParameter("b", "/shared.txt"))
    )
    assert read_rendered_values(render(engine, tree, options)) == {"a": {"ini": "x=1,2\ny={3}\n"}, "b": "s"}


@program_first
def test_crds_come_first_unless_skip_crds_is_set(engine: str) -> None:
    tree = a_chart({"crds/cart.yaml": CRD, "templates/a.yaml": config("a")})
    assert names(render(engine, tree)) == ["carts.shop.example.com", "a"]
    assert names(render(engine, tree, HelmOptions(skip_crds=True))) == ["a"]


@program_first
def test_hooks_keep_annotations_and_come_last(engine: str) -> None:
    tree = a_chart(
        {
            "templates/a.yaml": hook("before", "pre-install,pre-upgrade"),
            "templates/b.yaml": config("plain"),
            "templates/c.yaml": hook("check", "test"),
            "templates/d.yaml": hook("odd", "no-such-event"),
        }
    )
    manifests = render(engine, tree)
    assert names(manifests) == ["plain", "before", "check"]
    assert manifests[1]["metadata"]["annotations"] == {"helm.sh/hook": "pre-install,pre-upgrade"}
    assert names(render(engine, tree, HelmOptions(skip_tests=True))) == ["plain", "before"]


@pytest.mark.tier("all")
@program_first
def test_notes_partials_and_empty_documents_render_no_manifests(engine: str) -> None:
    tree = a_chart(
        {
            "templates/NOTES.txt": "Thanks, {{ .Release.Name }}!\n",
            "templates/_parts.tpl": '{{ define "n" }}part{{ end }}not: shown\n',
            "templates/a.yaml": "---\n# nothing\n---\n{{ if false }}x{{ end }}\n---\n" + config('{{ include "n" . }}'),
        }
    )
    assert names(render(engine, tree)) == ["part"]


@program_first
def test_subchart_is_rendered_if_its_condition_or_tag_is_true(engine: str) -> None:
    chart = CHART + "dependencies:\n- {name: cart, version: 1.0.0, condition: cart.enabled}\n"
    chart += "- {name: cart, version: 1.0.0, alias: basket, tags: [more]}\n"
    part = "apiVersion: v2\nname: cart\nversion: 1.0.0\n"
    template = config(
        "{{ .Chart.Name }}", "data: {size: {{ .Values.size | quote }}, all: {{ .Values.global.x | quote }}}\n"
    )
    tree = a_chart(
        {
            "Chart.yaml": chart, "values.yaml": "global: {x: g}\ncart: {enabled: false}\ntags: {more: false}\n",
            "charts/cart/Chart.yaml": part, "charts/cart/values.yaml": "size: 1\n",
            "charts/cart/templates/a.yaml": template, "charts/cart/crds/c.yaml": CRD, "templates/a.yaml": config("own"),
        }
    )  # fmt: skip
    assert names(render(engine, tree)) == ["own"]
    on = render(engine, tree, HelmOptions(values="cart: {enabled: true, size: 5}"))
    assert names(on) == ["carts.shop.example.com", "cart", "own"]
    assert on[1]["data"] == {"size": "5", "all": "g"}
    more = HelmOptions(values="tags: {more: true}")
    rendered_chart = helm.template(tree, "charts/shop", app=APP, options=more, engine=the_engine(engine))
    assert names(rendered_chart.manifests)[-2:] == ["basket", "own"]
    origin = rendered_chart.origins.find(key_of(rendered_chart.manifests[-2]), "/data")
    assert origin and origin.file == "charts/shop/charts/cart/templates/a.yaml"


@program_first
def test_file_dependency_in_the_same_repository_is_rendered(engine: str) -> None:
    chart = CHART + "dependencies:\n- {name: lib, version: 1.x.x, repository: 'file://../../libs/lib'}\n"
    tree = a_chart(
        {
            "Chart.yaml": chart,
            "templates/a.yaml": config('{{ include "lib.name" . }}'),
            "/libs/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.2.0\n",
            "/libs/lib/templates/_n.tpl": '{{ define "lib.name" }}from-lib{{ end }}',
            "/libs/lib/templates/b.yaml": config("{{ .Chart.Name }}"),
        },
        {"/libs/lib/templates/c.yaml": "../../../c.yaml", "/c.yaml": "libs/c.yaml", "/libs/c.yaml": "d.yaml"},
    )
    tree.files["libs/d.yaml"] = config("linked").encode()
    assert names(render(engine, tree)) == ["lib", "linked", "from-lib"]
    rendered_chart = helm.template(tree, "charts/shop", app=APP, engine=the_engine(engine))
    origin = rendered_chart.origins.find(key_of(rendered_chart.manifests[0]), "/metadata/name")
    assert origin and origin.file == "libs/lib/templates/b.yaml"
    tree.files["libs/lib/templates/b.yaml"] = b"x: {{ .Values.a.b }}"
    with pytest.raises(RenderError, match=r"^libs/lib/templates/b.yaml:1: at"):
        render(engine, tree)
    tree.files["charts/shop/Chart.yaml"] = chart.replace("libs/lib", "../../libs/lib").encode()
    with pytest.raises(RenderError, match="leads out of the repository"):
        render(engine, tree)


@pytest.mark.tier("all")
@program_first
def test_chart_at_the_repository_root_is_rendered(engine: str) -> None:
    tree = TextTree({"Chart.yaml": CHART, "templates/a.yaml": SHOWN, "values.yaml": "a: 1\n", "prod.yaml": "a: 2\n"})
    assert read_rendered_values(render(engine, tree, HelmOptions(value_files=("prod.yaml",)), path="")) == {"a": 2}


@pytest.mark.tier("all")
@program_first
def test_symlinks_within_the_repository_are_followed(engine: str) -> None:
    tree = a_chart(
        {
            "/shared/a.yaml": config("shared"),
            "/lib/x.txt": "x",
            "templates/b.yaml": config('{{ .Files.Get "lib/x.txt" }}'),
        },
        {"templates/a.yaml": "../../../shared/a.yaml", "lib": "../../lib", "/app": "charts/shop"},
    )
    assert names(render(engine, tree)) == ["shared", "x"]
    assert names(render(engine, tree, path="app")) == ["shared", "x"]


@pytest.mark.tier("all")
@program_first
def test_values_schema_is_enforced_unless_skipped(engine: str) -> None:
    schema = '{"type": "object", "properties": {"size": {"type": "integer"}}}'
    tree = a_chart({"values.schema.json": schema, "templates/a.yaml": SHOWN})
    with pytest.raises(RenderError, match=r"size.*integer"):
        render(engine, tree, HelmOptions(values="size: big"))
    assert read_rendered_values(render(engine, tree, HelmOptions(values="size: big", skip_schema_validation=True))) == {
        "size": "big"
    }


@pytest.mark.tier("all")
@program_first
def test_inflate_renders_chart_for_kustomize(engine: str) -> None:
    tree = a_chart(
        {
            "values.yaml": "a: 1\nb: 1\n", "/over.yaml": "a: 2\n", "crds/c.yaml": CRD, "templates/a.yaml": SHOWN,
            "templates/b.yaml": hook("before", "pre-install"), "templates/c.yaml": RELEASE,
        }
    )  # fmt: skip
    chosen = the_engine(engine)
    manifests = helm.inflate(tree, "charts/shop", values=["over.yaml", {"b": 3}], engine=chosen, kube_version="1.30.0")
    assert names(manifests) == ["shown", "about", "before"]
    assert read_rendered_values(manifests) == {"a": 2, "b": 3}
    assert (manifests[1]["data"]["name"], manifests[1]["data"]["kube"]) == ("release-name", "v1.30.0")
    documents = helm.inflate(
        tree, "charts/shop", release_name="r", namespace="attic", include_crds=True, skip_hooks=True, engine=chosen
    )
    assert names(documents) == ["carts.shop.example.com", "shown", "about"]
    assert (documents[2]["data"]["name"], documents[2]["data"]["namespace"]) == ("r", "attic")


@program_first
def test_manifests_are_sorted_in_helm_install_order(engine: str) -> None:
    kinds = ["Zebra", "Service", "Deployment", "Ape", "Namespace", "Secret", "APIService", "Ingress", "ClusterRole"]
    documents = [f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: a{index}}}\n" for index, kind in enumerate(kinds)]
    manifests = render(engine, a_chart({"templates/z.yaml": config("c"), "templates/a.yaml": "---\n".join(documents)}))
    assert [manifest["kind"] for manifest in manifests] == [
        "Namespace", "Secret", "ConfigMap", "ClusterRole", "Service", "Deployment", "Ingress", "APIService", "Ape",
        "Zebra",
    ]  # fmt: skip


@needs_one
def test_origins_name_template_and_line_of_each_field() -> None:
    text = config("a", "  labels: {x: y}\ndata:\n  size: 1\n  {{- if true }}\n  color: red\n  {{- end }}\n")
    tree = a_chart({"templates/a.yaml": text + "---\n" + config("b", "data:\n  height: 2\n")})
    rendered_chart = helm.template(tree, "charts/shop", app=APP)
    first, second = map(key_of, rendered_chart.manifests)
    origins = {
        pointer: rendered_chart.origins.find(first, pointer) for pointer in ("/data/size", "/data/color", "/data", "")
    }
    assert {origin.file for origin in origins.values() if origin} == {"charts/shop/templates/a.yaml"}
    assert [origin.line for origin in origins.values() if origin] == [7, 9, 0, 0]
    assert (origin := rendered_chart.origins.find(second, "/data/height")) and origin.line == 17
    assert rendered_chart.origins.find(first._replace(name="other"), "/data") is None


@needs_helm
@needs_both
@pytest.mark.parametrize(
    "files",
    [
        pytest.param([], marks=pytest.mark.tier("all")),
        pytest.param(["values-global.yaml"], marks=pytest.mark.tier("all")),
        ["values-global.yaml", "values-notebooks-validation.yaml"],
    ],
)
def test_platform_chart_matches_plain_helm_output_with_both_engines(files: list[str]) -> None:
    folder = helm_charts.PLATFORM
    tree = TextTree(
        {f"chart/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    )
    url = HelmParameter("global.git.repoURL", "https://git.example.com/team/platform.git")
    options = HelmOptions(value_files=tuple(files), parameters=(url,))
    words = [word for file in files for word in ("-f", folder / file)]
    done = helm_charts.helm(
        "template", "web", folder, "-n", "shop", "--kube-version", "1.32.0", "--include-crds",
        "--set", f"{url.name}={url.value}", *words,
    )  # fmt: skip
    plain = [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
    assert plain
    assert render("program", tree, options, path="chart") == plain
    assert render("library", tree, options, path="chart") == plain
