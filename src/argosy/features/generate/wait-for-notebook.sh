# Waits until a NotebookValidationJob has ended.
# Reads NAME (of the job), NAMESPACE, TIMEOUT and INTERVAL (seconds).
# Exits with 0 if it succeeded, with 1 if it failed or permissions are missing, and with 2 after the timeout.
set -u
began=$(date +%s)
refusals=0
last="it does not exist yet"

read_job() {
  kubectl get notebookvalidationjobs.mlops.mlops.dev "$NAME" -n "$NAMESPACE" --request-timeout=30s \
    -o 'jsonpath={.metadata.generation}/{.status.observedGeneration}/{.status.phase}' 2>&1
}

echo "Waiting for notebook validation to complete..."
while :; do
  if answer=$(read_job); then
    refusals=0
    answer=$(printf '%s\n' "$answer" | tail -n 1)
    asked=${answer%%/*}
    seen=${answer#*/}
    seen=${seen%%/*}
    phase=${answer##*/}
    # If observedGeneration is behind, the phase is that of an earlier run
    if [ "${seen:-$asked}" != "$asked" ]; then phase=Outdated; fi
    last="its phase is ${phase:-not set}"
  else
    phase=""
    echo "$answer"
    case "$answer" in
      *orbidden*) refusals=$((refusals + 1)) ;;
      *) refusals=0 ;;
    esac
  fi
  case "$phase" in
    Succeeded)
      echo "Notebook validation succeeded, proceeding with sync"
      exit 0
      ;;
    Failed)
      echo "Notebook validation failed!"
      exit 1
      ;;
  esac
  if [ "$refusals" -ge 3 ]; then
    echo "The service account may not get notebookvalidationjobs in $NAMESPACE; give it a Role that allows it"
    exit 1
  fi
  left=$((TIMEOUT - ($(date +%s) - began)))
  if [ "$left" -le 0 ]; then
    echo "Notebook $NAME did not end within $TIMEOUT s: $last"
    exit 2
  fi
  echo "Still running..."
  pause=$INTERVAL
  if [ "$pause" -gt "$left" ]; then pause=$left; fi
  sleep "$pause"
done
