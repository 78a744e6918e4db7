#!/bin/sh
# Builds the page into web/dist. Installs its tools when the lock file changed.
#
#   web/build.sh [--no-install]    --no-install: use the tools that are there
set -eu
cd "$(dirname "$0")"

install=1
for arg in "$@"; do
	case $arg in
	--no-install) install=0 ;;
	*) echo "web/build.sh: unknown option $arg (only --no-install)" >&2; exit 2 ;;
	esac
done

if ! command -v node >/dev/null; then
	echo "web/build.sh: node is missing. Install it: apt install nodejs npm" >&2
	exit 3
fi
# The lock that node_modules was made from is kept beside it.
if ! cmp -s package-lock.json node_modules/.syncline-lock 2>/dev/null; then
	if [ "$install" = 0 ]; then
		echo "web/build.sh: node_modules does not match package-lock.json. Run web/build.sh without --no-install" >&2
		exit 3
	fi
	npm ci --no-audit --no-fund
	cp package-lock.json node_modules/.syncline-lock
fi
exec node scripts/build.mjs
