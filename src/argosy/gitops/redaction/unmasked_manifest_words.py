"""Words of an Application's manifests in Git, outside of Secrets, from cached renders.

In: Applications of the informer cache, and cached renders. Out: GitText values. Never: renders; uses a commit that was
not deployed and will not be deployed automatically; uses a word of a Secret manifest, of plug-in output, or of a value
that only the Application's spec contains.
"""

from __future__ import annotations

import re
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.application import read_application
from argosy.gitops.application.step_results import RenderResult
from argosy.gitops.reconciler.render_cache import RenderCache, digest_source
from argosy.gitops.redaction.application_secret_scope import PUBLIC_SOURCE_FIELDS
from argosy.gitops.redaction.secret_object_redaction import redact_secrets
from argosy.gitops.render import BuildSettings
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.guessable_values import is_guessable_value
from argosy.observability.redaction.secret_text_extraction import list_url_credentials

MAX_APPLICATIONS: Final = 1_000  # with cached words
MAX_CHARACTERS: Final = 4 << 20  # per Application; words after them stay redacted
MAX_TOTAL_BYTES: Final = 64 << 20  # of all Applications
MAX_INLINE_CHARACTERS: Final = 64 << 10  # of values in the spec; with more, every word stays redacted
MAX_LOOKUPS: Final = 1_000  # different words looked up in one text; others stay redacted
MAX_WORD_CHARACTERS: Final = 4 << 10
MIN_INLINE_CHARACTERS: Final = 4  # of a value in the spec that keeps a longer text redacted
SEPARATOR: Final = "\0"  # between texts, so that no word spans two
HELM, PLUGIN, CHART_FILE = "Helm", "Plugin", "Chart.yaml"
SECRET_MANIFEST: Final = re.compile(r"""\bkind\\*["']?\s*:\s*\\*["']?Secret(?:List)?\b""")
INLINE_VALUE: Final = re.compile(r"""[^\s\0"':,=\[\]{}]+""")


class TextBudget:
    """Limits the memory of all texts. The oldest text is dropped first. Thread-safe."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = MAX_TOTAL_BYTES if max_bytes is None else max_bytes
        self._sizes: OrderedDict[GitText, int] = OrderedDict()  # oldest first
        self._lock = threading.Lock()
        self.used_bytes = 0

    def add(self, text: GitText, size: int) -> None:
        """Count memory that a text uses from now on."""
        with self._lock:
            self._sizes[text] = self._sizes.get(text, 0) + size
            self.used_bytes += size
            while self.used_bytes > self._max_bytes:
                oldest, freed = self._sizes.popitem(last=False)
                self.used_bytes -= freed
                oldest.drop()

    def remove(self, text: GitText) -> None:
        with self._lock:
            self.used_bytes -= self._sizes.pop(text, 0)


class GitText:
    """The texts of an Application's manifests, joined on the first lookup; equal only to itself.

    Each word is searched once, and at most MAX_LOOKUPS words are, so that tenants cannot cause unlimited work.
    """

    def __init__(self, rendered: tuple[RenderResult, ...], inline: str, budget: TextBudget | None = None) -> None:
        self._rendered = rendered  # until joined
        self._sources = tuple(map(weakref.ref, rendered))
        self._inline, self._inline_values = inline, tuple[str, ...]()
        self._budget = TextBudget() if budget is None else budget
        self._texts: tuple[str, str] | None = None  # of files, and of charts
        self._lookups: dict[str, bool] = {}
        self._lock = threading.Lock()
        self.is_dropped = False  # if True, every word stays redacted
        if len(inline) > MAX_INLINE_CHARACTERS:
            self.drop()
        else:
            values = set(INLINE_VALUE.findall(inline))
            self._inline_values = tuple(value for value in values if len(value) >= MIN_INLINE_CHARACTERS)

    def __contains__(self, word: object) -> bool:
        # another thread may drop the text during a lookup; values of the spec may be gone then
        return isinstance(word, str) and self._look_up_cached(word) and not self.is_dropped

    def _look_up_cached(self, word: str) -> bool:
        is_found = self._lookups.get(word)
        if is_found is None:
            if len(self._lookups) >= MAX_LOOKUPS or len(word) > MAX_WORD_CHARACTERS:
                return False
            is_found = self._contains_word(word)
            if not self.is_dropped:
                self._lookups[word] = is_found
                self._budget.add(self, sys.getsizeof(word))
        return is_found

    def _contains_word(self, word: str) -> bool:
        files, charts = self._join_texts()
        # a chart can generate a random password, which is not in Git and cannot be guessed
        if word not in files and not (word in charts and is_guessable_value(word)):
            return False
        return not self._is_inline(word)

    def _join_texts(self) -> tuple[str, str]:
        with self._lock:
            texts = self._texts
            if texts is not None:
                return texts
            texts = self._texts = _join_texts(self._rendered)
            self._rendered = ()
        self._budget.add(self, sum(map(sys.getsizeof, (*texts, self._inline, *self._inline_values))))
        return texts

    def is_built_from(self, rendered: tuple[RenderResult, ...], inline: str) -> bool:
        return not self.is_dropped and _refer_to_same(self._sources, rendered) and inline == self._inline

    def drop(self) -> None:
        """Free the memory. From now on, no word is found, even by holders of this value."""
        self.is_dropped = True
        self._rendered, self._texts, self._lookups = (), ("", ""), {}
        self._inline, self._inline_values = "", ()

    def release(self) -> None:
        """Drop the text and free its share of the budget."""
        self._budget.remove(self)
        self.drop()

    def _is_inline(self, word: str) -> bool:
        """True if the word may come from values in the Application's spec, which are in the cluster and not in Git."""
        return word in self._inline or any(value in word for value in self._inline_values)


class _CachedWords(NamedTuple):
    application: Manifest | None  # None: it changed since
    render_refs: tuple[Callable[[], object], ...]  # weak references; the render cache keeps the values alive
    digests: tuple[str, ...]
    revisions: tuple[str, ...]
    text: GitText | None


class GitWords:
    """Thread-safe: every log line needs a scope."""

    def __init__(self, renders: RenderCache, settings: Callable[[], BuildSettings]) -> None:
        self._renders, self._settings, self._budget = renders, settings, TextBudget()
        self._entries: OrderedDict[ResourceKey, _CachedWords] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def find(self, application: Manifest) -> GitText | None:
        """Return the words of an Application, the same value while nothing changed; None if none are known."""
        key = key_of(application)
        remembered = self._renders.list_entries(key, _count_sources(application))
        with self._lock:
            entry = self._entries.get(key)
        if entry is None and not any(remembered):
            return None
        if entry is None or entry.application is not application or not _refer_to_same(entry.render_refs, remembered):
            last, entry = entry, self._build(application, remembered, entry)
            with self._lock:
                self._entries[key] = entry
                self._entries.move_to_end(key)
                unused = [] if last is None or last.text is entry.text else [last]
                while len(self._entries) > MAX_APPLICATIONS:
                    unused.append(self._entries.popitem(last=False)[1])
            for old in unused:
                if old.text is not None:
                    old.text.release()
        return entry.text

    def forget_version(self, key: ResourceKey) -> None:
        """Free the previous version of a changed Application; its words stay until they are next looked up."""
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._entries[key] = entry._replace(application=None)

    def drop(self, key: ResourceKey) -> None:
        """Drop the words of a deleted Application."""
        with self._lock:
            entry = self._entries.pop(key, None)
        if entry is not None and entry.text is not None:
            entry.text.release()

    def _build(self, application: Manifest, renders: tuple[object, ...], previous: _CachedWords | None) -> _CachedWords:
        remembered = tuple(map(_build_weak_reference, renders))
        try:
            app = read_application(application)
        except ArgosyError:
            return _CachedWords(application, remembered, (), (), None)
        settings, revisions = self._settings(), _read_compared_revisions(application)
        digests = tuple(digest_source(app, source, settings) for source in app.sources)
        if is_delivered(application, revisions):
            rendered = self._renders.find_rendered(app, settings, revisions)
            if rendered is not None:
                inline = SEPARATOR.join(_list_inline_texts(as_mapping(application.get("spec"))))
                is_known = (
                    previous is not None and previous.text is not None and previous.text.is_built_from(rendered, inline)
                )
                text = previous.text if previous is not None and is_known else GitText(rendered, inline, self._budget)
                return _CachedWords(application, remembered, digests, revisions, text)
        # a preview of another revision replaced the cached render, or a new commit is not deployed yet
        if previous is not None and previous.digests == digests and is_delivered(application, previous.revisions):
            return _CachedWords(application, remembered, digests, previous.revisions, previous.text)
        return _CachedWords(application, remembered, digests, revisions, None)


def is_delivered(application: Manifest, revisions: tuple[str, ...]) -> bool:
    """True if the revisions were deployed, or if automated sync deploys whatever the source contains."""
    if not revisions:
        return False
    automated = as_mapping(as_mapping(application.get("spec")).get("syncPolicy")).get("automated")
    is_automated = isinstance(automated, Mapping) and automated.get("enabled") is not False
    if is_automated and revisions == _read_compared_revisions(application):
        return True
    history = as_mappings(as_mapping(application.get("status")).get("history"))
    return any(_read_revisions(deployed) == revisions for deployed in history)


def _read_compared_revisions(application: Manifest) -> tuple[str, ...]:
    return _read_revisions(as_mapping(as_mapping(application.get("status")).get("sync")))


def _read_revisions(fields: Mapping[str, Any]) -> tuple[str, ...]:
    revisions = fields.get("revisions")
    if isinstance(revisions, list) and revisions:
        return tuple(map(str, revisions))
    return (str(fields["revision"]),) if fields.get("revision") else ()


def _count_sources(application: Manifest) -> int:
    sources = as_mapping(application.get("spec")).get("sources")
    return max(1, len(sources)) if isinstance(sources, list) else 1


def _list_inline_texts(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values in the sources of a spec: parameters, patches, chart values."""
    for source in (as_mapping(spec.get("source")), *as_mappings(spec.get("sources"))):
        for name, value in source.items():
            if name not in PUBLIC_SOURCE_FIELDS:
                yield from _list_texts(value, has_names=False)


def _join_texts(rendered: Sequence[RenderResult]) -> tuple[str, str]:
    files: list[str] = []
    charts: list[str] = []
    remaining_characters = MAX_CHARACTERS
    for part in rendered:
        if part.tool == PLUGIN:
            continue  # the plug-in may have inserted Secrets from elsewhere
        if any(_is_foreign_input(render_input.scope) for render_input in part.inputs):
            continue  # its words may come from people other than the writers of the source
        has_chart = part.tool == HELM or any(
            render_input.path.rpartition("/")[2] == CHART_FILE for render_input in part.inputs
        )
        for text in (text for manifest in part.manifests for text in list_manifest_texts(manifest)):
            remaining_characters -= len(text) + 1
            if remaining_characters < 0:
                break
            (charts if has_chart else files).append(text)
    return SEPARATOR.join(files), SEPARATOR.join(charts)


def _is_foreign_input(scope: str) -> bool:
    """True for value files of another source (`$values/prod.yaml`) and for remote bases."""
    return scope.startswith("$") or "/" in scope


def list_manifest_texts(manifest: Manifest) -> Iterator[str]:
    """Yield names and values of a manifest that is not a Secret, without embedded Secrets and passwords."""
    if manifest.get("kind") in ("Secret", "SecretList"):
        return
    for text in _list_texts(redact_secrets(manifest)):
        if SECRET_MANIFEST.search(text):
            continue
        for password in list_url_credentials(text) if "://" in text and "@" in text else ():
            text = text.replace(password, "")
        yield text


def _list_texts(value: Any, *, has_names: bool = True) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if has_names:
                yield str(name)
            yield from _list_texts(inner, has_names=has_names)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner, has_names=has_names)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _build_weak_reference(value: object) -> Callable[[], object]:
    return (lambda: None) if value is None else weakref.ref(value)


def _refer_to_same(references: Sequence[Callable[[], object]], values: Sequence[object]) -> bool:
    pairs = zip(references, values, strict=False)
    return len(references) == len(values) and all(reference() is value for reference, value in pairs)
