#!/bin/sh
# probe_unload.sh UNLOAD LIBRARY PEER - dlclose() of the probe, and what the agent sees after it.
set -eu
dir=$(mktemp -d /dev/shm/syncline-test-XXXXXX)
trap 'rm -rf "$dir"' EXIT
SYNCLINE_DIR=$dir "$1" "$2"
seen=$("$3" "$dir")
[ "$seen" = "dead rank -1 events 3 dropped 0 closed 1" ] || { echo "seen: $seen"; exit 1; }
