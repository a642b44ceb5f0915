#!/bin/sh
# Builds Argo CD, its end-to-end tests and kustomize, once, from Go modules, into a cache outside the checkout.
# The cache keeps Argo CD's source too: its manifests, its test data, and the folder in which its end-to-end tests run.
# Of another version than the tested one it builds everything but the end-to-end tests.
# Usage: [ARGOSY_ARGOCD_VERSION=VERSION] build.sh [VERSION]
set -eu

tested=v3.5.6
version=${1:-${ARGOSY_ARGOCD_VERSION:-$tested}}
version="v${version#v}"
module="github.com/argoproj/argo-cd/v$(echo "${version#v}" | cut -d. -f1)"
case "$version" in
    v2.*) kustomize=v5.4.3 ;;  # the one in the image of Argo CD 2.14
    *) kustomize=v5.6.0 ;;  # the one in the image of Argo CD 3.0; newer ones need a newer Go
esac
cache="${XDG_CACHE_HOME:-$HOME/.cache}/argosy/argocd/$version"
source="$cache/source"

if [ -x "$cache/argocd" ] && [ -x "$cache/kustomize" ] && { [ "$version" != "$tested" ] || [ -x "$cache/e2e.test" ]; }; then
    echo "argocd: $version is in $cache"
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "argocd: go is not in PATH; install Go 1.26 or newer, then run this again" >&2
    exit 3
fi
mkdir -p "$cache"

# module@version; prints its folder in Go's module cache
download() {
    (cd "$cache" && GOFLAGS=-mod=mod go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

if [ ! -d "$source" ]; then
    echo "argocd: downloading the source of $version"
    folder=$(download "$module@$version")
    if [ -z "$folder" ]; then
        echo "argocd: there is no $module@$version; newest versions:" >&2
        (cd "$cache" && go list -m -versions "$module") | tr ' ' '\n' | grep -v -e - | tail -n 8 >&2
        rmdir "$cache"
        exit 2
    fi
    rm -rf "$source.new"
    cp -r "$folder" "$source.new"
    chmod -R u+w "$source.new"
    chmod +x "$source.new"/hack/*.sh  # the repo-server runs some of them; module archives keep no modes
    if grep -q 'gitops-engine => ./gitops-engine' "$source.new/go.mod"; then
        # A module of its own, which the archive of Argo CD does not have.
        engine=$(download github.com/argoproj/argo-cd/gitops-engine@latest)
        rm -rf "$source.new/gitops-engine"
        cp -r "$engine" "$source.new/gitops-engine"
        chmod -R u+w "$source.new/gitops-engine"
    fi
    mkdir -p "$source.new/ui/dist/app/assets/images/resources"
    echo "not built" >"$source.new/ui/dist/app/index.html"  # embedded in the program
    echo "not built" >"$source.new/ui/dist/app/assets/images/resources/none.svg"
    mv "$source.new" "$source"
fi

# name, go command, package
build() {
    if [ ! -x "$cache/$1" ]; then
        echo "argocd: building $1 (Argo CD takes eight minutes of CPU the first time)"
        (cd "$source" && CGO_ENABLED=0 go $2 -o "$cache/.$1.new" \
            -ldflags "-s -w -X $module/common.version=${version#v}" "$3")
        mv "$cache/.$1.new" "$cache/$1"
    fi
}

build argocd "build -trimpath" ./cmd
if [ "$version" = "$tested" ]; then
    build e2e.test "test -c -vet=off" ./test/e2e
fi
if [ ! -x "$cache/kustomize" ]; then
    echo "argocd: building kustomize"
    (cd "$cache" && CGO_ENABLED=0 GOBIN="$cache/.gobin" go install "sigs.k8s.io/kustomize/kustomize/v5@$kustomize")
    mv "$cache/.gobin/kustomize" "$cache/kustomize"
    rmdir "$cache/.gobin"
fi
for component in server application-controller repo-server applicationset-controller commit-server notifications; do
    ln -sfn argocd "$cache/argocd-$component"
done
echo "argocd: ready in $cache"
