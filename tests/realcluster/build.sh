#!/bin/sh
# Builds a real control plane, once, from the Go modules that go.mod pins, into a cache outside the checkout.
# kube-apiserver, kube-controller-manager, etcd; the contract tests and benchmarks use them if they are there.
# And load, the benchmarks' client, which needs no module but Go's own; it is built anew when its source is newer.
# Usage: build.sh [PROGRAM...]; all four if none is named.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/argosy/realcluster"

missing=""
for program in ${*:-kube-apiserver kube-controller-manager etcd load}; do
    if [ "$program" = load ] && [ "$here/load/main.go" -nt "$cache/load" ]; then
        rm -f "$cache/load"
    fi
    [ -x "$cache/$program" ] || missing="$missing $program"
done
if [ -z "$missing" ]; then
    echo "realcluster: all there in $cache"
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "realcluster: go is not in PATH; install Go 1.23 or newer, then run this again" >&2
    exit 3
fi

mkdir -p "$cache"
version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
major=$(echo "$version" | cut -d. -f1 | tr -d v)
minor=$(echo "$version" | cut -d. -f2)
stamp="k8s.io/component-base/version"

# name, package
build() {
    echo "realcluster: building $1 (a control plane takes some minutes the first time)"
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -o "$cache/.$1.new" \
        -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" "$2")
    mv "$cache/.$1.new" "$cache/$1"
}

for program in $missing; do
    case "$program" in
        load) build load ./load ;;
        etcd) build etcd go.etcd.io/etcd/server/v3 ;;
        *) build "$program" "k8s.io/kubernetes/cmd/$program" ;;
    esac
done
echo "realcluster: ready in $cache"
