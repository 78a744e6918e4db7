#!/bin/sh
# probe.sh BENCH [THREADS] - run bench_probe with an LTTng session recording beside it.
#
# A session daemon of this user is started and stopped here. The session is a
# snapshot one: LTTng writes to its rings in memory and no consumer takes
# processor time away from the loop, which is the kindest setting for it.
# The session goes down before the daemon, and the daemon is ended by its id.
set -eu

bench=${1:?usage: probe.sh BENCH [THREADS]}
shift
for tool in lttng lttng-sessiond; do
	if ! command -v "$tool" >/dev/null; then
		echo "probe.sh: $tool is not installed; the LTTng line is missing or means \"off\"" >&2
		exec "$bench" "$@"
	fi
done

home=$(mktemp -d)
export LTTNG_HOME="$home" LTTNG_UST_REGISTER_TIMEOUT=-1
daemon=
finish()
{
	lttng destroy syncline-bench >/dev/null 2>&1 || true
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	rm -rf "$home"
}
trap finish EXIT
trap 'exit 1' INT TERM

# As root a daemon of the system may run already: then use it.
if ! lttng --no-sessiond list >/dev/null 2>&1; then
	lttng-sessiond --no-kernel >"$home/sessiond.log" 2>&1 &
	daemon=$!
	tries=0
	until lttng --no-sessiond list >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ "$tries" -gt 100 ]; then
			echo "probe.sh: lttng-sessiond does not answer:" >&2
			cat "$home/sessiond.log" >&2
			exit 3
		fi
		sleep 0.1
	done
fi
lttng --no-sessiond create syncline-bench --snapshot --output="$home/out" >/dev/null
lttng --no-sessiond enable-event --userspace syncline_bench:mark >/dev/null
lttng --no-sessiond start >/dev/null
"$bench" "$@"
