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
from argosy.cli.leading_flags import drop_overridden_flags
from argosy.errors import UserError
from argosy.features.argocd_cli.server_flag_cluster_match import find_named_server, read_environment_options

EXIT_FAILED: Final = 20  # argo: every failure
EXIT_USAGE: Final = 1  # argo: usage error
UNCHANGED_EXIT_CODES: Final = (0, 130)
CLUSTER_AND_LOGIN_MODULE: Final = "argosy.features.argocd_cli.cluster_and_login_cli"
# command → argosy's command, or the module of the command
MODULE_BY_COMMAND: Final = {
    "app": "app",
    "proj": "proj",
    "cluster": CLUSTER_AND_LOGIN_MODULE,
    "repo": CLUSTER_AND_LOGIN_MODULE,
    "account": CLUSTER_AND_LOGIN_MODULE,
    "context": CLUSTER_AND_LOGIN_MODULE,
    "login": CLUSTER_AND_LOGIN_MODULE,
    "logout": CLUSTER_AND_LOGIN_MODULE,
    "relogin": CLUSTER_AND_LOGIN_MODULE,
}
KNOWN_COMMANDS: Final = (*MODULE_BY_COMMAND, "version")
COMMAND_ALIASES: Final = {
    "apps": "app", "application": "app", "applications": "app", "project": "proj", "projects": "proj",
}  # fmt: skip
UNSUPPORTED_COMMANDS: Final = {
    "admin": "test settings with: argosy health",
    "appset": "ApplicationSets are not delivered yet",
    "cert": "certificates are read from the ConfigMaps argocd-tls-certs-cm and argocd-ssh-known-hosts-cm",
    "gpg": "keys are read from the ConfigMap argocd-gpg-keys-cm",
    "repocreds": "credentials are read from Secrets with the label argocd.argoproj.io/secret-type: repo-creds",
    "configure": "there is no configuration file: prompts are for terminals only",
    "completion": "no shell completion under this name",
}
# Connection flags of every argocd command; ignored, as there is no server.
IGNORED_FLAGS_WITH_VALUE: Final = frozenset({
    "--argocd-context", "--auth-token", "--client-crt", "--client-crt-key", "--config", "--controller-name",
    "--grpc-web-root-path", "--header", "-H", "--http-retry-max", "--logformat", "--loglevel",
    "--port-forward-namespace", "--redis-compress", "--redis-haproxy-name", "--redis-name", "--repo-server-name",
    "--server", "--server-crt", "--server-name",
    # Limits of the server, and files sent to it.
    "--ignore-normalizer-jq-execution-timeout", "--server-side-diff-concurrency", "--server-side-diff-max-batch-kb",
    "--local-include",
})  # fmt: skip
IGNORED_SWITCHES: Final = frozenset({
    "--core", "--grpc-web", "--insecure", "--plaintext", "--port-forward", "--prompts-enabled",
    "--server-side-generate",
})  # fmt: skip
RENAMED_FLAGS: Final = {"--kube-context": "--context", "--out": "--output"}
# These are also allowed before the command.
FLAGS_BEFORE_COMMAND: Final = frozenset({"--kube-context", "--context", "--kubeconfig"})
VERBS_WITH_OBJECT_NAMESPACE: Final = frozenset({"actions", "logs", "get-resource", "patch-resource", "delete-resource"})


def run_as_argocd(arguments: Sequence[str], run: Callable[..., int]) -> int:
    try:
        arguments = [*read_environment_options(), *arguments]
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return EXIT_FAILED
    words = translate_arguments(arguments)
    command = words[0] if words else ""
    if command in ("", "help", "--help", "-h"):
        _print_help()
        return 0
    if command == "version":
        return _print_version(words[1:])
    if command not in MODULE_BY_COMMAND:
        return _report_unknown_command(command)
    try:
        code = run(words, is_compat=True, server=find_named_server(command, arguments))
    except UserError as error:  # in argocd's own configuration
        print(f"Error: {error}", file=sys.stderr)
        return EXIT_FAILED
    except SystemExit as system_exit:
        message = str(getattr(system_exit, "message", ""))
        # argo: an unknown output format fails at run time, other usage errors when parsing
        return EXIT_FAILED if "argument -o" in message else EXIT_USAGE if system_exit.code else 0
    if code in UNCHANGED_EXIT_CODES or (code and words[:2] == ["app", "diff"] and code == _read_diff_exit_code(words)):
        return code
    return EXIT_FAILED


def translate_arguments(arguments: Sequence[str]) -> list[str]:
    """Translate argocd's arguments to argosy's: without server flags, the command first."""
    words = drop_server_flags(arguments)
    command_index = next((index for index, word in enumerate(words) if _is_command(words, index)), len(words))
    words = (
        [*words[command_index:], *drop_overridden_flags(words[:command_index], words[command_index:])]
        if command_index < len(words)
        else words
    )
    if words:
        words[0] = COMMAND_ALIASES.get(words[0], words[0])
    return _rename_namespace_flag(words)


def _is_command(words: Sequence[str], index: int) -> bool:
    takes_value = index > 0 and words[index - 1] in {RENAMED_FLAGS.get(flag, flag) for flag in FLAGS_BEFORE_COMMAND}
    return not words[index].startswith("-") and not takes_value


def _rename_namespace_flag(words: list[str]) -> list[str]:
    """argo: `app … --namespace` is the control namespace, except for verbs that select objects by namespace."""
    if words[:1] != ["app"] or (len(words) > 1 and words[1] in VERBS_WITH_OBJECT_NAMESPACE):
        return words
    return [
        word.replace("--namespace", "--app-namespace", 1) if _is_flag(word, "--namespace") else word for word in words
    ]


def _is_flag(word: str, flag: str) -> bool:
    return word == flag or word.startswith(f"{flag}=")


def drop_server_flags(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skips_next = False
    for word in arguments:
        name = word.partition("=")[0]
        if skips_next:
            skips_next = False
        elif name in IGNORED_FLAGS_WITH_VALUE:
            skips_next = "=" not in word
        elif name not in IGNORED_SWITCHES:
            kept.append(word.replace(name, RENAMED_FLAGS[name], 1) if name in RENAMED_FLAGS else word)
    return kept


def _read_diff_exit_code(words: Sequence[str]) -> int:
    for index, word in enumerate(words):
        if _is_flag(word, "--diff-exit-code"):
            text = word.partition("=")[2] or (words[index + 1] if index + 1 < len(words) else "")
            return int(text) if text.isdecimal() else EXIT_USAGE
    return 1


def _report_unknown_command(command: str) -> int:
    print(f'Error: unknown command "{command}" for "argocd"', file=sys.stderr)
    if command in UNSUPPORTED_COMMANDS:
        print(f"next: argosy has no {command}: {UNSUPPORTED_COMMANDS[command]}", file=sys.stderr)
    else:
        print(f"next: supported commands: {', '.join(KNOWN_COMMANDS)}; see also: argosy --help", file=sys.stderr)
    return EXIT_USAGE


def _print_help() -> None:
    print("argosy as argocd: the same commands, without a server.\n\nCommands:")
    print("".join(f"  {name}\n" for name in sorted(KNOWN_COMMANDS)), end="")
    print("\nRun `argocd COMMAND --help` for its flags.")


def _print_version(words: Sequence[str]) -> int:
    version = f"v{__version__}+argosy"
    output = _read_output_format(words)
    is_short = "--short" in words or output == "short"
    system = f"{platform.system().lower()}/{platform.machine().lower()}"
    details = {"Compiler": platform.python_implementation(), "Platform": system}
    if output in ("json", "yaml"):
        from argosy.cli.subcommand_flags_and_runner import print_document

        client = {"argocd": version} if is_short else {"Version": version, **details}
        print_document({"client": client}, output)
        return 0
    if output not in ("", "wide", "short"):
        print(f"argosy: unknown output format: {output}\nnext: -o wide, short, json or yaml", file=sys.stderr)
        return EXIT_USAGE
    print(f"argocd: {version}")
    if not is_short:
        print("".join(f"  {name}: {value}\n" for name, value in details.items()), end="")
    if "--client" not in words:
        print("argocd-server: none (argosy needs no server)")
    return 0


def _read_output_format(words: Sequence[str]) -> str:
    for index, word in enumerate(words):
        if word in ("-o", "--output"):
            return words[index + 1] if index + 1 < len(words) else ""
        if word.startswith(("--output=", "-o")):
            return word.removeprefix("--output=").removeprefix("-o").removeprefix("=")
    return ""
