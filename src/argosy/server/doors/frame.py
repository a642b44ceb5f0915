"""What every page knows beside its own values.

In: a request. Out: values for templates. Never: a secret; the token of forms is of this session alone.
"""

from __future__ import annotations

from typing import Any

from argosy.server.asked import Asked
from argosy.server.files import address


def frame_values(asked: Asked) -> dict[str, Any]:
    options = asked.site.options
    caller = asked.caller
    return {
        "site": {"title": options.title, "version": options.version, "is_simulated": options.is_simulated},
        "me": {"name": caller.name, "is_nobody": caller.is_nobody},
        "csrf": asked.csrf,
        "path": asked.path,
        "query": {name: asked.query[name] for name in asked.query},
        "files": {name: address(name) for name in ("argosy.css", "argosy.js", "sprite.svg")},
    }
