#!/usr/bin/env bash
# Prints the folder that holds a node of release 20 or newer (playwright-core's floor) with its npm: the one on PATH,
# else the one of the virtual environment. Prints nothing and exits 1 where there is neither. Usage: find_node.sh VENV
set -euo pipefail
new_enough() {
  [ -x "$1/node" ] && [ -x "$1/npm" ] && "$1/node" -e 'process.exit(+process.versions.node.split(".")[0] >= 20 ? 0 : 1)'
}
for found in "$(command -v node || true)" "$1/bin/node"; do
  if [ -n "$found" ] && new_enough "$(dirname "$found")"; then
    dirname "$found"
    exit 0
  fi
done
exit 1
