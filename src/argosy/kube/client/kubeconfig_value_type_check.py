"""Checks the types of the values in a kubeconfig.

In: the parsed YAML of a file. Out: nothing, or an error that names the file and the section. Never: prints a value,
which may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from argosy.errors import UserError

SECTIONS: Final = (("contexts", "context"), ("clusters", "cluster"), ("users", "user"))


def _is_list_of(kind: type, value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


# Description of the expected type, and the test for it.
ExpectedType = tuple[str, Callable[[Any], bool]]
STRING: Final[ExpectedType] = ("a string", lambda value: isinstance(value, str))
BOOLEAN: Final[ExpectedType] = ("true or false", lambda value: isinstance(value, bool))
MAPPING: Final[ExpectedType] = ("a mapping", lambda value: isinstance(value, dict))
LIST: Final[ExpectedType] = ("a list", lambda value: isinstance(value, list))
STRINGS: Final[ExpectedType] = ("a list of strings", lambda value: _is_list_of(str, value))
MAPPINGS: Final[ExpectedType] = ("a list of mappings", lambda value: _is_list_of(dict, value))

FIELDS: Final[Mapping[str, Mapping[str, ExpectedType]]] = {
    "contexts": {"cluster": STRING, "user": STRING, "namespace": STRING},
    "clusters": {
        "server": STRING, "certificate-authority": STRING, "certificate-authority-data": STRING,
        "tls-server-name": STRING, "proxy-url": STRING, "insecure-skip-tls-verify": BOOLEAN,
        "disable-compression": BOOLEAN, "extensions": MAPPINGS,
    },
    "users": {
        "client-certificate": STRING, "client-certificate-data": STRING, "client-key": STRING,
        "client-key-data": STRING, "token": STRING, "tokenFile": STRING, "username": STRING, "password": STRING,
        "as": STRING, "as-uid": STRING, "as-groups": STRINGS, "as-user-extra": MAPPING, "exec": MAPPING,
    },
}  # fmt: skip
EXEC_FIELDS: Final[Mapping[str, ExpectedType]] = {
    "command": STRING, "apiVersion": STRING, "args": STRINGS, "env": MAPPINGS, "installHint": STRING,
    "interactiveMode": STRING, "provideClusterInfo": BOOLEAN,
}  # fmt: skip


def check_types(config: Mapping[str, Any], path: str) -> None:
    """Raise UserError for the first value of a wrong type. k8s: unused entries are checked too."""
    _check_fields(config, {"current-context": STRING, **{section: LIST for section, _ in SECTIONS}}, "", path)
    for section, inner in SECTIONS:
        for item in config.get(section) or ():
            if not isinstance(item, dict) or not item.get("name"):
                raise UserError(f"an entry of {section} has no name", where=path)
            if not isinstance(item["name"], str):
                raise UserError(f"{section}: the name of an entry is not a string", where=path)
            prefix = f'{section} "{item["name"]}": '
            _check_fields(item, {inner: MAPPING}, prefix, path)
            entry = item.get(inner) or {}
            _check_fields(entry, FIELDS[section], prefix, path)
            if section == "users":
                _check_user(entry, prefix, path)


def _check_user(user: Mapping[str, Any], prefix: str, path: str) -> None:
    extra = user.get("as-user-extra") or {}
    _check_fields(extra, dict.fromkeys(extra, STRINGS), f"{prefix}as-user-extra ", path)
    plugin = user.get("exec") or {}
    _check_fields(plugin, EXEC_FIELDS, f"{prefix}exec ", path)
    for variable in plugin.get("env") or ():
        if not variable.get("name"):
            raise UserError(f"{prefix}exec env has an entry without a name", where=path)
        _check_fields(variable, {"name": STRING, "value": STRING}, f"{prefix}exec env ", path)


def _check_fields(values: Mapping[str, Any], types: Mapping[str, ExpectedType], prefix: str, path: str) -> None:
    for field, (expected, is_expected) in types.items():
        value = values.get(field)
        if value is not None and not is_expected(value):
            raise UserError(f"{prefix}{field} is not {expected}", where=path)
