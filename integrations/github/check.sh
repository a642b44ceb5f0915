#!/usr/bin/env bash
# Reports findings as annotations of the code, a line in the job summary, and SARIF if requested.
set -uo pipefail

argosy=$RUNNER_TEMP/argosy/bin/argosy
cd "$GITHUB_WORKSPACE" || exit 2
told=$(mktemp)
trap 'rm -f -- "$told"' EXIT

paths=()
while IFS= read -r line; do [ -z "$line" ] || paths+=("$line"); done <<< "$INPUT_PATH"
flags=(--fail-on "$INPUT_FAIL_ON")
[ -z "$INPUT_BASELINE" ] || flags+=(--baseline "$INPUT_BASELINE")

"$argosy" check "${flags[@]}" -o github -- "${paths[@]}" 2> "$told"
code=$?
cat "$told" >&2
case $code in
  0) result=passed ;;
  1) result=failed ;;
  *) result=error ;;
esac
summary=$(grep -E '^[0-9]+ Applications?, [0-9]+ objects?: ' "$told" | tail -n 1)
echo "result=$result" >> "$GITHUB_OUTPUT"
echo "summary=$summary" >> "$GITHUB_OUTPUT"
if [ "$INPUT_SARIF" = true ] && [ "$result" != error ]; then
  sarif=$RUNNER_TEMP/argosy.sarif
  "$argosy" check "${flags[@]}" -o sarif -- "${paths[@]}" > "$sarif" 2> /dev/null
  echo "sarif=$sarif" >> "$GITHUB_OUTPUT"
fi
{
  echo "### argosy check: $result"
  echo
  echo "${summary:-$(head -n 5 "$told")}"
} >> "$GITHUB_STEP_SUMMARY"
exit "$code"
