"""Finds the calls of kubectl and oc in scripts.

In: the text of a script. Out: its calls, if they name a kind. Never: a name that is only known when the script runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_COMMAND: Final = re.compile(
    r"\b(?:kubectl|oc)\s+((?:-n\s*\S+\s+|--?[\w-]+(?:=\S+)?\s+)*+)"
    r"(get|wait|delete|patch|annotate|label|describe|logs|start-build|rollout\s+(?:status|restart))\b([^\n;|&>)`]*)"
)
# k8s: the verb that a command needs; `rollout status` is a wait, and builds start with a subresource.
_API_VERBS: Final = {"annotate": "patch", "label": "patch", "describe": "get", "rollout restart": "patch",
                "rollout status": "wait"}  # fmt: skip
_FLAGS_WITH_VALUE: Final = frozenset(
    {
        "-n",
        "--namespace",
        "-o",
        "--output",
        "-l",
        "--selector",
        "--for",
        "--timeout",
        "-p",
        "--patch",
        "--type",
        "--field-selector",
        "--context",
        "-f",
        "--filename",
    }
)
_NAME: Final = re.compile(r"[a-z][a-z0-9.-]*(?:/[a-z0-9][a-z0-9.-]*)?", re.IGNORECASE)
_SHORT_NAMES: Final = {
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


UNKNOWN_NAME: Final = "?"  # one object whose name is unknown here


class KubectlCall(NamedTuple):
    verb: str
    kind: str  # lower case, singular
    name: str  # empty: all of the kind, or an unknown name
    namespace: str  # empty: the Pod's namespace
    waits_for_deletion: bool = False  # waits for a deletion
    subresource: str = ""  # subresource

    @property
    def resource(self) -> str:
        return f"{self.kind}/{self.subresource}" if self.subresource else self.kind


def list_kubectl_calls(script: str) -> Iterator[KubectlCall]:
    for match in _COMMAND.finditer(script.replace("\\\n", " ")):
        before, verb, after = match.groups()
        words, namespace = _split_arguments(f"{before} {after}")
        verb = _API_VERBS.get(" ".join(verb.split()), verb)
        if verb in ("logs", "start-build"):
            yield _build_subresource_call(verb, words, namespace)
            continue
        if not words or not _NAME.fullmatch(words[0]) or "," in words[0]:
            continue
        kind, _, name = words[0].partition("/")
        name = name or (words[1] if len(words) > 1 else "")
        waits_for_deletion = "--for=delete" in after or "--for delete" in after
        yield KubectlCall(verb, singularize(kind), name if _NAME.fullmatch(name) else "", namespace, waits_for_deletion)


def _build_subresource_call(verb: str, words: list[str], namespace: str) -> KubectlCall:
    if verb == "logs":
        return KubectlCall("get", "pod", UNKNOWN_NAME, namespace, subresource="log")
    name = words[0] if words and _NAME.fullmatch(words[0]) else ""
    return KubectlCall("create", "buildconfig", name, namespace, subresource="instantiate")


def _split_arguments(text: str) -> tuple[list[str], str]:
    """Return the arguments that are not flags, and the namespace; `?` if it is only known at run time."""
    arguments: list[str] = []
    namespace, pending_flag = "", ""
    for word in text.split():
        if pending_flag:
            namespace = word if pending_flag in ("-n", "--namespace") else namespace
            pending_flag = ""
        elif word.startswith("-"):
            flag, equals, value = word.partition("=")
            pending_flag = flag if flag in _FLAGS_WITH_VALUE and not equals else ""
            namespace = value if flag in ("-n", "--namespace") and equals else namespace
        else:
            arguments.append(word.strip("\"'"))
    return arguments, "?" if "$" in namespace else namespace.strip("\"'")


def singularize(word: str) -> str:
    word = word.lower().partition(".")[0]
    if word in _SHORT_NAMES:
        return _SHORT_NAMES[word]
    if word.endswith("sses") or word.endswith("xes"):
        return word[:-2]
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
