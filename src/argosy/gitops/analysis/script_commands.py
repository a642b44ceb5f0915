"""Finds the calls of kubectl and oc in scripts.

In: the text of a script. Out: its calls, if they name a kind. Never: a name that is only known when the script runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_CALL: Final = re.compile(
    r"\b(?:kubectl|oc)\s+((?:-n\s*\S+\s+|--?[\w-]+(?:=\S+)?\s+)*+)"
    r"(get|wait|delete|patch|annotate|label|describe|logs|start-build|rollout\s+(?:status|restart))\b([^\n;|&>)`]*)"
)
# k8s: the verb that a command needs; `rollout status` is a wait, and builds start with a subresource.
_ASKS: Final = {"annotate": "patch", "label": "patch", "describe": "get", "rollout restart": "patch",
                "rollout status": "wait"}  # fmt: skip
_WITH_VALUE: Final = frozenset({"-n", "--namespace", "-o", "--output", "-l", "--selector", "--for", "--timeout", "-p",
                                "--patch", "--type", "--field-selector", "--context", "-f", "--filename"})  # fmt: skip
_WORD: Final = re.compile(r"[a-z][a-z0-9.-]*(?:/[a-z0-9][a-z0-9.-]*)?", re.IGNORECASE)
_SHORT: Final = {
    "po": "pod",
    "svc": "service",
    "cm": "configmap",
    "sa": "serviceaccount",
    "pvc": "persistentvolumeclaim",
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "isvc": "inferenceservice",
    "nvj": "notebookvalidationjob",
    "bc": "buildconfig",
    "is": "imagestream",
    "istag": "imagestreamtag",
    "ns": "namespace",
}


ONE: Final = "?"  # one object whose name is unknown here


class Call(NamedTuple):
    verb: str
    kind: str  # lower case, singular
    name: str  # empty: all of the kind, or an unknown name
    namespace: str  # empty: the Pod's namespace
    is_about_going: bool = False  # waits for a deletion
    part: str = ""  # subresource

    @property
    def what(self) -> str:
        return f"{self.kind}/{self.part}" if self.part else self.kind


def calls(script: str) -> Iterator[Call]:
    for match in _CALL.finditer(script.replace("\\\n", " ")):
        before, verb, after = match.groups()
        words, namespace = _words(f"{before} {after}")
        verb = _ASKS.get(" ".join(verb.split()), verb)
        if verb in ("logs", "start-build"):
            yield _subresource(verb, words, namespace)
            continue
        if not words or not _WORD.fullmatch(words[0]) or "," in words[0]:
            continue
        kind, _, name = words[0].partition("/")
        name = name or (words[1] if len(words) > 1 else "")
        is_going = "--for=delete" in after or "--for delete" in after
        yield Call(verb, singular(kind), name if _WORD.fullmatch(name) else "", namespace, is_going)


def _subresource(verb: str, words: list[str], namespace: str) -> Call:
    if verb == "logs":
        return Call("get", "pod", ONE, namespace, part="log")
    name = words[0] if words and _WORD.fullmatch(words[0]) else ""
    return Call("create", "buildconfig", name, namespace, part="instantiate")


def _words(text: str) -> tuple[list[str], str]:
    """Return the arguments that are not flags, and the namespace; `?` if it is only known at run time."""
    found: list[str] = []
    namespace, is_value = "", ""
    for word in text.split():
        if is_value:
            namespace = word if is_value in ("-n", "--namespace") else namespace
            is_value = ""
        elif word.startswith("-"):
            flag, equals, value = word.partition("=")
            is_value = flag if flag in _WITH_VALUE and not equals else ""
            namespace = value if flag in ("-n", "--namespace") and equals else namespace
        else:
            found.append(word.strip("\"'"))
    return found, "?" if "$" in namespace else namespace.strip("\"'")


def singular(word: str) -> str:
    word = word.lower().partition(".")[0]
    if word in _SHORT:
        return _SHORT[word]
    if word.endswith("sses") or word.endswith("xes"):
        return word[:-2]
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
