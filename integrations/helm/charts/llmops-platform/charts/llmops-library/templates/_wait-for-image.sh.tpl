{{- define "llmops-library.wait-for-image.script" -}}
# Waits until an image stream tag exists. Exits with 0 if it does; with 1 if its build failed, permissions are missing,
# or the timeout is over; with 2 if a setting is invalid. The settings are environment variables:
#   IMAGE_TAG     name:tag to wait for
#   NAMESPACE     namespace of the image stream
#   BUILD_CONFIG  BuildConfig whose builds are watched; empty: none
#   TIMEOUT       seconds to wait
#   INTERVAL      seconds between two checks
#   AUTO_START    true: start a build if there is none
set -u
IMAGE_TAG="${IMAGE_TAG:-}"
NAMESPACE="${NAMESPACE:-}"
BUILD_CONFIG="${BUILD_CONFIG:-}"
TIMEOUT="${TIMEOUT:-3600}"
INTERVAL="${INTERVAL:-30}"
AUTO_START="${AUTO_START:-false}"

wrong() {
  echo "wait-for-image: $1" >&2
  exit 2
}

case "$IMAGE_TAG" in ?*:?*) ;; *) wrong "IMAGE_TAG is \"$IMAGE_TAG\"; it must be name:tag" ;; esac
case "$NAMESPACE" in '') wrong "NAMESPACE is not set" ;; esac
case "$TIMEOUT" in '' | *[!0-9]* | 0?*) wrong "TIMEOUT is \"$TIMEOUT\"; it must be a whole number of seconds" ;; esac
case "$INTERVAL" in '' | *[!0-9]* | 0?*) wrong "INTERVAL is \"$INTERVAL\"; it must be a whole number of seconds" ;; esac

STARTED=$(date +%s)
ELAPSED=0
LOOKS_WITHOUT_BUILD=0

give_up() {
  echo "image stream tag $IMAGE_TAG in namespace $NAMESPACE: $1" >&2
  exit 1
}

# Without permissions the tag is never visible: fail now instead of after the timeout.
refuse_if_forbidden() {
  case "$1" in
  *orbidden*) give_up "$1 (the Job's service account needs get, list, watch on imagestreams, imagestreamtags and builds)" ;;
  esac
}

# Sets PROBLEM: empty if the tag exists, otherwise the reason.
look_at_tag() {
  if PROBLEM=$(oc get imagestreamtag "$IMAGE_TAG" -n "$NAMESPACE" -o name --request-timeout=30s 2>&1 >/dev/null); then
    PROBLEM=""
  else
    PROBLEM="${PROBLEM:-oc printed no error}"
  fi
}

# Prints a line "build NAME PHASE" for each build, the newest last; other lines are warnings.
list_builds() {
  oc get builds -n "$NAMESPACE" -l "buildconfig=$BUILD_CONFIG" --sort-by=.metadata.creationTimestamp --request-timeout=30s \
    -o 'jsonpath={range .items[*]}{"build "}{.metadata.name}{" "}{.status.phase}{"\n"}{end}' 2>&1
}

# A trigger of the BuildConfig may start the first build a moment after its creation, so one check without a build is not enough.
start_build_if_none_comes() {
  LOOKS_WITHOUT_BUILD=$((LOOKS_WITHOUT_BUILD + 1))
  if [ "$AUTO_START" != true ] || [ "$LOOKS_WITHOUT_BUILD" -ne 2 ]; then
    echo "$ELAPSED s: no build of $BUILD_CONFIG yet"
    return
  fi
  echo "$ELAPSED s: no build of $BUILD_CONFIG exists; starting one"
  SAID=$(oc start-build "$BUILD_CONFIG" -n "$NAMESPACE" 2>&1) || give_up "no build could be started: $SAID"
  echo "$SAID"
}

# Sets PAUSE, or exits: a failed build never creates the tag.
look_at_build() {
  if ! BUILDS=$(list_builds); then
    refuse_if_forbidden "$BUILDS"
    echo "$ELAPSED s: builds cannot be read: $BUILDS"
    return
  fi
  NEWEST=$(printf '%s\n' "$BUILDS" | sed -n 's/^build //p' | tail -n 1)
  if [ -z "$NEWEST" ]; then
    start_build_if_none_comes
    return
  fi
  NAME="${NEWEST%% *}"
  PHASE="${NEWEST#* }"
  case "$PHASE" in
  Failed | Error | Cancelled)
    MESSAGE=$(oc get build "$NAME" -n "$NAMESPACE" -o 'jsonpath={.status.message}' 2>/dev/null)
    give_up "build $NAME ended as $PHASE: ${MESSAGE:-no message}. See: oc logs build/$NAME -n $NAMESPACE. \
After the repair: oc start-build $BUILD_CONFIG -n $NAMESPACE, then sync again"
    ;;
  Complete)
    echo "$ELAPSED s: build $NAME is complete; its tag must appear"
    [ "$PAUSE" -le 5 ] || PAUSE=5
    ;;
  *) echo "$ELAPSED s: build $NAME is ${PHASE:-New}" ;;
  esac
}

echo "waiting for image stream tag $IMAGE_TAG in namespace $NAMESPACE, at most $TIMEOUT s"
while :; do
  look_at_tag
  if [ -z "$PROBLEM" ]; then
    echo "image stream tag $IMAGE_TAG is there after $ELAPSED s"
    exit 0
  fi
  refuse_if_forbidden "$PROBLEM"
  case "$PROBLEM" in *"not found"*) ;; *) echo "$ELAPSED s: the tag cannot be read: $PROBLEM" ;; esac
  [ "$ELAPSED" -lt "$TIMEOUT" ] || give_up "not there after $TIMEOUT s"
  PAUSE="$INTERVAL"
  [ -z "$BUILD_CONFIG" ] || look_at_build
  [ "$PAUSE" -le $((TIMEOUT - ELAPSED)) ] || PAUSE=$((TIMEOUT - ELAPSED))
  sleep "$PAUSE"
  ELAPSED=$(($(date +%s) - STARTED))
done
{{- end }}
