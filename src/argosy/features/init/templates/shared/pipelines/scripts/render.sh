#!/bin/sh
# Renders every overlay into a file in a folder: render.sh FOLDER. Needs kustomize or kubectl, and no cluster.
# Plain sh, because the kustomize image has no other shell.
set -eu

case ${1:-} in
  "" | -*)
    echo "Usage: ${0##*/} FOLDER" >&2
    exit 2
    ;;
esac
out=$1
overlays=$(cd -- "$(dirname -- "$0")/../../deploy_model/overlays" && pwd)

if command -v kustomize >/dev/null; then
  build="kustomize build"
elif command -v kubectl >/dev/null; then
  build="kubectl kustomize"
else
  echo "Error: neither kustomize nor kubectl was found" >&2
  exit 2
fi

mkdir -p -- "$out"
status=0
for overlay in "$overlays"/*/; do
  name=$(basename -- "$overlay")
  # shellcheck disable=SC2086 # two words on purpose
  if $build "$overlay" >"$out/$name.yaml"; then
    echo "✓ $name builds"
  else
    rm -f -- "$out/$name.yaml"
    echo "✗ $name does not build"
    status=1
  fi
done
exit "$status"
