#!/bin/sh
# Runs a compiler and keeps its messages in the file REPORT. The messages are also printed if the
# compiler fails or prints a warning.
#
# usage: keep-report.sh REPORT COMMAND...
report=$1
shift
"$@" >"$report" 2>&1
status=$?
if [ "$status" != 0 ] || grep -qiE 'warning|potential performance loss' "$report"; then
    cat "$report" >&2
fi
exit "$status"
