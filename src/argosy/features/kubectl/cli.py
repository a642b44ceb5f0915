"""`argosy kubectl …` and `argosy oc …`: run an installed kubectl, else the built-in one; with oc's own verbs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import ClusterError, TransientError, UserError

if TYPE_CHECKING:
    from argosy.features.kubectl.session import Talk
    from argosy.kube.client.connection import Connection

NAMES: Final = ("kubectl", "oc")
FAILED: Final = 1  # k8s: exit code of every error
OPENSHIFT: Final = "argosy.features.kubectl.oc_verbs"
READING: Final = "argosy.features.kubectl.read_verbs"
WRITING: Final = "argosy.features.kubectl.write_verbs"
WAITING: Final = "argosy.features.kubectl.wait_verbs"
PLAIN: Final = "argosy.features.kubectl.cluster_verbs"
ONLY_OC: Final = {
    "whoami": OPENSHIFT, "extract": OPENSHIFT, "start-build": OPENSHIFT, "project": OPENSHIFT,
    "new-project": OPENSHIFT, "login": OPENSHIFT,
}  # fmt: skip
BUILDS: Final = ("bc", "buildconfig", "buildconfigs", "build", "builds")  # kinds whose logs only oc can show
NOT_HERE: Final = (
    "adm", "cancel-build", "idle", "image", "import-image", "logout", "new-app", "new-build", "observe", "policy",
    "process", "projects", "registry", "rollback", "rsh", "rsync", "secrets", "serviceaccounts", "status", "tag",
)  # fmt: skip
VERBS: Final = {
    "get": READING, "describe": READING, "apply": WRITING, "create": WRITING, "patch": WRITING,
    "annotate": WRITING, "label": WRITING, "delete": WRITING, "wait": WAITING, "logs": WAITING,
    "version": PLAIN, "api-resources": PLAIN,
}  # fmt: skip
NO_CLUSTER: Final = ("", "completion", "config", "help", "kustomize", "options", "plugin")  # verbs that need no cluster
OFFLINE: Final = frozenset({"--client", "--help", "--local", "-h"})  # flags with which a verb needs no cluster
CHOOSES_CLUSTER: Final = frozenset({"--cluster", "--context", "--kubeconfig", "--server", "-s"})
HELP: Final = """\
Runs kubectl if it is on PATH. Otherwise a built-in kubectl supports:
  get, describe, wait, logs, apply -f, create, patch, annotate, label, delete, version, api-resources

Examples:
  argosy oc whoami
  argosy kubectl get pods -A
  argosy oc start-build my-model -n llmops-dev

Environment: ARGOSY_KUBECTL is the path of kubectl, or none. See also: docs/reference/cli.md
"""


def add_to(commands: Any, name: str = "kubectl") -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help="run kubectl, or a built-in one if it is not installed",
        description="Works like kubectl" + (", with the verbs of oc." if name == "oc" else "."),
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB …", help="as for kubectl")
    parser.set_defaults(run=lambda chosen: answer(name, chosen.words))


def answer(name: str, words: Sequence[str]) -> int:
    """Run the command and return the exit code; errors are printed as kubectl prints them."""
    from argosy.features.kubectl.flags import verb_of
    from argosy.features.kubectl.installed_programs import real_kubectl

    verb = verb_of(words)
    real = real_kubectl()
    try:
        if real and not (name == "oc" and (verb in (*ONLY_OC, *NOT_HERE) or _asks_for_build_logs(verb, words))):
            _become(real, verb, words)
        if real and (name, verb) == ("oc", "project") and len(words) == 2 and not words[1].startswith("-"):
            context, _ = _choose(verb, words)
            _become(real, "config", ["config", "set-context", context or "--current", "--namespace", words[1]])
        if not verb:
            print(HELP, end="")
            return 0
        return _answered(name, verb, words)
    except ClusterError as error:
        print(f"Error from server ({error.reason or error.code}): {error.message}", file=sys.stderr)
    except (UserError, TransientError) as error:
        print(f"error: {error}", file=sys.stderr)
    return FAILED


def _asks_for_build_logs(verb: str, words: Sequence[str]) -> bool:
    return verb == "logs" and any(word.partition("/")[0].partition(".")[0] in BUILDS for word in words if "/" in word)


def _become(program: str, verb: str, words: Sequence[str]) -> None:
    """Replace this process by the real kubectl, which then talks to the cluster that argosy would choose."""
    context, environment = _choose(verb, words)
    if context and verb not in NO_CLUSTER:
        environment = _with_current_context(context, environment)
    sys.stdout.flush()
    os.execve(program, ["kubectl", *words], environment)  # noqa: S606


def _with_current_context(context: str, environment: dict[str, str]) -> dict[str, str]:
    """Choose the context by KUBECONFIG, not by --context: a plug-in may not know the flag, or have several words."""
    from argosy.features.local.kubeconfig import write_current_context

    paths = environment.get("KUBECONFIG", "").strip(os.pathsep) or os.path.expanduser("~/.kube/config")
    # k8s: of several files, the first that names a current-context wins.
    return {**environment, "KUBECONFIG": f"{write_current_context(context)}{os.pathsep}{paths}"}


def _choose(verb: str, words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the context and the environment for kubectl: flags, ARGOSY_CONTEXT, KUBECONFIG, a running sandbox."""
    environment = dict(os.environ)
    flags = words[: words.index("--")] if "--" in words else words  # the rest is for another program
    names = {flag.partition("=")[0] for flag in flags}
    if _names_cluster(flags):
        return "", environment
    from argosy.cli.running_instances import chosen_folder
    from argosy.cli.target import naming_variable
    from argosy.kube.client.kubeconfig import check_context, contexts, environment_paths

    asks_cluster = verb not in NO_CLUSTER and not names & OFFLINE and "--dry-run=client" not in flags
    if context := environment.get("ARGOSY_CONTEXT", ""):
        if asks_cluster:
            with naming_variable(context):
                check_context(context)
        return context, environment
    if not environment_paths() and (run := chosen_folder(None).running()):
        if run.context and asks_cluster:
            check_context(run.context, [run.kubeconfig])
        return run.context, {**environment, "KUBECONFIG": run.kubeconfig}
    if verb == "project":
        check_context()  # otherwise kubectl would write a context without a cluster
    elif environment_paths() and asks_cluster:
        contexts()  # raises if no file exists: kubectl would try http://localhost:8080
    return "", environment


def _names_cluster(flags: Sequence[str]) -> bool:
    """True if a flag selects the cluster. k8s: a flag with an empty value is ignored."""
    for place, word in enumerate(flags):
        name, has_value, value = word.partition("=")
        if name in CHOOSES_CLUSTER and (value if has_value else "".join(flags[place + 1 : place + 2])):
            return True
    return False


def _answered(name: str, verb: str, words: Sequence[str]) -> int:
    module = VERBS.get(verb) or ONLY_OC.get(verb)
    if name == "oc" and verb in NOT_HERE:
        known = ", ".join(ONLY_OC)
        raise UserError(
            f"oc {verb} is not supported: argosy's oc is kubectl plus {known}; install oc for other commands"
        )
    if module is None:
        known = ", ".join([*VERBS, *ONLY_OC])
        raise UserError(f"{name} {verb} needs kubectl, which is not installed. Supported without it: {known}")
    from argosy.features.kubectl.flags import understood

    asked = understood(verb, words)
    work: Callable[[Talk], Awaitable[int]] = getattr(import_module(module), verb.replace("-", "_"))
    import asyncio

    return asyncio.run(_talk(asked, work))


async def _talk(asked: argparse.Namespace, work: Callable[[Talk], Awaitable[int]]) -> int:
    from argosy.features.kubectl.session import Talk
    from argosy.kube.client.http import connect

    connection = _connection(asked)
    async with await connect(connection) as cluster:
        namespace = asked.namespace or connection.namespace
        return await work(Talk(cluster, namespace, asked, connection.name, connection.server))


def _connection(asked: argparse.Namespace) -> Connection:
    from pathlib import Path

    from argosy.cli.target import TargetOptions, find_target

    kubeconfig = Path(asked.kubeconfig) if asked.kubeconfig else None
    return find_target(TargetOptions(asked.context, kubeconfig)).connection
