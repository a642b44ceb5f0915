#!/bin/sh
# Builds the operator of OpenShift GitOps (argocd-operator), once, from its Go module, into a cache outside the checkout.
# The cache keeps its source too: its CRDs and the scripts of redis that it reads.
# Usage: build_operator.sh [VERSION]
set -eu

version=${1:-v0.17.0}
module="github.com/argoproj-labs/argocd-operator"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/argosy/argocd-operator/$version"
source="$cache/source"

if [ -x "$cache/argocd-operator" ]; then
    echo "argocd-operator: $version is in $cache"
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "argocd-operator: go is not in PATH; install Go 1.25 or newer, then run this again" >&2
    exit 3
fi
mkdir -p "$cache"

if [ ! -d "$source" ]; then
    echo "argocd-operator: downloading the source of $version"
    folder=$(cd "$cache" && GOFLAGS=-mod=mod go mod download -json "$module@$version" |
        sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    if [ -z "$folder" ]; then
        echo "argocd-operator: go cannot download $module@$version; run: go mod download -json $module@$version" >&2
        exit 3
    fi
    rm -rf "$source.new"
    cp -r "$folder" "$source.new"  # its replace lines make go install refuse it
    chmod -R u+w "$source.new"
    mv "$source.new" "$source"
fi
echo "argocd-operator: building (six minutes of CPU the first time)"
(cd "$source" && CGO_ENABLED=0 nice -n 10 go build -trimpath -ldflags "-s -w" -o "$cache/.argocd-operator.new" ./cmd)
mv "$cache/.argocd-operator.new" "$cache/argocd-operator"
echo "argocd-operator: ready in $cache"
