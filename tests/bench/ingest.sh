#!/bin/sh
# Events and arrivals a second into a real catalogue on this directory's disk.
#   ingest.sh BENCH_INGEST SYNCLINE_COLLECTOR [SECONDS]
set -eu
bench=$1 collector=$2 seconds=${3:-5}
dir=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/var/tmp}}/syncline-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$bench" "$collector" "$dir/raw.db" --seconds "$seconds"
for ranks in 4 16 64; do
	"$bench" "$collector" "$dir/coll$ranks.db" --seconds "$seconds" --collectives "$ranks"
done
