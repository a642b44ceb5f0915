#!/usr/bin/env bash
# Runs all checks that must pass before a merge, in the order of the pipeline. All of them run; the exit code is 1 if one
# fails. Needs kustomize or kubectl, and python3 with PyYAML. Needs no cluster and no network.
set -euo pipefail

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
export PYTHONDONTWRITEBYTECODE=1

status=0
step() {
  echo "== $1"
  shift
  "$@" || status=1
}
step "kustomize build" "$scripts/render.sh" "$out"
step "YAML lint" "$python" "$scripts/lint_yaml.py"
step "security scan" "$python" "$scripts/scan_security.py" "$out"
step "custom tests" "$python" "$scripts/check_delivery.py" "$out"

if ((status)); then
  echo "✗ not ready to merge"
else
  echo "✓ ready to merge"
fi
exit "$status"
