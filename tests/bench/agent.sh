#!/bin/sh
# agent.sh BUILD [SECONDS] - what the agent costs: 4 ranks x 5,000 events/s, then one as fast as it goes.
#
# Real probes write, a collector that only takes notes acknowledges at once. The
# agent's processor time and memory are its own words in the heartbeat (all of
# its threads, NNG's included); events are what the collector was given.
set -eu

build=${1:?usage: agent.sh BUILD [SECONDS]}
seconds=${2:-8}
writer=$build/tests/system/probe_writer
work=$(mktemp -d)
SYNCLINE_DIR=$(mktemp -d /dev/shm/syncline-bench.XXXXXX)
export SYNCLINE_DIR SYNCLINE_RUN=bench
pids=
finish()
{
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$work" "$SYNCLINE_DIR"
}
trap finish EXIT
trap 'exit 1' INT TERM

# measure TITLE RANKS THREADS RATE
measure()
{
	notes=$work/notes.$1
	"$build/tests/system/fake_collector" --listen "ipc://$work/c" --out "$notes" >"$work/ready" &
	collector=$!
	"$build/syncline-agent" --quiet --collector "ipc://$work/c" --spool "$work/spool" --linger 0.5 &
	agent=$!
	pids="$collector $agent"
	until [ -s "$work/ready" ] && grep -q '^hello' "$notes" 2>/dev/null; do
		sleep 0.1
		kill -0 "$collector" || exit 3
	done
	writers=
	for rank in $(seq 0 $(($2 - 1))); do
		sleep "$seconds" | RANK=$rank WORLD_SIZE=$2 "$writer" "$3" 0 "$4" >"$work/writer.$rank" &
		writers="$writers $!"
	done
	for pid in $writers; do
		wait "$pid"
	done
	wait "$agent"
	kill "$collector"
	wait "$collector" || true
	pids=
	cat "$work"/writer.* | awk -F'[:,]' '{ n += $2; d += $4 } END { print "written", n, d }' >>"$notes"
	rm "$work"/writer.*
	awk -v title="$1" '
		$1 == "chunk" { n += $7; bytes += $13; t = $12 > t ? $12 : t; if (!t0 || $11 < t0) t0 = $11 }
		$1 == "batch" { batches++ }
		$1 == "beat" { if ($8 > cpu) cpu = $8; if ($9 > rss) rss = $9; if (!c0 && n) { c0 = $8; n0 = n } }
		$1 == "written" { written = $2; dropped = $3 }
		END {
			s = (t - t0) / 1e9
			printf "%-14s %9d events in %.1f s = %d events/s (%d dropped by full rings), %d batches, %.2f bytes an event\n",
				title, n, s, n / s, dropped, batches, bytes / n
			printf "%-14s agent: %.2f %% of a core, %.3f s a million events, %.1f MB resident at most\n",
				"", 100 * (cpu - c0) / 1e9 / (s * (n - n0) / n), (cpu - c0) / 1e9 / (n - n0) * 1e6, rss / 1e6
			if (n != written) {
				printf "%-14s but %d were written\n", "", written
				exit 1
			}
		}' "$notes"
}

measure 4x5000 4 2 2500
measure flat_out 1 1 0
