"""Called as `argocd`: its commands, its outputs where scripts read them, its exit code.

In: what was typed after argocd. Out: an exit code. Never: talks to a server: flags that choose one are ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from argosy import __version__

FAILED: Final = 20  # argo: every failure, whatever it is
KEPT: Final = (0, 130)
KNOWN: Final = ("app", "proj", "version")
# Flags that every command of argocd takes, and that say how to reach a server: there is none.
WITH_VALUE: Final = frozenset({
    "--argocd-context", "--auth-token", "--client-crt", "--client-crt-key", "--config", "--controller-name",
    "--grpc-web-root-path", "--header", "-H", "--http-retry-max", "--logformat", "--loglevel",
    "--port-forward-namespace", "--redis-compress", "--redis-haproxy-name", "--redis-name", "--repo-server-name",
    "--server", "--server-crt", "--server-name",
    # These say how much its server may do at once.
    "--ignore-normalizer-jq-execution-timeout", "--server-side-diff-concurrency", "--server-side-diff-max-batch-kb",
})  # fmt: skip
SWITCHES: Final = frozenset({
    "--core", "--grpc-web", "--insecure", "--plaintext", "--port-forward", "--prompts-enabled",
    "--server-side-generate",
})  # fmt: skip
RENAMED: Final = {"--kube-context": "--context"}


def answer(arguments: Sequence[str], run: Callable[..., int]) -> int:
    words = without_server(arguments)
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in KNOWN:
        print(f"argosy: as argocd, {command or 'nothing'!r} is not known", file=sys.stderr)
        print(f"next: it knows {', '.join(KNOWN)}; argosy --help tells more", file=sys.stderr)
        return FAILED
    if command == "version":
        return _version(words)
    try:
        code = run(words, is_compat=True)
    except SystemExit as ended:
        code = int(ended.code or 0)
    if code in KEPT or (code == 1 and words[:2] == ["app", "diff"]):
        return code
    return FAILED


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


def _version(words: Sequence[str]) -> int:
    name = f"argocd: v{__version__}+argosy"
    if "--short" in words or "--client" in words:
        print(name)
    else:
        print(f"{name}\nargocd-server: none (argosy needs no server)")
    return 0
