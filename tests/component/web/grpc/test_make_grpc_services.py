"""The bundled table of gRPC services is what the tool makes from Argo CD's sources."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.web.grpc.service_table import load_table
from support.argocd.programs import find_folder

ROOT = Path(__file__).parents[4]
TOOL = ROOT / "tools/make_grpc_services.py"
SOURCE = find_folder() / "source"


@pytest.mark.skipif(not (SOURCE / "server").is_dir(), reason="Argo CD's sources are not in the cache")
def test_bundled_table_matches_the_generator_output(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(TOOL), str(SOURCE), "--into", str(tmp_path)], check=True, capture_output=True)
    assert json.loads(gzip.decompress((tmp_path / "services.json.gz").read_bytes())) == load_table()


def test_an_incomplete_proto_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "server/application"
    folder.mkdir(parents=True)
    (tmp_path / "pkg/apis/application/v1alpha1").mkdir(parents=True)
    (tmp_path / "pkg/apis/application/v1alpha1/generated.proto").write_text("package v1alpha1; message A { broken }")
    (tmp_path / "reposerver/repository").mkdir(parents=True)
    (tmp_path / "reposerver/repository/repository.proto").write_text("package repository;")
    done = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path), "--into", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "proto_source: the file ends too early" in done.stderr
    assert not (tmp_path / "services.json.gz").exists()


def test_import_does_not_load_the_table() -> None:
    script = "from argosy.web.grpc.service_table import load_table; print(load_table.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
