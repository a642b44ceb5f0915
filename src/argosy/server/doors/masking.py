"""Secrets hidden, as the last step of every answer, page, event and log line. Nothing can switch it off.

In: documents by their structure, then bytes by the values that are known to be secret. Out: the same with marks.
Never: believes what a caller says an object is; lets a Secret through because it is malformed.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.compare.masks import SHORTEST, masked
from argosy.model.annotations import LAST_APPLIED
from argosy.model.names import GroupKind
from argosy.server.doors.secret_values import needles

MARK: Final = SHORTEST.encode()
WORD: Final = 4  # bytes
_TRIGGERS: Final = (b"Secret", b"stringData", LAST_APPLIED.encode(), b"\\u00")  # the last: a word that hides itself
MOST_DEPTH: Final = 200
SHARED: Final = 16  # chunks of streams
SECRET: Final = GroupKind("", "Secret")
_WORDS: Final = tuple(each.decode() for each in _TRIGGERS)


def masked_json(document: Any, annotations: Collection[str] = ()) -> bytes:
    """As JSON, every Secret in it masked. A document that does not speak of any is not walked through."""
    data = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    if any(word in data for word in _TRIGGERS):
        data = orjson.dumps(without_secrets(document, annotations), option=orjson.OPT_NON_STR_KEYS)
    return data


def without_secrets(document: Any, annotations: Collection[str] = ()) -> Any:
    """Every Secret in it masked, wherever it is, also as JSON inside of a text."""
    return _Walk(annotations).value(document, 0)


class _Walk:
    def __init__(self, annotations: Collection[str]) -> None:
        self._annotations = annotations

    def value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value, depth) if len(value) > 20 and value[0] in "{[ \n\t" else value
        if kind in (int, float, bool) or value is None:
            return value
        if depth > MOST_DEPTH:
            return SHORTEST
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._items(value, depth)
        return value

    def _items(self, items: Sequence[Any], depth: int) -> Any:
        made = [self.value(each, depth + 1) for each in items]
        unchanged = all(new is old for new, old in zip(made, items))
        return items if unchanged else made

    def _mapping(self, mapping: Mapping[Any, Any], depth: int) -> Any:
        kind = mapping.get("kind")
        if kind == "Secret" and ("data" in mapping or "stringData" in mapping or "metadata" in mapping):
            return self._secret(mapping)
        if kind == "SecretList" and isinstance(mapping.get("items"), list | tuple):
            return {**mapping, "items": [self._secret(each) for each in mapping["items"]]}
        made = {name: self.value(each, depth + 1) for name, each in mapping.items()}
        if isinstance(made.get("stringData"), Mapping):  # no other kind has it
            made["stringData"] = dict.fromkeys(made["stringData"], SHORTEST)
        given = made.get("annotations")
        if isinstance(given, Mapping) and LAST_APPLIED in given and _is_odd(given[LAST_APPLIED]):
            made["annotations"] = {**given, LAST_APPLIED: SHORTEST}
        unchanged = all(made[name] is each for name, each in mapping.items())
        return mapping if unchanged else made

    def _secret(self, secret: Any) -> Any:
        if not isinstance(secret, Mapping):
            return SHORTEST
        try:
            # by the server's own eyes: whatever version it says it has
            shaped = {**secret, "kind": "Secret", "apiVersion": "v1"}
            (made,) = masked([shaped], self._annotations)
            hidden = dict(made or {})
        except Exception:  # one that cannot even be masked: all of it is hidden
            hidden = {"metadata": {"name": _name(secret)}}
        if isinstance(given := secret.get("data"), Mapping) and isinstance(hidden.get("data"), Mapping):
            # who hid it before saw both sides of a comparison: marks that differ stay different
            shown = hidden["data"].items()
            hidden["data"] = {name: given[name] if _is_mark(given.get(name)) else each for name, each in shown}
        for field in ("kind", "apiVersion"):
            if field in secret:
                hidden[field] = secret[field]
            else:
                hidden.pop(field, None)
        return hidden

    def _text(self, text: str, depth: int) -> str:
        """JSON in a text, where it speaks of Secrets."""
        if not any(word in text for word in _WORDS):
            return text
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text  # known values are still looked for
        if not isinstance(inner, dict | list):
            return text
        made = self.value(inner, depth + 1)
        return text if made is inner else orjson.dumps(made).decode()


def _is_odd(applied: Any) -> bool:
    """What was applied last of something else speaks of a Secret, and could not be read."""
    if not isinstance(applied, str) or '"Secret"' not in applied:
        return False
    try:
        orjson.loads(applied)
    except orjson.JSONDecodeError:
        return True
    return False


def _is_mark(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= len(SHORTEST) and not value.strip("+")


def _name(secret: Mapping[Any, Any]) -> str:
    metadata = secret.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


class Mask:
    """Values that are known to be secret, looked for in whatever bytes leave."""

    def __init__(
        self, secrets: Callable[[], Iterable[Mapping[str, Any]]], public: Callable[[], Collection[str]]
    ) -> None:
        self._secrets, self._public = secrets, public
        self._known: tuple[bytes, ...] | None = None
        self._by_word: dict[int, list[int]] = {}
        self._hidden: OrderedDict[bytes, bytes] = OrderedDict()

    def forget(self) -> None:
        """A Secret changed: they are collected again when the next answer leaves."""
        self._known = None
        self._hidden.clear()

    @property
    def known(self) -> tuple[bytes, ...]:
        if self._known is None:
            self._known = needles(self._secrets(), self._public())
            self._by_word = {}
            for number, needle in enumerate(self._known):
                for at in range(WORD):
                    word = int.from_bytes(needle[at : at + WORD], sys.byteorder)
                    self._by_word.setdefault(word, []).append(number)
        return self._known

    def hide(self, data: bytes) -> bytes:
        for needle in self._near(data):
            if needle in data:
                data = data.replace(needle, MARK)
        return data

    def hide_again(self, data: bytes) -> bytes:
        """The same for what many are sent: looked through once."""
        if (known := self._hidden.get(data)) is None:
            known = self._hidden[data] = self.hide(data)
            if len(self._hidden) > SHARED:
                self._hidden.popitem(last=False)
        return known

    def hide_text(self, text: str) -> str:
        return self.hide(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _near(self, data: bytes) -> Iterable[bytes]:
        """Those that may be in it, the longest first.

        Every fourth byte of the data begins a word; wherever a needle stands, one of its first four words is one of
        them. So all needles are looked for at once, however many there are.
        """
        known = self.known
        if not known:
            return ()
        words = set(memoryview(data)[: len(data) // WORD * WORD].cast("I"))
        near = words & self._by_word.keys()
        return [known[each] for each in sorted({number for word in near for number in self._by_word[word]})]


def mask_of(lookout: Any) -> Mask:
    """By the Secrets that the lookout sees. Names of objects are none: a host that a Secret names is a Service, too."""
    cache = lookout.cache

    def public() -> set[str]:
        kinds = [kind for kind in cache.kinds() if kind != SECRET]
        return {word for kind in kinds for key in cache.keys(kind) for word in (key.name, key.namespace)}

    mask = Mask(lambda: cache.list(SECRET), public)

    def noticed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        if (after or before or {}).get("kind") == SECRET.kind:
            mask.forget()

    lookout.listen(noticed)
    return mask


class MaskedLogs(logging.Filter):
    """For each handler of ours: no line leaves with a value that is secret."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
            if record.exc_info and not record.exc_text:
                record.exc_text = logging.Formatter().formatException(record.exc_info)
            if record.exc_text:
                record.exc_text = self._mask.hide_text(record.exc_text)
            record.msg, record.args = self._mask.hide_text(text), ()
        except Exception:  # a line that cannot be read is not told
            record.msg, record.args = "a line of the log that could not be masked", ()
        return True
