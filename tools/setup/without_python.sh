#!/usr/bin/env bash
# Makes a folder of stand-ins for python that fail, and prints its path: put first on PATH, it proves that a build
# and its tests start no Python. Usage: without_python.sh FOLDER
set -euo pipefail
mkdir -p "$1"
for name in python python3 python3.11 python3.12 python3.13 python3.14; do
  printf '#!/bin/sh\necho "%s: there is no Python in this build" >&2\nexit 127\n' "$name" >"$1/$name"
  chmod +x "$1/$name"
done
cd "$1" && pwd
