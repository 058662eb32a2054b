#!/usr/bin/env bash
# Exits 0 where the browser checks can run: Chromium, a Node that is new enough, the pinned packages. Usage: browser_ready.sh VENV
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v chromium >/dev/null
"$here/find_node.sh" "$1" >/dev/null
[ -f node_modules/mermaid/dist/mermaid.min.js ] && [ -f node_modules/playwright-core/package.json ]
