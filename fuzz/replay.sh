#!/bin/bash
# Replays every seed of one kind of input. usage: replay.sh PROGRAM NAME
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec < <("$here/seeds.sh" "$2")
exec xargs -d '\n' "$1"
