#!/usr/bin/env bash
# Verifies that the health checks are in the ArgoCD custom resource and in argocd-cm, and lists the Applications. See README.md.
set -euo pipefail

# --- the same lines in all four scripts: find argosy ---
# $ARGOSY, else .venv of the checkout that contains this file, else PATH. Uses no other program.
case ${BASH_SOURCE[0]} in
  */*) here=$(cd -- "${BASH_SOURCE[0]%/*}" && pwd -P) ;;
  *) here=$PWD ;;
esac

find_argosy() {
  local folder=$here checkout=PATH-OF-ITS-CHECKOUT
  if [[ -n ${ARGOSY:-} ]]; then
    argosy=$(command -v -- "$ARGOSY") && return
    printf 'Error: ARGOSY is set to %s, which is not a program\n' "$ARGOSY" >&2
    exit 3
  fi
  while [[ -n $folder ]]; do
    argosy=$folder/.venv/bin/argosy
    [[ -x $argosy ]] && return
    [[ -f $folder/src/argosy/__init__.py ]] && checkout=$folder
    folder=${folder%/*}
  done
  argosy=$(command -v argosy) && return
  printf 'Error: argosy was not found. Install it with: make -C %s install\n' "$checkout" >&2
  exit 3
}
# --- end of the same lines ---

usage() {
  printf '%s\n' \
    "Usage: ${0##*/} [OPTIONS]" \
    "" \
    "Check that the health checks for KServe are in the ArgoCD custom resource and reached argocd-cm," \
    "and show the state of applications and InferenceServices. Changes nothing." \
    "" \
    "Options:" \
    "  -h, --help     Show this help" \
    "" \
    "The work is done by: argosy health verify"
}

while (($#)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    *)
      printf 'Unknown option: %s\nUse -h or --help for usage information\n' "$1"
      exit 1
      ;;
  esac
done

find_argosy
exec "$argosy" health verify
