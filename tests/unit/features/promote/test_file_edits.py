"""File edits of a promotion: an existing value is changed; otherwise an entry is added in the style of the file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.promote.classified_manifest_fields import EnvironmentContents, read_contents
from argosy.features.promote.file_edits import OverlayWriter, find_overlay_file
from argosy.features.promote.promotion_changes import compute_changes
from argosy.gitops.application import Application, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import render
from support.file_trees import TextTree

BASE = {
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - {name: sidecar, image: example/sidecar:1}
        - {name: web, image: example/web:1}
""",
}
HEAD = "namePrefix: {0}-\nresources:\n- ../base\n"
JSON_PATCH = """\
patches:
- target: {kind: Deployment, name: web}
  patch: |-
    - op: replace
      path: /spec/replicas
      value: 3
"""


def environment(files: Mapping[str, str], name: str) -> EnvironmentContents:
    done = render(Checkout(TextTree(files), "c"), Application(name=name), read_source({"path": name}))
    overlay = find_overlay_file(name, files.get)
    assert overlay is not None
    return read_contents(done.manifests, overlay.decoration)


def promoted(source: str, target: str, more: Mapping[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """Return the diff of the target kustomization and all written files; assert that versions are then equal."""
    files = {
        **BASE,
        "dev/kustomization.yaml": HEAD.format("dev") + source,
        "prod/kustomization.yaml": HEAD.format("prod") + target,
        **(more or {}),
    }
    moved = compute_changes(environment(files, "dev"), environment(files, "prod"), None)
    written = OverlayWriter("prod", files.get, find_overlay_file("dev", files.get)).write(moved.moves)
    after = {**files, **written}
    assert not compute_changes(environment(after, "dev"), environment(after, "prod"), None).moves
    lines = difflib.unified_diff(
        files["prod/kustomization.yaml"].splitlines(), after["prod/kustomization.yaml"].splitlines(), n=0
    )
    return "\n".join(line for line in lines if line[:3] not in ("---", "+++", "@@ ") and line[:2] != "@@"), written


IMAGES = "images:\n- name: example/web\n  newTag: '2'\n"


def test_images_entry_gets_the_new_tag() -> None:
    target = "images:\n# pinned by ann\n- name: example/web\n  newTag: v0 # old\n"
    assert promoted(IMAGES, target)[0] == '-  newTag: v0 # old\n+  newTag: "2" # old'


def test_tag_is_replaced_by_a_digest() -> None:
    digest = f"images:\n- name: example/web\n  digest: sha256:{'ab' * 32}\n"
    changed, _ = promoted(digest, "images:\n- name: example/web\n  newTag: v0\n")
    assert changed.splitlines() == ["-  newTag: v0", f"+  digest: sha256:{'ab' * 32}"]


def test_target_gets_an_images_entry_if_the_source_has_one() -> None:
    assert promoted(IMAGES, "")[0] == '+images:\n+- name: example/web\n+  newTag: "2"'


def test_registry_of_the_target_environment_is_kept() -> None:
    target = "images:\n- name: example/web\n  newName: registry.prod.example/web\n  newTag: '1'\n"
    changed, written = promoted(IMAGES, target)
    assert "registry.prod.example/web" in written["prod/kustomization.yaml"]
    assert changed.splitlines() == ["-  newTag: '1'", "+  newTag: '2'"]


SETS = """\
patches:
- target: {kind: Deployment, name: web}
  patch: |-
    - op: replace
      path: /spec/template/spec/containers/1/image
      value: example/web:2
"""


def test_operation_is_appended_to_an_existing_patch() -> None:
    changed, _ = promoted(SETS, JSON_PATCH)
    assert changed.splitlines() == [
        "+    - op: replace",
        "+      path: /spec/template/spec/containers/1/image",
        "+      value: example/web:2",
    ]


def test_existing_patch_operation_is_changed() -> None:
    assert promoted(SETS, SETS.replace(":2", ":0"))[0].splitlines() == [
        "-      value: example/web:0",
        "+      value: example/web:2",
    ]


def test_patch_is_added_if_there_is_none() -> None:
    changed, _ = promoted(SETS, "")
    assert changed.startswith("+patches:\n+- target:\n+    kind: Deployment\n+    name: web\n+  patch: |-\n")


MERGE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: web
        image: example/web:0 # ours
"""


@pytest.mark.parametrize("entry", ["patches: [{path: merge.yaml}]\n", "patchesStrategicMerge: [merge.yaml]\n"])
def test_patch_in_a_separate_file_is_changed_there(entry: str) -> None:
    changed, written = promoted(SETS, entry, {"prod/merge.yaml": MERGE})
    assert not changed and written == {"prod/merge.yaml": MERGE.replace(":0", ":2")}


def test_resource_of_the_overlay_is_changed_in_its_own_file() -> None:
    own = BASE["base/web.yaml"].replace("name: web}", "name: solo}", 1)
    files = {
        "dev/kustomization.yaml": "resources: [web.yaml]\n", "dev/web.yaml": own.replace("web:1", "web:9"),
        "prod/kustomization.yaml": "resources: [web.yaml]\n", "prod/web.yaml": own,
    }  # fmt: skip
    moved = compute_changes(environment(files, "dev"), environment(files, "prod"))
    written = OverlayWriter("prod", files.get).write(moved.moves)
    assert written == {"prod/web.yaml": own.replace("example/web:1", '"example/web:9"')}


def test_config_map_generator_literal_is_changed() -> None:
    def generated(value: str) -> dict[str, str]:
        options = "generatorOptions: {disableNameSuffixHash: true}\n"
        text = f"{options}configMapGenerator:\n- name: c\n  literals:\n  - limit={value}\n"
        return {"dev/kustomization.yaml": text, "prod/kustomization.yaml": text}

    old, new = generated("1"), generated("2")
    files = {**new, "prod/kustomization.yaml": old["prod/kustomization.yaml"]}
    moved = compute_changes(environment(files, "dev"), environment(files, "prod"), environment(old, "dev"))
    written: Any = OverlayWriter("prod", files.get).write(moved.moves)
    assert "- limit=2\n" in written["prod/kustomization.yaml"]


def test_patch_uses_the_object_name_of_the_target() -> None:
    own = BASE["base/web.yaml"].replace("name: web}", "name: shop}", 1)
    more = {
        "other/kustomization.yaml": "resources: [web.yaml]\n", "other/web.yaml": own,
        "prod/kustomization.yaml": "namePrefix: prod-\nresources: [../other]\n",
    }  # fmt: skip
    _, written = promoted(SETS, "", more)
    assert "    name: shop\n" in written["prod/kustomization.yaml"]


def test_only_the_overlay_of_the_target_is_written() -> None:
    _, written = promoted(SETS, "")
    assert set(written) == {"prod/kustomization.yaml"}


def test_folder_without_a_kustomization_is_rejected_with_advice() -> None:
    with pytest.raises(UserError, match="argosy edits only these; change the values by hand"):
        OverlayWriter("prod", {}.get)
