"""Run as `argocd`: translate its arguments, commands and exit codes.

In: arguments after `argocd`. Out: an exit code. Never: connects to an Argo CD server: a flag that names a server must
name one of this installation; other connection flags are ignored.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from typing import Final

from argosy import __version__
from argosy.cli.leading_flags import drop_overridden
from argosy.errors import UserError
from argosy.features.argocd_cli.named_server import named_server, options_of_environment

FAILED: Final = 20  # argo: every failure
MISTYPED: Final = 1  # argo: usage error
KEPT: Final = (0, 130)
PLACES: Final = "argosy.features.argocd_cli.places_cli"
# command → argosy's command, or the module of the command
MODULES: Final = {
    "app": "app", "proj": "proj", "cluster": PLACES, "repo": PLACES, "account": PLACES, "context": PLACES,
    "login": PLACES, "logout": PLACES, "relogin": PLACES,
}  # fmt: skip
KNOWN: Final = (*MODULES, "version")
OTHER_NAMES: Final = {
    "apps": "app", "application": "app", "applications": "app", "project": "proj", "projects": "proj",
}  # fmt: skip
NEEDS_A_SERVER: Final = {
    "admin": "test settings with: argosy health",
    "appset": "ApplicationSets are not delivered yet",
    "cert": "certificates are read from the ConfigMaps argocd-tls-certs-cm and argocd-ssh-known-hosts-cm",
    "gpg": "keys are read from the ConfigMap argocd-gpg-keys-cm",
    "repocreds": "credentials are read from Secrets with the label argocd.argoproj.io/secret-type: repo-creds",
    "configure": "there is no configuration file: prompts are for terminals only",
    "completion": "no shell completion under this name",
}
# Connection flags of every argocd command; ignored, as there is no server.
WITH_VALUE: Final = frozenset({
    "--argocd-context", "--auth-token", "--client-crt", "--client-crt-key", "--config", "--controller-name",
    "--grpc-web-root-path", "--header", "-H", "--http-retry-max", "--logformat", "--loglevel",
    "--port-forward-namespace", "--redis-compress", "--redis-haproxy-name", "--redis-name", "--repo-server-name",
    "--server", "--server-crt", "--server-name",
    # Limits of the server, and files sent to it.
    "--ignore-normalizer-jq-execution-timeout", "--server-side-diff-concurrency", "--server-side-diff-max-batch-kb",
    "--local-include",
})  # fmt: skip
SWITCHES: Final = frozenset({
    "--core", "--grpc-web", "--insecure", "--plaintext", "--port-forward", "--prompts-enabled",
    "--server-side-generate",
})  # fmt: skip
RENAMED: Final = {"--kube-context": "--context", "--out": "--output"}
BEFORE: Final = frozenset({"--kube-context", "--context", "--kubeconfig"})  # also allowed before the command
CHOOSES_OBJECTS: Final = frozenset({"actions", "logs", "get-resource", "patch-resource", "delete-resource"})


def answer(arguments: Sequence[str], run: Callable[..., int]) -> int:
    try:
        arguments = [*options_of_environment(), *arguments]
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return FAILED
    words = understood(arguments)
    command = words[0] if words else ""
    if command in ("", "help", "--help", "-h"):
        _print_help()
        return 0
    if command == "version":
        return _version(words[1:])
    if command not in MODULES:
        return _unknown(command)
    try:
        code = run(words, is_compat=True, server=named_server(command, arguments))
    except UserError as error:  # in argocd's own configuration
        print(f"Error: {error}", file=sys.stderr)
        return FAILED
    except SystemExit as ended:
        said = str(getattr(ended, "said", ""))
        # argo: an unknown output format fails at run time, other usage errors when parsing
        return FAILED if "argument -o" in said else MISTYPED if ended.code else 0
    if code in KEPT or (code and words[:2] == ["app", "diff"] and code == _asked_code(words)):
        return code
    return FAILED


def understood(arguments: Sequence[str]) -> list[str]:
    """Translate argocd's arguments to argosy's: without server flags, the command first."""
    words = without_server(arguments)
    first = next((place for place, word in enumerate(words) if _is_command(words, place)), len(words))
    words = [*words[first:], *drop_overridden(words[:first], words[first:])] if first < len(words) else words
    if words:
        words[0] = OTHER_NAMES.get(words[0], words[0])
    return _placed(words)


def _is_command(words: Sequence[str], place: int) -> bool:
    takes_value = place > 0 and words[place - 1] in {RENAMED.get(each, each) for each in BEFORE}
    return not words[place].startswith("-") and not takes_value


def _placed(words: list[str]) -> list[str]:
    """argo: `app … --namespace` is the control namespace, except for verbs that select objects by namespace."""
    if words[:1] != ["app"] or (len(words) > 1 and words[1] in CHOOSES_OBJECTS):
        return words
    return [word.replace("--namespace", "--app-namespace", 1) if _is(word, "--namespace") else word for word in words]


def _is(word: str, flag: str) -> bool:
    return word == flag or word.startswith(f"{flag}=")


def without_server(arguments: Sequence[str]) -> list[str]:
    found: list[str] = []
    skips = False
    for word in arguments:
        name = word.partition("=")[0]
        if skips:
            skips = False
        elif name in WITH_VALUE:
            skips = "=" not in word
        elif name not in SWITCHES:
            found.append(word.replace(name, RENAMED[name], 1) if name in RENAMED else word)
    return found


def _asked_code(words: Sequence[str]) -> int:
    for place, word in enumerate(words):
        if _is(word, "--diff-exit-code"):
            text = word.partition("=")[2] or (words[place + 1] if place + 1 < len(words) else "")
            return int(text) if text.isdecimal() else MISTYPED
    return 1


def _unknown(command: str) -> int:
    print(f'Error: unknown command "{command}" for "argocd"', file=sys.stderr)
    if command in NEEDS_A_SERVER:
        print(f"next: argosy has no {command}: {NEEDS_A_SERVER[command]}", file=sys.stderr)
    else:
        print(f"next: supported commands: {', '.join(KNOWN)}; see also: argosy --help", file=sys.stderr)
    return MISTYPED


def _print_help() -> None:
    print("argosy as argocd: the same commands, without a server.\n\nCommands:")
    print("".join(f"  {name}\n" for name in sorted(KNOWN)), end="")
    print("\nRun `argocd COMMAND --help` for its flags.")


def _version(words: Sequence[str]) -> int:
    version = f"v{__version__}+argosy"
    how = _output(words)
    is_short = "--short" in words or how == "short"
    system = f"{platform.system().lower()}/{platform.machine().lower()}"
    details = {"Compiler": platform.python_implementation(), "Platform": system}
    if how in ("json", "yaml"):
        from argosy.cli.verbs import print_data

        client = {"argocd": version} if is_short else {"Version": version, **details}
        print_data({"client": client}, how)
        return 0
    if how not in ("", "wide", "short"):
        print(f"argosy: unknown output format: {how}\nnext: -o wide, short, json or yaml", file=sys.stderr)
        return MISTYPED
    print(f"argocd: {version}")
    if not is_short:
        print("".join(f"  {name}: {value}\n" for name, value in details.items()), end="")
    if "--client" not in words:
        print("argocd-server: none (argosy needs no server)")
    return 0


def _output(words: Sequence[str]) -> str:
    for place, word in enumerate(words):
        if word in ("-o", "--output"):
            return words[place + 1] if place + 1 < len(words) else ""
        if word.startswith(("--output=", "-o")):
            return word.removeprefix("--output=").removeprefix("-o").removeprefix("=")
    return ""
