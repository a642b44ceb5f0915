"""An engine that requires confinement on a kernel without seccomp: Application conditions and what still works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.isolation import landlock, seccomp
from argosy.isolation.confinement_requirement import POD_VARIABLE, REFUSAL
from support import weaker_kernel
from support.deadlines import HANG_SECONDS

pytestmark = [
    pytest.mark.skipif(
        not seccomp.is_supported() or landlock.find_abi_version() < 4, reason="needs Landlock and the filter"
    ),
    pytest.mark.skipif(find_spec("_gojsonnet") is None, reason="gojsonnet is not installed"),
]
ENGINE = """
import asyncio, json, sys
from pathlib import Path
from support.deadlines import HANG_SECONDS
from support.engine import config_map, engine_room
from argosy.gitops.engine.liveness import ControllerHealth

CHECK = "resource.customizations.health.ConfigMap"

async def main():
    folder = Path(sys.argv[1])
    async with engine_room(folder, {CHECK: "return {status = 'Healthy'}"}) as room:
        room.repository.push({
            "jsonnet/a.jsonnet": json.dumps(config_map("made", a="1")),
            "plain/a.yaml": config_map("plain", a="1"),
        })
        automatic = {"syncPolicy": {"automated": {}}}
        await room.deliver("made", "jsonnet", **automatic)
        await room.deliver("plain", "plain", **automatic)
        refused = await room.until_condition("ComparisonError", "made")
        judged = await room.until_condition("UnknownError", "plain")
        vitals = ControllerHealth(8, clock=room.clock)
        vitals.engine = room.engine
        async with asyncio.timeout(HANG_SECONDS):
            while not room.engine.confinement.list_problems():
                await asyncio.sleep(0.01)
        print(json.dumps({
            "source": refused,
            "made": await room.get("ConfigMap", "made"),
            "plain": await room.get("ConfigMap", "plain"),
            "health": judged,
            "troubles": vitals.list_problems(),
        }))

asyncio.run(main())
"""


def test_missing_confinement_sets_conditions_and_plain_manifests_still_sync(tmp_path: Path) -> None:
    done = subprocess.run(
        [*weaker_kernel.command("seccomp"), sys.executable, "-c", ENGINE, str(tmp_path)],
        capture_output=True, timeout=HANG_SECONDS, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), POD_VARIABLE: "10.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    conditions = json.loads(done.stdout)
    for condition in (conditions["source"], conditions["health"]):
        assert REFUSAL in str(condition) and "system calls (no seccomp filter)" in str(condition)
    assert conditions["made"] is None and conditions["plain"] is not None
    assert [trouble for trouble in conditions["troubles"] if trouble.startswith(REFUSAL)]
