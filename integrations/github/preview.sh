#!/usr/bin/env bash
# Reports what the branch would change: in the job summary, as outputs, and in a file for the comment.
set -uo pipefail

argosy=$RUNNER_TEMP/argosy/bin/argosy
cd "$GITHUB_WORKSPACE" || exit 2
said=$RUNNER_TEMP/argosy-preview.md
base=$INPUT_BASE
# For a pull request GitHub checks out the merge commit: its first parent is the base branch.
if [ -z "$base" ] && [ -n "${GITHUB_BASE_REF:-}" ] && git rev-parse --quiet --verify 'HEAD^2' > /dev/null; then
  base='HEAD^1'
fi

"$argosy" preview --repo "$INPUT_PATH" -o md -- ${base:+"$base"} > "$said"
code=$?
case $code in
  0) result=passed ;;
  1) result=failed ;;
  *) result=error ;;
esac
echo "result=$result" >> "$GITHUB_OUTPUT"
if [ "$result" = error ]; then
  echo "### argosy preview: the preview could not be made" >> "$GITHUB_STEP_SUMMARY"
  exit "$code"
fi
summary=$(sed -n 's/^\*\*Impact\*\*: //p' "$said" | head -n 1)
echo "summary=$summary" >> "$GITHUB_OUTPUT"
echo "comment=$said" >> "$GITHUB_OUTPUT"
names='import json, sys; print(json.dumps([each["name"] for each in json.load(sys.stdin)["items"]]))'
apps=$("$argosy" preview --repo "$INPUT_PATH" -o json -- ${base:+"$base"} 2> /dev/null | "${argosy%/*}/python" -c "$names")
echo "changed-apps=$apps" >> "$GITHUB_OUTPUT"
cat "$said" >> "$GITHUB_STEP_SUMMARY"
exit "$code"
