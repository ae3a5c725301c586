#!/bin/bash
# Runs the transcripts of the command line. `test_cli.sh --update` rewrites them.
cd "$(dirname "$0")" && exec python3 transcript.py "$@" transcripts/*.txt
