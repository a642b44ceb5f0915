"""Words in an Application's Git manifests are unmasked for it, but nobody can use them to test guesses."""

from __future__ import annotations

import base64
import gc
import html
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from argosy.gitops.application import read_application
from argosy.gitops.application.step_results import Checkout, RenderInput, RenderResult
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.render_cache import RenderCache, RenderRequest
from argosy.gitops.redaction import unmasked_manifest_words
from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks, build_masks
from argosy.gitops.redaction.secret_object_redaction import serialize_masked
from argosy.gitops.render import BuildSettings
from support.file_trees import TextTree
from support.page_site import CONTROL, StillLookout

pytestmark = pytest.mark.anyio
HERE = "https://kubernetes.default.svc"
FIRST, SECOND = "1" * 40, "2" * 40
VALUE = "blue-lagoon"
RANDOM = "Zx81kQpLm03vBn7RtYw-41"
CONFIG_MAP = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{stage: {VALUE}}}\n"
TOLD = f"cannot reach {VALUE}"


class Here:
    """Runs renders in this process."""

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


async def nothing_remote(url: str, ref: str) -> Checkout:
    raise AssertionError(f"{url} was fetched")


def app(name: str = "shop", **spec: Any) -> dict[str, Any]:
    source = {"repoURL": "https://git.example.com/r", "path": "app", "targetRevision": "main"}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {"project": "ml", "source": source, "destination": {"server": HERE, "namespace": "web"}, **spec},
        "status": {"sync": {"status": "Synced", "revision": FIRST}, "history": [{"id": 1, "revision": FIRST}]},
    }  # fmt: skip


def project(*namespaces: str, **spec: Any) -> dict[str, Any]:
    destinations = [{"server": HERE, "namespace": namespace} for namespace in namespaces]
    metadata = {"name": "ml", "namespace": CONTROL}
    spec = {"sourceRepos": ["*"], "destinations": destinations, **spec}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


def secret(namespace: str, value: str = VALUE, **labels: str) -> dict[str, Any]:
    metadata = {"name": f"own-{len(value)}", "namespace": namespace, "labels": labels}
    data = {"stage": base64.b64encode(value.encode()).decode()}
    if labels:
        data["project"] = base64.b64encode(b"ml").decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


class Place:
    """A server with Applications and their cached renders."""

    def __init__(self, *manifests: dict[str, Any]) -> None:
        self.lookout = StillLookout(manifests)
        self.renders = self.lookout.render_cache = RenderCache(Here(), AppMemos())  # type: ignore[misc]
        self.masks: ApplicationMasks = build_masks(self.lookout, CONTROL, build_mask(self.lookout, CONTROL))

    async def render(
        self, application: dict[str, Any], files: dict[str, str], revision: str = FIRST, *, is_raw: bool = False
    ) -> None:
        parsed = read_application(application)
        named = files if is_raw else {f"app/{name}": text for name, text in files.items()}
        request = RenderRequest(parsed, parsed.sources[0], Checkout(TextTree(named), revision), BuildSettings())
        await self.renders.render(request, 0, nothing_remote)

    def told(self, name: str = "shop", text: str = TOLD) -> str:
        return self.masks.get_mask_for_application(name).mask_text(text)


async def test_word_in_a_git_manifest_is_shown_although_a_secret_contains_it() -> None:
    server = Place(project("web"), app(), secret("web"))
    assert server.told() == "cannot reach ++++++++", "nothing of it is in memory yet"
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == TOLD
    assert VALUE in json.dumps(server.masks.mask_application({**app(), "status": {"message": TOLD} | app()["status"]}))


@pytest.mark.parametrize(
    "manifest",
    [
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, env: [{value: STAGE}]}]}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {stage: STAGE}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {address: 'https://STAGE.example.com'}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {'file.ini': \"[a]\\nstage = STAGE\\n\"}\n",
    ],
)
async def test_env_values_labels_and_parts_of_texts_count_as_git_words(manifest: str) -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"x.yaml": manifest.replace("STAGE", VALUE)})
    assert server.told() == TOLD


IN_SECRETS = {
    "data": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{stage: {VALUE}}}\n",
    "its name": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s, labels: {{stage: {VALUE}}}}}\n",
    "a Secret in a text": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  s.yaml: |\n"
        f"    kind: Secret\n    stringData: {{stage: {VALUE}}}\n"
    ),
    "a Secret in JSON": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        f"  s.json: '{{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"stringData\": {{\"stage\": \"{VALUE}\"}}}}'\n"
    ),
    "a password in an address": (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{url: 'https://u:{VALUE}@db.example.com'}}\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_SECRETS)
async def test_values_only_in_secret_manifests_or_passwords_stay_masked(case: str) -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"s.yaml": IN_SECRETS[case], "other.yaml": CONFIG_MAP.replace(VALUE, "other")})
    assert server.told() == "cannot reach ++++++++"


async def test_git_word_of_one_application_unmasks_nothing_in_another() -> None:
    server = Place(project("web"), app(), app("other"), secret("web"))
    await server.render(app("other"), {"settings.yaml": CONFIG_MAP})
    assert server.told("other") == TOLD
    assert server.told("shop") == "cannot reach ++++++++"


# -- guesses in Git --------------------------------------------------------------------------------------------------

CANNOT_READ = {
    "a project that permits no Pods": project("web", namespaceResourceWhitelist=[{"group": "", "kind": "ConfigMap"}]),
    "a project that forbids whatever runs Pods": project(
        "web", namespaceResourceBlacklist=[{"group": group, "kind": "*"} for group in ("", "apps", "batch")]
    ),
    "a project without its repository": project("web", sourceRepos=["https://git.example.com/other"]),
    "a project that was narrowed": project("jobs"),
    "a project whose syncs act as an account": project(
        "web", destinationServiceAccounts=[{"server": HERE, "namespace": "web", "defaultServiceAccount": "robot"}]
    ),
}


@pytest.mark.parametrize("case", CANNOT_READ)
async def test_git_guess_unmasks_no_secret_that_its_writers_cannot_read(case: str) -> None:
    delivered = app()
    delivered["status"]["resources"] = [{"kind": "ConfigMap", "namespace": "web", "name": "c", "status": "Synced"}]
    server = Place(CANNOT_READ[case], delivered, secret("web"))
    await server.render(delivered, {"settings.yaml": CONFIG_MAP})
    assert server.told() == "cannot reach ++++++++"


async def test_git_guess_unmasks_no_secret_without_a_project() -> None:
    server = Place(app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == "cannot reach ++++++++"


async def test_git_guess_unmasks_no_project_credential() -> None:
    repository = secret(CONTROL, RANDOM, **{"argocd.argoproj.io/secret-type": "repository"})
    server = Place(project("web"), app(), repository)
    await server.render(app(), {"settings.yaml": CONFIG_MAP.replace(VALUE, RANDOM)})
    assert server.told(text=f"cannot reach {RANDOM}") == "cannot reach ++++++++"


async def test_short_project_credential_is_not_masked_before_or_after_a_git_guess() -> None:
    server = Place(project("web"), app(), secret(CONTROL, **{"argocd.argoproj.io/secret-type": "repository"}))
    assert server.told() == TOLD, "it is not masked where tenants write"
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == TOLD


async def test_value_shared_with_an_unreadable_secret_stays_masked() -> None:
    delivered = app()
    delivered["status"]["resources"] = [{"kind": "ConfigMap", "namespace": "old", "name": "c", "status": "Synced"}]
    server = Place(project("web"), delivered, secret("web"), secret("old"))
    await server.render(delivered, {"settings.yaml": CONFIG_MAP})
    assert server.told() == "cannot reach ++++++++"


async def test_preview_of_another_revision_unmasks_nothing() -> None:
    """Anyone who may see an Application may request its diff at any revision, so at a branch with guesses."""
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP}, SECOND)
    assert server.told() == "cannot reach ++++++++"


async def test_preview_with_another_source_path_unmasks_nothing() -> None:
    server = Place(project("web"), app(), secret("web"))
    other = app()
    other["spec"]["source"]["path"] = "other"
    await server.render(other, {"other/settings.yaml": CONFIG_MAP}, is_raw=True)
    assert server.told() == "cannot reach ++++++++"


async def test_preview_does_not_mask_a_word_that_was_shown() -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == TOLD
    await server.render(app(), {"settings.yaml": CONFIG_MAP.replace(VALUE, "staging")}, SECOND)
    assert server.told() == TOLD


def compared(revision: str, **spec: Any) -> dict[str, Any]:
    application = app(**spec)
    application["status"]["sync"] = {"status": "OutOfSync", "revision": revision}
    return application


async def test_unsynced_commit_unmasks_nothing_until_it_is_delivered() -> None:
    server = Place(project("web"), compared(SECOND), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP}, SECOND)
    assert server.told() == "cannot reach ++++++++"
    synced = compared(SECOND)
    synced["status"]["history"].append({"id": 2, "revision": SECOND})
    server.lookout.put(synced)
    assert server.told() == TOLD


@pytest.mark.parametrize(("automated", "is_shown"), [({}, True), ({"prune": True}, True), ({"enabled": False}, False)])
async def test_unsynced_commit_unmasks_words_only_with_auto_sync(automated: Any, is_shown: bool) -> None:
    waiting = compared(SECOND, syncPolicy={"automated": automated})
    server = Place(project("web"), waiting, secret("web"))
    await server.render(waiting, {"settings.yaml": CONFIG_MAP}, SECOND)
    assert (server.told() == TOLD) is is_shown


async def test_unsynced_commit_does_not_mask_words_of_the_delivered_one() -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == TOLD
    server.lookout.put(compared(SECOND))
    await server.render(app(), {"settings.yaml": CONFIG_MAP.replace(VALUE, "staging")}, SECOND)
    assert server.told() == TOLD


# -- values that are rendered but not in Git -------------------------------------------------------------------------


def rendered(tool: str, text: str, *files: str) -> Any:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": text}}
    return RenderResult([manifest], cast(Any, None), {RenderInput("", path): "1" for path in files}, tool)


@pytest.mark.parametrize(
    ("tool", "files", "guessable", "random"),
    [
        ("Directory", ("app/c.yaml",), True, True),
        ("Kustomize", ("app/kustomization.yaml",), True, True),
        ("Kustomize", ("app/kustomization.yaml", "app/charts/x/Chart.yaml"), True, False),
        ("Helm", ("app/Chart.yaml",), True, False),
        ("Plugin", ("app/c.yaml",), False, False),
    ],
)
def test_git_words_depend_on_the_render_tool(tool: str, files: tuple[str, ...], guessable: bool, random: bool) -> None:
    """A chart may generate passwords, and a plug-in may insert them from elsewhere."""
    text = unmasked_manifest_words.GitText((rendered(tool, f"{VALUE} {RANDOM}", *files),), "")
    assert (VALUE in text, RANDOM in text) == (guessable, random)


@pytest.mark.parametrize("password", ["GlIPOF5vWThLbE5nyO18", "U71A24PkuLnOpEsrLPHG"])
def test_random_chart_password_stays_masked_even_if_a_part_is_base64_text(password: str) -> None:
    assert password not in unmasked_manifest_words.GitText((rendered("Helm", password, "chart/Chart.yaml"),), "")


@pytest.mark.parametrize("place", ["$values", "https://git.example.com/bases@main"])
def test_source_that_reads_another_repository_has_no_git_words(place: str) -> None:
    """Value files or a remote base may have other writers than the source."""
    part = rendered("Helm", VALUE, "chart/Chart.yaml")
    assert VALUE in unmasked_manifest_words.GitText((part,), "")
    values = {**part.inputs, RenderInput(place, "prod.yaml"): "2"}
    assert VALUE not in unmasked_manifest_words.GitText((replace(part, inputs=values),), "")


@pytest.mark.parametrize("word", ["hunter22x", "admin:hunter22x", "of hunter22x and"])
def test_inline_spec_values_are_not_git_words(word: str) -> None:
    spec = {"source": {"helm": {"parameters": [{"name": "password", "value": "hunter22x"}]}}}
    inline = unmasked_manifest_words.SEPARATOR.join(unmasked_manifest_words._list_inline_texts(spec))
    text = unmasked_manifest_words.GitText(
        (rendered("Directory", f"admin:hunter22x, one of hunter22x and {VALUE}"),), inline
    )
    assert word not in text and VALUE in text
    assert word in unmasked_manifest_words.GitText(
        (rendered("Directory", f"admin:hunter22x, one of hunter22x and {VALUE}"),), ""
    )


def test_git_word_does_not_span_two_texts() -> None:
    text = unmasked_manifest_words.GitText((rendered("Directory", "blue"), rendered("Directory", "-lagoon")), "")
    assert "blue-lagoon" not in text and "blue" in text


def test_words_beyond_the_size_limit_stay_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmasked_manifest_words, "MAX_CHARACTERS", 100)
    text = unmasked_manifest_words.GitText((rendered("Directory", "x" * 200), rendered("Directory", VALUE)), "")
    assert VALUE not in text


async def test_secret_fields_stay_masked_regardless_of_git_words() -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    live = {**secret("web"), "stringData": {"more": VALUE}}
    masked = server.masks.get_mask_for_application("shop").mask_json(serialize_masked({"live": live, "told": TOLD}))
    assert json.loads(masked)["told"] == TOLD
    assert VALUE.encode() not in masked.replace(TOLD.encode(), b"")
    assert base64.b64encode(VALUE.encode()) not in masked
    encoded = base64.b64encode(VALUE.encode()).decode()
    assert server.told(text=f"data of the Secret: {encoded}") == "data of the Secret: ++++++++"


async def test_texts_are_joined_once_and_only_when_a_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []
    join = unmasked_manifest_words._join_texts
    monkeypatch.setattr(unmasked_manifest_words, "_join_texts", lambda rendered: joined.append(1) or join(rendered))
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    server.told(text="nothing of it")
    assert joined == []
    for _ in range(5):
        assert server.told() == TOLD
    assert joined == [1]


async def test_number_of_applications_with_cached_words_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unmasked_manifest_words, "MAX_APPLICATIONS", 3)
    names = [f"shop-{number}" for number in range(9)]
    server = Place(project("web"), *map(app, names), secret("web"))
    words = unmasked_manifest_words.GitWords(server.renders, BuildSettings)
    for name in names:
        await server.render(app(name), {"settings.yaml": CONFIG_MAP})
        git_text = words.find(app(name))
        assert git_text is not None and VALUE in git_text
    assert len(words._entries) == 3


# -- limits: no tenant can stall the server, or fill its memory ------------------------------------------------------


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that were searched for in a whole text."""
    words: list[str] = []

    class Scanned(str):
        def __contains__(self, word: object) -> bool:
            words.append(str(word))
            return super().__contains__(word)  # type: ignore[operator]

    join = unmasked_manifest_words._join_texts
    monkeypatch.setattr(
        unmasked_manifest_words, "_join_texts", lambda rendered: (Scanned(join(rendered)[0]), join(rendered)[1])
    )
    return words


async def test_each_word_is_searched_for_only_once(scans: list[str]) -> None:
    server = Place(project("web"), app(), secret("web"), secret("web", "not-in-git-at-all"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    for _ in range(20):
        assert server.told() == TOLD
        assert server.told(text="with not-in-git-at-all") == "with ++++++++"
    assert sorted(scans) == [VALUE, "not-in-git-at-all"]


def test_words_beyond_the_lookup_limit_stay_masked(scans: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmasked_manifest_words, "MAX_LOOKUPS", 5)
    text = unmasked_manifest_words.GitText((rendered("Directory", f"{VALUE} word-9"),), "")
    assert VALUE in text
    for number in range(9):
        assert f"word-{number}" not in text
    assert VALUE in text and "word-9" not in text
    assert len(scans) == 5
    assert "x" * (unmasked_manifest_words.MAX_WORD_CHARACTERS + 1) not in text and len(scans) == 5


def test_inline_spec_values_are_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    splits: list[int] = []

    class Pattern:
        def findall(self, text: str) -> list[str]:
            splits.append(len(text))
            return text.split()

        finditer = findall

    monkeypatch.setattr(unmasked_manifest_words, "INLINE_VALUE", Pattern())
    text = unmasked_manifest_words.GitText(
        (rendered("Directory", f"{VALUE} grey-lagoon red-lagoon"),), "hunter22x other"
    )
    assert all(word in text for word in (VALUE, "grey-lagoon", "red-lagoon"))
    assert splits == [15]


def test_no_word_is_unmasked_if_the_spec_has_too_many_values(scans: list[str]) -> None:
    inline = "x " * (unmasked_manifest_words.MAX_INLINE_CHARACTERS // 2)
    assert VALUE in unmasked_manifest_words.GitText((rendered("Directory", VALUE),), inline)
    assert VALUE not in unmasked_manifest_words.GitText((rendered("Directory", VALUE),), inline + "y")
    assert len(scans) == 1


def test_all_texts_share_one_memory_limit() -> None:
    budget = unmasked_manifest_words.TextBudget(25_000)
    texts = [
        unmasked_manifest_words.GitText((rendered("Directory", f"{VALUE} {'x' * 9_000}"),), "", budget)
        for _ in range(5)
    ]
    for text in texts:
        assert VALUE in text
        assert budget.used_bytes <= 25_000
    assert [text.is_dropped for text in texts] == [True, True, True, False, False]
    assert [VALUE in text for text in texts] == [False, False, False, True, True]
    texts[-1].release()
    assert 9_000 < budget.used_bytes < 10_000


def test_cached_words_and_spec_values_count_towards_the_memory_limit() -> None:
    budget = unmasked_manifest_words.TextBudget(30_000)
    text = unmasked_manifest_words.GitText((rendered("Directory", VALUE),), "hunter22x " * 1_000, budget)
    assert VALUE in text and budget.used_bytes > 10_000
    for number in range(30):
        assert f"{number:01000}" not in text
        assert budget.used_bytes <= 30_000
    assert text.is_dropped and budget.used_bytes == 0
    assert "hunter22x" not in vars(text)["_inline"] and not vars(text)["_inline_values"]


def test_text_dropped_during_a_lookup_unmasks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = unmasked_manifest_words.GitText((rendered("Directory", f"{VALUE} hunter22x"),), "hunter22x")
    look_up = unmasked_manifest_words.GitText._is_inline

    def drop_first(self: unmasked_manifest_words.GitText, word: str) -> bool:
        self.drop()
        return look_up(self, word)

    monkeypatch.setattr(unmasked_manifest_words.GitText, "_is_inline", drop_first)
    assert "hunter22x" not in text


def test_renders_are_released_after_they_are_joined() -> None:
    render_result = rendered("Directory", VALUE)
    reference = weakref.ref(render_result)
    text = unmasked_manifest_words.GitText((render_result,), "")
    assert text.is_built_from((render_result,), "") and VALUE in text and text.is_built_from((render_result,), "")
    del render_result
    gc.collect()
    assert reference() is None and VALUE in text


async def test_dropped_text_is_rebuilt_on_the_next_find() -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    words = unmasked_manifest_words.GitWords(server.renders, BuildSettings)
    first = words.find(app())
    assert first is not None and VALUE in first
    first.drop()
    second = words.find(app())
    assert second is not None and second is not first and VALUE in second


async def test_previous_version_of_an_application_is_not_kept() -> None:
    class Application(dict[str, Any]):
        """Can be weakly referenced, unlike a dict."""

    server = Place(project("web"), secret("web"))
    words = unmasked_manifest_words.GitWords(server.renders, BuildSettings)
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    previous = Application(app())
    text, key, reference = words.find(previous), read_application(previous).key, weakref.ref(previous)
    del previous
    gc.collect()
    assert reference() is not None
    words.forget_version(key)
    gc.collect()
    assert reference() is None
    assert text is not None and words.find(app()) is text and VALUE in text


async def test_deleted_application_leaves_nothing_in_the_caches() -> None:
    server = Place(project("web"), app(), secret("web"))
    await server.render(app(), {"settings.yaml": CONFIG_MAP})
    assert server.told() == TOLD
    server.masks.mask_application(app())
    git = server.masks.get_scope(CONTROL, "shop").git_words
    assert git is not None and VALUE in git
    key = read_application(app()).key
    server.lookout.drop(key)
    assert VALUE not in git
    assert len(server.masks._scopes) == 0 and len(server.masks._manifests) == 0


# -- encoded values --------------------------------------------------------------------------------------------------


ENCODED = {
    "base64": base64.b64encode(b"hunter22x").decode(),
    "base64 with a newline": base64.b64encode(b"hunter22x\n").decode(),
    "hexadecimal": b"hunter22x".hex(),
    "percent": "hunter%2022%2Fx",
}


@pytest.mark.parametrize("case", ENCODED)
async def test_encoded_value_is_never_a_git_word(case: str) -> None:
    """A chart may encode a spec value: `{{ .Values.password | b64enc }}`."""
    value = "hunter 22/x" if case == "percent" else "hunter22x"
    server = Place(project("web"), app(), secret("web", value))
    await server.render(app(), {"settings.yaml": CONFIG_MAP.replace(VALUE, f"'{ENCODED[case]}'")})
    assert server.told(text=f"of {ENCODED[case]} and") == "of ++++++++ and"


@pytest.mark.parametrize("value", ["aHVudGVyMjJ4", "deadbeef01", "hunter22", 'say "lagoon"', "tom&jerry-1"])
async def test_word_that_only_looks_encoded_or_is_escaped_is_shown(value: str) -> None:
    server = Place(project("web"), app(), secret("web", value))
    await server.render(app(), {"settings.yaml": CONFIG_MAP.replace(VALUE, f"'{value}'")})
    for text in (value, json.dumps(value), html.escape(value)):
        assert server.told(text=f"of {text} and") == f"of {text} and"
