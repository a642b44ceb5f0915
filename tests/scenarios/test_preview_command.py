"""`argosy preview`: compares two revisions of a repository and reports the impact of the change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.main import main
from support.helm_engines import needs_one
from support.preview_repository import Repo, application, config, deployment, two_environments


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repo:
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    new_repo = Repo(tmp_path / "models", capsys)
    new_repo.begin(two_environments())
    monkeypatch.chdir(new_repo.root)
    return new_repo


# -- compared revisions --


def test_uncommitted_edit_is_shown_with_its_file_and_line(repo: Repo) -> None:
    repo.edit(
        "overlays/dev/kustomization.yaml",
        "resources:",
        "images: [{name: registry.example/front, newTag: v2}]\nresources:",
    )
    result = repo.preview()
    assert result.code == EXIT_OK
    assert (
        result.impact
        == "1 app changes · restarts 1 Deployment (rolling) · CPU ±0 · GPU ±0 · no deletions · production untouched"
    )
    assert "registry.example/front:v1 → registry.example/front:v2   overlays/dev/kustomization.yaml:3" in result.out
    assert "1 of 2 rendered" in result.out


def test_base_change_affects_all_overlays_and_names_production(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "replicas: 2", "replicas: 3")
    result = repo.preview()
    assert "2 apps change" in result.impact
    assert "CPU +1 · memory +2Gi · GPU +2" in result.impact
    assert "production touched (fraud-prod)" in result.impact
    assert "replicas 2 → 3" in result.out


@pytest.mark.tier("all")
def test_three_dots_compare_with_the_merge_base_and_two_dots_with_main(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "feature")
    repo.edit("base/config.yaml", "a: '1'", "a: '2'")
    repo.commit("Change a setting")
    repo.git("switch", "-q", "main")
    repo.edit("base/deployment.yaml", "front:v1", "front:v9")
    repo.commit("Go on without the branch")
    three, two = repo.preview("main...feature"), repo.preview("main..feature")
    assert "no restarts" in three.impact and "v9" not in three.out
    assert "restarts 2 Deployments" in two.impact and "front:v9 → registry.example/front:v1" in two.out
    repo.git("switch", "-q", "feature")
    assert "v9" not in repo.preview().out  # the merge target is detected automatically


def test_new_files_are_changes_and_ignored_files_are_not(repo: Repo) -> None:
    repo.write({".gitignore": "*.local.yaml\n"})
    repo.write({"plain/a.yaml": config(), "apps/plain.yaml": application("plain", "plain")})
    repo.commit("Add plain files")
    repo.write({"plain/secret.local.yaml": config(name="ignored"), "plain/b.yaml": config(name="fresh")})
    result = repo.preview()
    assert "+ ConfigMap/fresh" in result.out and "ignored" not in result.out


def test_only_applications_with_changed_files_are_rendered(repo: Repo) -> None:
    for number in range(5):
        repo.write(
            {f"apps/{number}.yaml": application(f"app-{number}", f"plain/{number}"), f"plain/{number}/a.yaml": config()}
        )
    repo.commit("Add five")
    repo.write({"plain/3/a.yaml": config("2")})
    assert "1 of 7 rendered" in repo.preview().out


@pytest.mark.tier("all")
def test_names_select_applications_and_an_unknown_name_gets_a_suggestion(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    result = repo.preview("fraud-dev")
    assert "1 app changes" in result.impact and "\nfraud-prod" not in result.out
    assert "1 app changes" in repo.preview("HEAD", "-o", "text", "fraud-prod").impact
    wrong = repo.preview("fraud-dew")
    assert wrong.code == EXIT_ERROR and "did you mean fraud-dev?" in wrong.err


@pytest.mark.tier("all")
def test_preview_in_a_subfolder_covers_the_whole_repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    monkeypatch.chdir(repo.root / "overlays" / "prod")
    assert "2 apps change" in repo.preview().impact


def test_no_change_is_reported_with_a_next_command(repo: Repo) -> None:
    result = repo.preview()
    assert (result.code, result.impact) == (EXIT_OK, "nothing changes")
    assert "next: argosy preview HEAD~1" in result.err


@pytest.mark.tier("all")
def test_application_at_a_tag_changes_only_when_its_tag_changes(repo: Repo) -> None:
    repo.git("remote", "add", "origin", "https://git.example.com/acme/models.git")
    repo.git("tag", "v1")
    repo.edit("apps/prod.yaml", "targetRevision: main", "targetRevision: v1")
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    repo.commit("Change the image")
    repo.git("tag", "v2")
    repo.edit("base/deployment.yaml", "replicas: 2", "replicas: 1")
    assert "production untouched" in repo.preview("HEAD").impact
    repo.git("checkout", "-q", ".")
    repo.edit("apps/prod.yaml", "targetRevision: v1", "targetRevision: v2")
    result = repo.preview("HEAD")
    assert "front:v1 → registry.example/front:v2" in result.out and "production touched" in result.impact


def test_ci_target_branch_is_the_base(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.git("branch", "release")
    repo.edit("base/config.yaml", "a: '1'", "a: '2'")
    repo.commit("Change a setting")
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert repo.preview().out.startswith("release…working tree")


# -- impact of a change --


def test_immutable_field_change_exits_1(repo: Repo) -> None:
    repo.write({"base/deployment.yaml": deployment(label="other")})
    result = repo.preview()
    assert result.code == EXIT_NEGATIVE
    assert "2 objects cannot be updated in place, so a sync fails" in result.impact
    assert "spec.selector cannot change on an existing object" in result.out
    assert "next: argosy explain AGY111" in result.err


def test_objects_removed_from_git_are_deleted_according_to_the_prune_setting(repo: Repo) -> None:
    repo.write({"base/kustomization.yaml": "resources: [deployment.yaml, config.yaml]\n"})
    result = repo.preview()
    assert "deletes 2 objects (2 with data)" in result.impact
    assert "is deleted by the next sync, with its data" in result.out  # dev has automated prune
    assert "is deleted by a sync with --prune, with its data" in result.out


@pytest.mark.tier("all")
def test_removed_application_deletes_its_objects_only_with_a_finalizer(repo: Repo) -> None:
    (repo.root / "apps/dev.yaml").unlink()
    result = repo.preview()
    assert "no deletions" in result.impact and "its Application has no finalizer" in result.out
    repo.git("checkout", "-q", ".")
    name = "metadata: {name: fraud-dev, namespace: argocd"
    repo.edit("apps/dev.yaml", name, f"{name}, finalizers: [resources-finalizer.argocd.argoproj.io]")
    repo.commit("Add a finalizer")
    (repo.root / "apps/dev.yaml").unlink()
    preview_result = repo.preview("HEAD")
    assert "deletes 3 objects (1 with data)" in preview_result.impact and "removed from Git" in preview_result.out


def test_new_application_adds_all_its_resource_requests(repo: Repo) -> None:
    repo.write({"apps/test.yaml": application("fraud-test", "overlays/test")})
    repo.write({"overlays/test/kustomization.yaml": "namespace: test\nresources: [../../base]\n"})
    result = repo.preview()
    assert "CPU +1 · memory +2Gi · GPU +2" in result.impact and "is new" in result.out


@pytest.mark.tier("all")
def test_config_map_change_warns_that_pods_keep_old_values_until_restart(repo: Repo) -> None:
    repo.edit("base/config.yaml", "a: '1'", "a: '2'")
    result = repo.preview()
    assert "no restarts" in result.impact
    assert (
        "ConfigMap/dev-settings" in result.out
        and "Deployment/dev-front keeps the old values until it restarts" in result.out
    )


@pytest.mark.tier("all")
def test_generated_config_map_change_restarts_its_deployment_without_deletion(repo: Repo) -> None:
    generator = "resources: [deployment.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=1]}]\n"
    repo.write({"base/kustomization.yaml": generator})
    repo.commit("Generate the settings")
    repo.edit("base/kustomization.yaml", "a=1", "a=2")
    result = repo.preview("HEAD", "fraud-dev")
    assert "restarts 1 Deployment (rolling)" in result.impact and "no deletions" in result.impact
    assert "fraud-dev   dev           auto   0   2   0" in result.out


@pytest.mark.tier("all")
def test_child_applications_are_found_through_kustomize(repo: Repo) -> None:
    repo.write({"apps/kustomization.yaml": "namePrefix: eu-\nresources: [dev.yaml, prod.yaml]\n"})
    repo.write({"root.yaml": application("root", "apps")})
    repo.commit("Add a root")
    repo.edit("overlays/dev/kustomization.yaml", "resources:", "replicas: [{name: front, count: 5}]\nresources:")
    result = repo.preview("HEAD")
    assert "eu-fraud-dev" in result.out and "replicas 2 → 5" in result.out
    repo.edit("apps/dev.yaml", "overlays/dev", "overlays/prod")
    preview_result = repo.preview("HEAD")
    assert (
        ".spec.source.path   overlays/dev → overlays/prod" in preview_result.out
        and "eu-fraud-dev" in preview_result.out
    )


@pytest.mark.tier("all")
def test_kustomization_without_application_is_shown_as_a_folder(repo: Repo) -> None:
    repo.write({"other/kustomization.yaml": "resources: [a.yaml]\n", "other/a.yaml": config()})
    repo.commit("Add another")
    repo.edit("other/a.yaml", "'1'", "'2'")
    assert repo.preview("HEAD").impact.startswith("1 folder changes")


@pytest.mark.tier("all")
def test_application_set_that_deletes_applications_is_reported(repo: Repo) -> None:
    sets = (
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: teams, namespace: argocd}\nspec:\n"
        "  generators: [{git: {repoURL: 'https://git.example.com/acme/models.git', directories: [{path: teams/*}]}}]\n"
        "  template:\n    metadata: {name: 'team-{{path.basename}}'}\n    spec: {}\n"
    )
    repo.git("remote", "add", "origin", "https://git.example.com/acme/models.git")
    repo.write({"teams.yaml": sets, "teams/blue/a.yaml": config(), "teams/red/a.yaml": config()})
    repo.commit("Add teams")
    (repo.root / "teams/red/a.yaml").unlink()
    result = repo.preview("HEAD")
    assert "deletes 1 Application of ApplicationSets" in result.impact
    assert "ApplicationSet/teams would delete 1 Application (team-red) and everything they deployed" in result.err


# -- output formats --


def test_markdown_comment_has_marker_impact_and_diff(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    text = repo.preview("-o", "md").out
    assert text.startswith(
        "<!-- argosy-preview -->\n### argosy preview · main…working tree\n\n**Impact**: 2 apps change"
    )
    assert "| fraud-dev (dev) | 0 | 1 | 0 | auto |" in text
    assert "```diff" in text and "-        image: registry.example/front:v1" in text


@pytest.mark.tier("all")
def test_markdown_comment_stays_within_65536_characters(repo: Repo) -> None:
    repo.write({"plain/a.yaml": "\n---\n".join(config(f"{n}", f"c-{n}") for n in range(800))})
    repo.write({"apps/plain.yaml": application("plain", "plain")})
    text = repo.preview("-o", "md").out
    assert len(text) <= 65_536 and "objects are not shown: the comment would be too long" in text


def test_manifest_text_is_escaped_in_html_and_markdown(repo: Repo) -> None:
    evil = "``` </code></details><script>alert(1)</script> @everyone"
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    repo.write({"base/config.yaml": f"{head}data:\n  a: |\n    ```\n    {evil}\n"})
    page, comment = repo.preview("-o", "html").out, repo.preview("-o", "md").out
    assert "<script" not in page and "&lt;script&gt;" in page and "default-src &#x27;none&#x27;" in page
    assert "\n````diff\n" in comment


@pytest.mark.tier("all")
def test_object_names_cannot_inject_mentions_or_lines_into_the_comment(repo: Repo) -> None:
    named = '"a @boss\\n\\n# Heading\\n\\n![x](https://tracker.example/x.png)"'
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {named}}}\ndata: {{a: b}}\n"
    repo.write({"plain/a.yaml": head, "apps/plain.yaml": application("plain", "plain")})
    comment = repo.preview("-o", "md").out
    text_lines = [line for line in comment.splitlines() if not line.startswith(("+", "-"))]
    assert "tracker.example" in comment and not any(line.startswith(("# H", "![")) for line in text_lines)
    assert not any("@boss" in line for line in text_lines)


def test_secret_values_are_masked_in_every_output_format(repo: Repo) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {token: %s}\n"
    repo.write({"plain/a.yaml": secret % "old-hunter2", "apps/plain.yaml": application("plain", "plain")})
    repo.commit("Add a secret")
    repo.write({"plain/a.yaml": secret % "new-hunter2"})
    for words in ((), ("--diff",), ("-o", "md"), ("-o", "html"), ("-o", "json"), ("-o", "yaml")):
        result = repo.preview("HEAD", *words)
        assert "hunter2" not in result.out + result.err and "++++++++" in result.out


def test_json_output_has_verdict_resource_amounts_and_changed_fields(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "cpu: 500m", "cpu: '1'")
    answer = repo.data()
    assert (answer["kind"], answer["impact"]["cpu"], answer["impact"]["verdict"]) == ("Preview", "2", "fine")
    field = answer["items"][0]["objects"][0]["fields"][0]
    assert (field["before"], field["after"], field["writtenIn"]) == ("500m", "1", "base/deployment.yaml:14")


# -- errors and unusual repositories --


@pytest.mark.tier("all")
def test_folder_without_git_and_repository_without_commits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = Repo(tmp_path / "empty", capsys)
    monkeypatch.chdir(empty.root)
    result = empty.preview()
    assert result.code == EXIT_ERROR and "not in a Git repository" in result.err
    empty.git("init", "-q", "-b", "main")
    preview_result = empty.preview()
    assert (
        preview_result.code == EXIT_ERROR
        and "has no commit yet" in preview_result.err
        and "commit first" in preview_result.err
    )


@pytest.mark.tier("all")
def test_detached_head_is_compared_like_a_branch(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    repo.commit("Change the image")
    repo.git("switch", "-q", "--detach")
    assert "2 apps change" in repo.preview("HEAD~1").impact


@pytest.mark.tier("all")
def test_shallow_clone_without_merge_base_suggests_git_fetch_unshallow(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.git("switch", "-q", "-c", "feature")
    for number in range(3):
        repo.edit("base/config.yaml", "kind:", f"# {number}\nkind:")
        repo.commit("Change")
    repo.git("switch", "-q", "main")
    repo.commit("Go on")
    clone = Repo(tmp_path / "clone", capsys)
    clone.git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{repo.root}", ".")
    clone.git("switch", "-q", "feature")
    monkeypatch.chdir(clone.root)
    result = clone.preview()
    assert (
        result.code == EXIT_ERROR
        and "no common commit in this clone" in result.err
        and "git fetch --unshallow" in result.err
    )
    assert clone.preview("origin/main..").code == EXIT_OK
    assert main(["check"]) in (EXIT_OK, EXIT_NEGATIVE)  # rules that need Git history report nothing


def test_render_error_on_one_side_is_reported_and_others_are_previewed(repo: Repo) -> None:
    repo.edit("overlays/dev/kustomization.yaml", "../../base", "../../bass")
    repo.edit("overlays/prod/kustomization.yaml", "resources:", "replicas: [{name: front, count: 9}]\nresources:")
    result = repo.preview()
    assert result.code == EXIT_NEGATIVE and "fraud-dev cannot be rendered" in result.impact
    assert "replicas 2 → 9" in result.out and "next: argosy check" in result.err
    repo.commit("Break it")
    repo.edit("overlays/dev/kustomization.yaml", "../../bass", "../../base")
    preview_result = repo.preview("HEAD")
    assert preview_result.code == EXIT_OK and "could not be rendered before, can be now" in preview_result.out


@pytest.mark.tier("all")
def test_renaming_a_folder_with_its_application_changes_nothing(repo: Repo) -> None:
    repo.git("mv", "overlays/dev", "overlays/development")
    repo.edit("apps/dev.yaml", "overlays/dev", "overlays/development")
    repo.git("mv", "apps/dev.yaml", "apps/development.yaml")
    assert repo.preview().impact == "nothing changes"


@pytest.mark.tier("all")
def test_binary_files_huge_files_and_odd_names_do_not_break_preview(repo: Repo) -> None:
    repo.write(
        {"base/model.bin": os.urandom(3 << 20), "base/ö ' \n.yaml": b"\xff\xfe\x00", "base/x.yaml": "a: [" * 4000}
    )
    repo.write({"base/big.yaml": config("x" * 200_000, "big")})
    repo.edit("base/kustomization.yaml", "claim.yaml", "claim.yaml, big.yaml")
    result = repo.preview()
    assert result.code == EXIT_OK and "+ ConfigMap/dev-big" in result.out
    assert len(repo.preview("-o", "md").out) <= 65_536


@pytest.mark.tier("all")
def test_submodule_content_is_ignored(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Repo(tmp_path / "other", capsys)
    other.begin({"a.yaml": config()})
    repo.git("submodule", "add", "-q", f"file://{other.root}", "vendor")
    repo.write({"apps/vendor.yaml": application("vendor", "vendor")})
    repo.commit("Add a submodule")
    repo.write({"vendor/a.yaml": config("2")})
    assert repo.preview("HEAD").impact == "nothing changes"


@pytest.mark.tier("all")
def test_git_worktree_and_symlinked_base_are_supported(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.symlink("base", repo.root / "linked")
    repo.write(
        {
            "overlays/link/kustomization.yaml": "resources: [../../linked]\n",
            "apps/link.yaml": application("link", "overlays/link"),
        }
    )
    repo.commit("Add a link")
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    tree = Repo(tmp_path / "tree", capsys)
    monkeypatch.chdir(tree.root)
    tree.edit("base/deployment.yaml", "front:v1", "front:v2")
    assert "3 apps change" in tree.preview().impact


@pytest.mark.tier("all")
def test_new_mtime_or_executable_bit_changes_nothing(repo: Repo) -> None:
    os.utime(repo.root / "base/deployment.yaml", (1, 1))
    (repo.root / "base/config.yaml").chmod(0o755)
    assert repo.preview().impact == "nothing changes"


@pytest.mark.tier("all")
def test_file_replaced_by_a_folder_and_the_reverse_are_compared(repo: Repo) -> None:
    repo.write({"plain/a/x.yaml": config(name="old"), "plain/b": "text"})
    recurse = application("plain", "plain").replace(
        "targetRevision: main", "targetRevision: main, directory: {recurse: true}"
    )
    repo.write({"apps/plain.yaml": recurse})
    repo.commit("Add plain files")
    (repo.root / "plain/a/x.yaml").unlink()
    (repo.root / "plain/a").rmdir()
    (repo.root / "plain/b").unlink()
    repo.write({"plain/a": "text", "plain/b/y.yaml": config(name="new")})
    result = repo.preview("HEAD")
    assert "+ ConfigMap/new" in result.out and "- ConfigMap/old" in result.out


def test_preview_writes_nothing_below_the_git_folder(repo: Repo) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    before = {path: path.stat().st_mtime_ns for path in (repo.root / ".git").rglob("*")}
    repo.preview()
    assert {path: path.stat().st_mtime_ns for path in (repo.root / ".git").rglob("*")} == before


@pytest.mark.tier("all")
def test_render_error_on_both_sides_does_not_fail_the_preview(repo: Repo) -> None:
    repo.edit("overlays/dev/kustomization.yaml", "../../base", "../../bass")
    repo.commit("Break it")
    repo.edit("overlays/dev/kustomization.yaml", "resources:", "# later\nresources:")
    result = repo.preview("HEAD")
    assert result.code == EXIT_OK and result.impact == "nothing changes"
    assert "fraud-dev: cannot be rendered on either side" in result.err


@pytest.mark.tier("all")
def test_applications_with_the_same_name_are_shown_with_their_files(repo: Repo) -> None:
    for folder in ("one", "two"):
        repo.write({f"{folder}/app.yaml": application("same", "manifests"), f"{folder}/manifests/a.yaml": config()})
    repo.commit("Add examples")
    for folder in ("one", "two"):
        repo.write({f"{folder}/manifests/a.yaml": config("2")})
    result = repo.preview("HEAD")
    assert "same (one/app.yaml)" in result.out and "same (two/app.yaml)" in result.out


@pytest.mark.tier("all")
@needs_one
def test_helm_chart_uses_value_files_from_elsewhere_in_the_repository(repo: Repo) -> None:
    chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
    template = config().replace("'1'", "{{ .Values.a | quote }}")
    source = application("chart", "charts/web").replace(
        "targetRevision: main", "targetRevision: main, helm: {valueFiles: [/values/dev.yaml]}"
    )
    repo.write({"charts/web/Chart.yaml": chart, "charts/web/templates/a.yaml": template, "values/dev.yaml": "a: x\n"})
    repo.write({"apps/chart.yaml": source})
    repo.commit("Add a chart")
    repo.write({"values/dev.yaml": "a: z\n"})
    result = repo.preview("HEAD")
    assert ".data.a   x → z" in result.out, result


@pytest.mark.tier("all")
def test_unresolved_merge_conflict_is_a_render_error(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "feature")
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    repo.commit("One")
    repo.git("switch", "-q", "main")
    repo.edit("base/deployment.yaml", "front:v1", "front:v3")
    repo.commit("Other")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "-q", "feature")
    result = repo.preview("HEAD")
    assert result.code == EXIT_NEGATIVE and "fraud-dev, fraud-prod cannot be rendered" in result.impact


@pytest.mark.tier("all")
def test_file_names_that_are_not_utf8_work_in_every_output_format(repo: Repo) -> None:
    folder = os.fsencode(repo.root / "plain")
    os.mkdir(folder)
    with open(folder + b"/\xff.yaml", "wb") as file:
        file.write(config(name="odd").encode())
    repo.write({"apps/plain.yaml": application("plain", "plain")})
    repo.commit("Add an odd name")
    with open(folder + b"/\xff.yaml", "wb") as file:
        file.write(config("2", name="odd").encode())
    for form in ("text", "md", "html", "json", "yaml"):
        result = repo.preview("HEAD", "-o", form)
        assert result.code == EXIT_OK and "odd" in result.out, result


@pytest.mark.tier("all")
def test_missing_ci_target_branch_suggests_fetch_depth_0(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    result = repo.preview()
    assert result.code == EXIT_ERROR and "release: the target branch is not in this clone" in result.err
    assert "fetch-depth: 0" in result.err


@pytest.mark.tier("all")
def test_partial_clone_suggests_git_fetch_refetch(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    clone = Repo(tmp_path / "partial", capsys)
    clone.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo.root}", ".")
    monkeypatch.chdir(clone.root)
    result = clone.preview()
    assert result.code == EXIT_ERROR and "git fetch --refetch" in result.err
    assert main(["check", "--fail-on", "error"]) == EXIT_ERROR
    assert "no Application" in capsys.readouterr().err  # nothing is checked out


@pytest.mark.tier("all")
def test_markdown_comment_names_the_pull_request_of_the_ci_run(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.edit("base/deployment.yaml", "front:v1", "front:v2")
    for name, value in (("BASE_REF", "main"), ("HEAD_REF", "feature/cpu"), ("REF", "refs/pull/42/merge")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert "### argosy preview · PR \\#42 · main…feature/cpu\n" in repo.preview("-o", "md").out
    assert "### argosy preview · HEAD…main" in repo.preview("HEAD...main", "-o", "md").out


def test_preview_guide_shows_the_real_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)
    root = Path(__file__).parents[2]
    copied_repo = Repo(tmp_path / "copy", capsys)
    shutil.copytree(root / "llmops-via-argocd", copied_repo.root, dirs_exist_ok=True)
    for file in (copied_repo.root / "argocd-apps").glob("*.yaml"):
        copied_repo.edit(f"argocd-apps/{file.name}", "path: llmops-via-argocd/", "path: ")
    copied_repo.begin({})
    monkeypatch.chdir(copied_repo.root)
    blocks = re.findall(r"```(\w+)\n(.*?)```", (root / "docs/guides/previewing.md").read_text(), re.S)
    for line in blocks[0][1].splitlines()[:2]:
        subprocess.run(line.removeprefix("$ "), shell=True, check=True, capture_output=True)

    def same(text: str) -> str:
        return re.sub(r"[0-9.]+ s,", "T s,", re.sub(r"\b[0-9a-f]{7}\b", "COMMIT", text)).strip()

    assert same(copied_repo.preview().out) == same(blocks[1][1])


@pytest.mark.tier("all")
def test_new_destination_cluster_creates_objects_instead_of_updating_them(repo: Repo) -> None:
    repo.edit("apps/dev.yaml", "https://kubernetes.default.svc", "https://other.example.com:6443")
    repo.write({"base/deployment.yaml": deployment(label="other")})
    result = repo.preview("fraud-dev")
    assert result.code == EXIT_OK and "moves to another cluster; its objects in the old cluster stay" in result.out
    assert "fraud-dev   dev           auto   3   0   0" in result.out


@pytest.mark.tier("all")
def test_folder_given_as_a_name_suggests_the_repo_flag(repo: Repo) -> None:
    result = repo.preview("overlays")
    assert result.code == EXIT_ERROR and "for a folder, use --repo overlays" in result.err


@pytest.mark.tier("all")
@needs_one
def test_child_applications_of_a_helm_chart_are_found(repo: Repo) -> None:
    child = application("NAME", "plain").replace("NAME", "'{{ .Values.name }}'")
    root = application("root", "root").replace("targetRevision: main", "targetRevision: main, helm: {releaseName: r}")
    repo.write({"root/Chart.yaml": "apiVersion: v2\nname: root\nversion: 1.0.0\n", "root/values.yaml": "name: eu\n"})
    repo.write({"root/templates/child.yaml": child, "plain/a.yaml": config(), "apps/root.yaml": root})
    repo.commit("Add a chart of Applications")
    repo.write({"plain/a.yaml": config("2")})
    result = repo.preview("HEAD")
    assert "\neu\n" in result.out and ".data.a   1 → 2   plain/a.yaml:4" in result.out, result
