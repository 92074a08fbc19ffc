#!/usr/bin/env bash
# Puts the report of `memplan compare` into the job's summary; the exit code is that of the command.
set -uo pipefail

report=$RUNNER_TEMP/memplan-compare.md
rm -f "$report"
read -ra arguments <<<"$OPTIONS"
[ -z "$PEAK_LIMIT" ] || arguments+=(--fail-if-peak-grows "$PEAK_LIMIT")
[ -z "$LOAD_LIMIT" ] || arguments+=(--fail-if-load-grows "$LOAD_LIMIT")

# -P: a folder of the project that is called memplan is not the program.
"$PYTHON" -P -m memplan compare ${arguments[@]+"${arguments[@]}"} --output "$report" -- "$BEFORE" "$AFTER"
code=$?

if [ -f "$report" ]; then
  cat "$report" >>"$GITHUB_STEP_SUMMARY"
  echo "report=$report" >>"$GITHUB_OUTPUT"
else
  echo 'There is no comparison: the log of the step has the reason.' >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
