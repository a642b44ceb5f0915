#!/bin/sh
# Writes the Git credentials to the Secrets that builds, notebooks and ExternalSecrets read.
# In: GITEA_USERNAME and GITEA_PASSWORD, else the credentials of the Gitea object in the cluster. Out: two Secrets in $NAMESPACE.
# Never prints a password, and never passes one as a command argument, which the process list would show.
set -eu
set +x

OC="${OC:-oc}"
NAMESPACE="${NAMESPACE:-self-healing-platform}"
GITEA_NAME="${GITEA_NAME:-gitea-with-admin}"
GITEA_NAMESPACE="${GITEA_NAMESPACE:-gitea}"

fail() {
  echo "load-env-secrets: $1" >&2
  exit 1
}

of_gitea() {
  "$OC" get gitea.pfe.rhpds.com "$GITEA_NAME" -n "$GITEA_NAMESPACE" -o "jsonpath={$1}"
}

if [ -n "${GITEA_USERNAME:-}" ] && [ -n "${GITEA_PASSWORD:-}" ]; then
  from="the environment"
elif [ -n "${GITEA_USERNAME:-}${GITEA_PASSWORD:-}" ]; then
  fail "GITEA_USERNAME and GITEA_PASSWORD belong together; set both, or none to ask the cluster"
else
  from="Gitea $GITEA_NAME in namespace $GITEA_NAMESPACE"
  GITEA_USERNAME=$(of_gitea .spec.giteaAdminUser) || fail "$from cannot be read; set GITEA_USERNAME and GITEA_PASSWORD instead"
  GITEA_PASSWORD=$(of_gitea .status.adminPassword) || fail "$from cannot be read; set GITEA_USERNAME and GITEA_PASSWORD instead"
  [ -n "$GITEA_USERNAME" ] || fail "$from names no spec.giteaAdminUser"
  [ -n "$GITEA_PASSWORD" ] || fail "$from has no status.adminPassword yet; wait until it is ready, then run this again"
fi

encoded() {
  printf '%s' "$1" | base64 | tr -d '\n'
}

# printf is a shell builtin, so the values pass only through a pipe. Server-side apply stores no copy in an annotation.
write_secret() {
  printf '%s\n' "apiVersion: v1" "kind: Secret" "type: $2" "metadata:" "  name: $1" "  namespace: $NAMESPACE" "  labels:" \
    "    app.kubernetes.io/component: external-secrets" "    app.kubernetes.io/managed-by: load-env-secrets" \
    "data:" "  username: $(encoded "$GITEA_USERNAME")" "  password: $(encoded "$GITEA_PASSWORD")" |
    "$OC" apply --server-side --force-conflicts --field-manager=load-env-secrets -f -
}

echo "credentials of $from go to namespace $NAMESPACE"
write_secret gitea-credentials-source Opaque
write_secret git-credentials-source kubernetes.io/basic-auth
