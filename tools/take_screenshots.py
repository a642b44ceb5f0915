"""Pictures of the page for README and the guides: starts the demo, delivers an example, breaks something, and looks.

In: docs/images as the target, Chromium, playwright. Out: page-NAME-light.png and page-NAME-dark.png of 256 colours.
Development only; nothing of it ships. Run: python tools/take_screenshots.py [NAME…]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "images"
ARGOSY = [sys.executable, "-m", "argosy"]
STAGING, NOTEBOOKS = "/apps/argocd/llmops-staging", "/apps/argocd/notebooks-to-serving"
ROLLOUT = "/apps/argocd/rollout"
COLOURS, FREQUENT = 256, 96
WIDE, PHONE = (1200, 750), (390, 780)
SHOTS: dict[str, tuple[str, tuple[int, int]]] = {
    "apps": ("/apps", WIDE),
    "tiles": ("/apps?view=tiles", WIDE),
    "summary": ("/apps?view=summary", WIDE),
    "tree": (STAGING, WIDE),
    "resources": (f"{STAGING}/resources", WIDE),
    "diff": (f"{STAGING}/diff", WIDE),
    "waves": (f"{ROLLOUT}/operation", WIDE),
    "sync": (f"{STAGING}/sync", WIDE),
    "rollback": (f"{STAGING}/rollback", WIDE),
    "delete": (f"{STAGING}/delete", WIDE),
    "plan": ("/apps/plan?do=sync&app=argocd/llmops-staging&app=argocd/llmops-production&app=argocd/rollout", WIDE),
    "object": (f"{STAGING}/r/serving.kserve.io/InferenceService/llmops-staging/staging-qwen25-05b-instruct", WIDE),
    "parameters": (f"{STAGING}/parameters", WIDE),
    "policy": (f"{STAGING}/settings", WIDE),
    "history": (f"{STAGING}/history", WIDE),
    "events": (f"{STAGING}/events", WIDE),
    "logs": (f"{NOTEBOOKS}/logs", WIDE),
    "manifest": (f"{STAGING}/manifest", WIDE),
    "models": ("/models", WIDE),
    "model": ("/models/ml-platform/fraud-detection-model", WIDE),
    "notebooks": ("/notebooks", WIDE),
    "run": ("/notebooks/ml-platform/model-training/runs/1", WIDE),
    "environments": ("/environments", WIDE),
    "promote": ("/environments/staging/promote", WIDE),
    "activity": ("/activity", WIDE),
    "doctor": ("/doctor", WIDE),
    "settings": ("/settings", WIDE),
    "projects": ("/settings/projects", WIDE),
    "project": ("/settings/projects/default", WIDE),
    "repositories": ("/settings/repositories", WIDE),
    "clusters": ("/settings/clusters", WIDE),
    "accounts": ("/settings/accounts", WIDE),
    "appearance": ("/settings/appearance", WIDE),
    "health": ("/settings/health", WIDE),
    "error": ("/apps/argocd/nosuch", WIDE),
    "empty": ("/apps?q=nosuch", WIDE),
    "login": ("/login", WIDE),
    "api": ("/api/docs", WIDE),
    "phone-apps": ("/apps", PHONE),
    "phone-app": (STAGING, PHONE),
}


# -- the scene --------------------------------------------------------------------------------------------------------


@contextmanager
def staged(home: Path) -> Iterator[str]:
    """The address that lets somebody in, once."""
    env = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "PYTHONPATH": str(ROOT / "src")}
    env["KUBECONFIG"] = str(home / "config")
    command = [*ARGOSY, "demo", "--argocd=plain", "--port", "0", "--api-port", "0", "--no-browser"]
    demo = subprocess.Popen([*command, "--kubeconfig", env["KUBECONFIG"]], env=env, stdout=subprocess.PIPE, text=True)
    try:
        output = "".join(iter(lambda: _until_ready(demo), ""))
        _deliver(home, env)
        match = re.search(r"http://\S+(?=/enter)", output)
        assert match, output
        opened = subprocess.run([*ARGOSY, "open", "--no-browser"], env=env, capture_output=True, text=True, check=False)
        yield next(iter(re.findall(r"http://\S+/enter\S+", opened.stdout + opened.stderr)), "")
    finally:
        demo.terminate()
        demo.wait(60)


def _until_ready(demo: subprocess.Popen[str]) -> str:
    assert demo.stdout
    line = demo.stdout.readline()
    return "" if "Ctrl-C" in line else line


def _deliver(home: Path, env: dict[str, str]) -> None:
    """As docs/guides/notebooks-with-argocd.md; then an accident."""
    where = json.loads(subprocess.check_output([*ARGOSY, "demo", "status", "-o", "json"], env=env))
    work = home / "work"
    git = ["git", "-c", "user.name=Ann Engineer", "-c", "user.email=ann@example.com", "-C", str(work)]
    subprocess.run(["git", "clone", "-q", where["repository"], str(work)], env=env, check=True)
    shutil.copytree(ROOT / "examples" / "notebooks-to-serving", work / "notebooks-to-serving")
    _write_rollout(work / "rollout")
    for words in (["add", "."], ["commit", "-qm", "A model of frauds"], ["push", "-q"]):
        subprocess.run([*git, *words], env=env, check=True)
    for line in (
        f"kubectl apply -n argocd -f {work}/notebooks-to-serving/application.yaml",
        "app refresh notebooks-to-serving",
        "app wait notebooks-to-serving --sync --health --timeout 120",
        f"kubectl apply -n argocd -f {work}/rollout/application.yaml",
        "app refresh rollout",
        "demo break model",
        "demo break drift",
    ):
        subprocess.run([*ARGOSY, *line.split()], env=env, check=True, stdout=subprocess.DEVNULL)
    time.sleep(8)  # until the accident has reached the page


def _write_rollout(folder: Path) -> None:
    """Three waves, of which the second waits for an image that nobody built."""
    (folder / "manifests").mkdir(parents=True)
    labels = {"app": "features"}
    container = {"name": "main", "image": "registry.example.com/features:does-not-exist"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    manifests = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _waved("settings", 0), "data": {"mode": "steady"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _waved("features", 1), "spec": spec},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _waved("announced", 2), "data": {"done": "yes"}},
    )
    for manifest in manifests:
        (folder / "manifests" / f"{manifest['metadata']['name']}.yaml").write_text(json.dumps(manifest, indent=2))
    app = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "rollout"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://github.com/your-org/llmops-demo.git", "targetRevision": "main",
                       "path": "rollout/manifests"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "features"},
            "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
        },
    }  # fmt: skip
    (folder / "application.yaml").write_text(json.dumps(app, indent=2))


def _waved(name: str, wave: int) -> dict[str, Any]:
    return {"name": name, "annotations": {"argocd.argoproj.io/sync-wave": str(wave)}}


# -- the pictures -----------------------------------------------------------------------------------------------------


def take(entrance: str, names: list[str]) -> None:
    base = entrance.partition("/enter")[0]
    with sync_playwright() as playwright:
        executable = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        door = browser.new_context()
        page = door.new_page()
        page.goto(entrance)
        page.wait_for_url("**/apps")
        for theme in ("light", "dark"):
            context = browser.new_context(storage_state=door.storage_state(), base_url=base)
            context.add_cookies([{"name": "argosy-theme", "value": theme, "url": base}])
            for name in names:
                if name != "login":
                    _shoot(context, name, theme)
            context.clear_cookies(name=re.compile("^argosy(?!-theme)"))
            if "login" in names:
                _shoot(context, "login", theme)
            context.close()
        browser.close()


def _shoot(context: Any, name: str, theme: str) -> None:
    path, (width, height) = SHOTS[name]
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    answer = page.goto(path)
    page.wait_for_timeout(400)  # fonts, and the first beat of the stream
    target = TARGET / f"page-{name}-{theme}.png"
    target.write_bytes(with_few_colours(page.screenshot()))
    print(f"{target.name}: {answer.status}, {target.stat().st_size // 1024} KiB")
    page.close()


def with_few_colours(picture: bytes) -> bytes:
    """The same with 256 colours at most: the most frequent ones, and for every other the nearest of these."""
    width, height, channels, rows = _pixels(picture)
    pixels = [row[at : at + 3] for row in rows for at in range(0, width * channels, channels)]
    counted = Counter(pixels)
    palette = _palette(counted)
    palette_index = {colour: number for number, colour in enumerate(palette)}
    for colour in counted:
        if colour not in palette_index:
            palette_index[colour] = min(range(len(palette)), key=lambda at: _distance(palette[at], colour))
    lines = (bytes(palette_index[pixel] for pixel in pixels[at : at + width]) for at in range(0, width * height, width))
    data = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _palette(counted: Counter[bytes]) -> list[bytes]:
    """The most frequent colours, and those of small things, such as a glyph's, that are far from all of these."""
    chosen = [colour for colour, _ in counted.most_common(FREQUENT)]
    left = {
        colour: min(_distance(colour, candidate) for candidate in chosen) for colour in counted if colour not in chosen
    }
    while left and len(chosen) < COLOURS:
        added = max(left, key=lambda colour: left[colour] * counted[colour])
        chosen.append(added)
        left = {colour: min(far, _distance(colour, added)) for colour, far in left.items() if colour != added}
    return chosen


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixels(picture: bytes) -> tuple[int, int, int, list[bytes]]:
    """Width, height, bytes a pixel, and the rows, of a PNG as Chromium writes it: eight bits, not interlaced."""
    at, packed, width, height, channels = 8, b"", 0, 0, 3
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colours = struct.unpack(">IIBB", data[:10])
            channels = 4 if colours == 6 else 3
        packed += data if kind == b"IDAT" else b""
        at += size + 12
    return width, height, channels, _unfiltered(zlib.decompress(packed), width * channels, channels)


def _unfiltered(data: bytes, length: int, channels: int) -> list[bytes]:
    rows: list[bytes] = []
    above = bytearray(length)
    for start in range(0, len(data), length + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + length])
        for at in range(length if kind else 0):
            left = row[at - channels] if at >= channels else 0
            corner = above[at - channels] if at >= channels else 0
            row[at] = (row[at] + _predicted(kind, left, above[at], corner)) & 255
        rows.append(bytes(row))
        above = row
    return rows


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    return min((left, up, corner), key=lambda neighbour: abs(left + up - corner - neighbour))


def main(names: list[str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, staged(Path(home)) as entrance:
        take(entrance, names or list(SHOTS))


if __name__ == "__main__":
    main(sys.argv[1:])
