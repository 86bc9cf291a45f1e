#!/bin/sh
# Run the suite in two processes side by side: the collector's tests beside the emitter's, the page's and the rest.
# Each process starts each part that it needs once. Usage: tests/run.sh PYTHON MARKS [PYTEST_ARG...]
set -u
cd "$(dirname "$0")/.."
python=$1 marks=$2
shift 2
first="tests/rules tests/store tests/api tests/commands tests/transports"
second="tests/emitter tests/spark tests/page tests/package tests/compatibility tests/slow"

output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$python" -m pytest -m "$marks" "$@" $first >"$output" 2>&1 &
collector=$!
trap 'kill $collector 2>/dev/null; exit 130' INT TERM
code=0
"$python" -m pytest -m "$marks" "$@" $second || code=$?
wait $collector || code=$?
cat "$output"
exit $code
