#!/usr/bin/env bash
# Prints the interpreter the virtual environment is made from: 3.11 or newer, with its headers and the venv module.
# Order: $KERNTRAIL_BASE_PYTHON (no other is then tried), python3 and python3.1x on PATH, Debian's own. Debian's own
# is completed with its packages where they are missing. Usage: find_python.sh DEBIAN_LIST
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
debian_list=$1

check='
import os, sys, sysconfig
if sys.version_info < (3, 11): sys.exit("is " + sys.version.split()[0] + ", older than 3.11")
try: import ensurepip, venv
except ImportError: sys.exit("has no venv module")
include = sysconfig.get_paths()["include"]
if not os.path.exists(os.path.join(include, "Python.h")): sys.exit("has no Python.h")
print(os.path.realpath(sys.executable))
'
reasons=()
try() {  # prints the real interpreter and ends the script where it will do
  local path reason
  path=$(command -v "$1") || { reasons+=("$1: not found"); return 0; }
  if reason=$("$path" -I -c "$check" 2>&1); then
    echo "$reason"
    exit 0
  fi
  reasons+=("$1: $(tail -n 1 <<<"$reason")")
}

if [ -n "${KERNTRAIL_BASE_PYTHON:-}" ]; then
  try "$KERNTRAIL_BASE_PYTHON"
else
  for name in python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
    try "$name"
  done
  "$here/debian.sh" "$debian_list" >&2
  try /usr/bin/python3
fi
{
  echo "setup: no usable Python (3.11 or newer, with venv and headers); tried:"
  printf '  %s\n' "${reasons[@]}"
  echo "  Debian 12: apt-get install python3 python3-venv python3-dev; or name one in KERNTRAIL_BASE_PYTHON"
} >&2
exit 1
