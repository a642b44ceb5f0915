"""Builds the command line and the environment of a container.

In: a Pod, a container, a function that reads ConfigMaps and Secrets. Out: argv and env. Never: our own environment.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from argosy.errors import UserError
from argosy.kube.objects import Manifest

# kind and name in the Pod's namespace -> manifest
Read = Callable[[str, str], Awaitable[Manifest | None]]
_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


class NotYet(UserError):
    """A container cannot be created now; it is retried. The message says why."""


def argv_of(container: Manifest, env: Mapping[str, str]) -> list[str]:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise NotYet("images are not pulled, so a container that runs as a process needs a command; set `command`")
    return [expanded(str(word), env) for word in words]


def expanded(text: str, env: Mapping[str, str]) -> str:
    """k8s: `$(NAME)` becomes the variable's value if it exists; `$$` is a dollar sign."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] == "$" else env.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


async def env_of(pod: Manifest, container: Manifest, read: Read) -> dict[str, str]:
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            if reference := source.get(field):
                data = await data_of(kind, reference, read)
                env |= {
                    f"{source.get('prefix') or ''}{name}": text.decode(errors="replace") for name, text in data.items()
                }
    for each in container.get("env") or ():
        value = await _value(pod, each, read) if each.get("valueFrom") else expanded(str(each.get("value") or ""), env)
        if value is not None:
            env[each["name"]] = value
    return env


async def _value(pod: Manifest, variable: Manifest, read: Read) -> str | None:
    source = variable["valueFrom"]
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if reference := source.get(field):
            data = await data_of(kind, reference, read)
            if reference["key"] in data:
                return data[reference["key"]].decode(errors="replace")
            if reference.get("optional"):
                return None
            raise NotYet(f"couldn't find key {reference['key']} in {kind} {reference['name']}; add it there")
    if reference := source.get("fieldRef"):
        return field_of(pod, str(reference.get("fieldPath") or ""))
    return ""


async def data_of(kind: str, reference: Mapping[str, Any], read: Read) -> dict[str, bytes]:
    """Read the data of a ConfigMap or Secret; empty if it is optional and missing."""
    name = str(reference.get("name") or reference.get("secretName") or "")
    found = await read(kind, name)
    if found is None:
        if reference.get("optional"):
            return {}
        raise NotYet(f'{kind.lower()} "{name}" not found; create it')
    binary = found.get("binaryData") or {}
    if kind == "Secret":
        binary = found.get("data") or {}
        plain: Mapping[str, Any] = {}
    else:
        plain = found.get("data") or {}
    decoded = {key: base64.b64decode(value) for key, value in binary.items()}
    return {**{key: str(value).encode() for key, value in plain.items()}, **decoded}


def field_of(pod: Manifest, path: str) -> str:
    """k8s: read a field path of the downward API."""
    metadata = pod["metadata"]
    if found := re.fullmatch(r"metadata\.(labels|annotations)(?:\['([^']+)'\])?", path):
        pairs = metadata.get(found[1]) or {}
        if found[2]:
            return str(pairs.get(found[2]) or "")
        return "\n".join(f'{name}="{value}"' for name, value in sorted(pairs.items()))
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return str(value or "")
