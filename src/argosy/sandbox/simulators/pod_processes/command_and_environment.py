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
LoadObject = Callable[[str, str], Awaitable[Manifest | None]]
_VARIABLE_PATTERN = re.compile(r"\$(\$|\(([^()]*)\))")


class ContainerConfigError(UserError):
    """A container cannot be created now; it is retried. The message says why."""


def build_argv(container: Manifest, env: Mapping[str, str]) -> list[str]:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise ContainerConfigError(
            "images are not pulled, so a container that runs as a process needs a command; set `command`"
        )
    return [expand_variables(str(word), env) for word in words]


def expand_variables(text: str, env: Mapping[str, str]) -> str:
    """k8s: `$(NAME)` becomes the variable's value if it exists; `$$` is a dollar sign."""

    def replace_match(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else env.get(match[2], match[0])

    return _VARIABLE_PATTERN.sub(replace_match, text)


async def build_env(pod: Manifest, container: Manifest, load_object: LoadObject) -> dict[str, str]:
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            if reference := source.get(field):
                data = await load_data(kind, reference, load_object)
                env |= {
                    f"{source.get('prefix') or ''}{name}": text.decode(errors="replace") for name, text in data.items()
                }
    for variable in container.get("env") or ():
        value = (
            await _load_variable_value(pod, variable, load_object)
            if variable.get("valueFrom")
            else expand_variables(str(variable.get("value") or ""), env)
        )
        if value is not None:
            env[variable["name"]] = value
    return env


async def _load_variable_value(pod: Manifest, variable: Manifest, load_object: LoadObject) -> str | None:
    source = variable["valueFrom"]
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if reference := source.get(field):
            data = await load_data(kind, reference, load_object)
            if reference["key"] in data:
                return data[reference["key"]].decode(errors="replace")
            if reference.get("optional"):
                return None
            raise ContainerConfigError(
                f"couldn't find key {reference['key']} in {kind} {reference['name']}; add it there"
            )
    if reference := source.get("fieldRef"):
        return read_field_path(pod, str(reference.get("fieldPath") or ""))
    return ""


async def load_data(kind: str, reference: Mapping[str, Any], load_object: LoadObject) -> dict[str, bytes]:
    """Read the data of a ConfigMap or Secret; empty if it is optional and missing."""
    name = str(reference.get("name") or reference.get("secretName") or "")
    manifest = await load_object(kind, name)
    if manifest is None:
        if reference.get("optional"):
            return {}
        raise ContainerConfigError(f'{kind.lower()} "{name}" not found; create it')
    base64_data = manifest.get("binaryData") or {}
    if kind == "Secret":
        base64_data = manifest.get("data") or {}
        text_data: Mapping[str, Any] = {}
    else:
        text_data = manifest.get("data") or {}
    decoded = {key: base64.b64decode(value) for key, value in base64_data.items()}
    return {**{key: str(value).encode() for key, value in text_data.items()}, **decoded}


def read_field_path(pod: Manifest, path: str) -> str:
    """k8s: read a field path of the downward API."""
    metadata = pod["metadata"]
    if match := re.fullmatch(r"metadata\.(labels|annotations)(?:\['([^']+)'\])?", path):
        entries = metadata.get(match[1]) or {}
        if match[2]:
            return str(entries.get(match[2]) or "")
        return "\n".join(f'{name}="{value}"' for name, value in sorted(entries.items()))
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return str(value or "")
