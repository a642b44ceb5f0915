"""The verbs `version` and `api-resources`.

In: KubectlSession. Out: printed text. Never: writes to the cluster.
"""

from __future__ import annotations

from argosy import __version__
from argosy.features.kubectl.read_verbs import print_rows
from argosy.features.kubectl.session import KubectlSession, print_lines
from argosy.kube.resource_key import join_api_version


async def version(session: KubectlSession) -> int:
    print_lines(f"Client Version: built-in kubectl of argosy {__version__}")
    if not session.args.client:
        print_lines(f"Server: {session.server}")
    return 0


async def api_resources(session: KubectlSession) -> int:
    rows = [
        [info.plural, ",".join(info.short_names), join_api_version(kind.group, info.version),
         str(info.namespaced).lower(), kind.kind]
        for kind, info in sorted((await session.cluster.kinds()).items())
    ]  # fmt: skip
    print_rows(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], rows)
    return 0
