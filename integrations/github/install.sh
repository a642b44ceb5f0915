#!/usr/bin/env bash
# The argosy that this action is part of, in an environment of its own: the version is the one after the @ of `uses`.
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
