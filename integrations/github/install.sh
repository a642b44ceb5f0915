#!/usr/bin/env bash
# Installs the argosy of this action into its own virtual environment: its version is the ref after the @ in `uses`.
set -euo pipefail

place=$RUNNER_TEMP/argosy
[ -x "$place/bin/argosy" ] && exit 0
if ! "$INPUT_PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "::error title=argosy::needs Python 3.11 or newer; add a step actions/setup-python before, or set the input python"
  exit 2
fi
"$INPUT_PYTHON" -m venv "$place"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
"$place/bin/argosy" --version
