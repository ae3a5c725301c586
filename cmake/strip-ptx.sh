#!/bin/sh
# Removes the line information from PTX text.
#
#   usage: strip-ptx.sh PTX STRIPPED
set -eu
sed -E '/^\t\.(loc|file)\t/d' "$1" >"$2"
