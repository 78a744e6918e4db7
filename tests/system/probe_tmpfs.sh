#!/bin/sh
# probe_tmpfs.sh RANK PEER - a C rank on shared memory that is small, full, read-only or fills up.
#
# Runs in a mount namespace of its own; the host's /dev/shm is not touched.
set -eu

if [ "${1:-}" != --inside ]; then
	if unshare --mount true 2>/dev/null; then
		exec unshare --mount "$0" --inside "$@"
	elif unshare --mount --map-root-user true 2>/dev/null; then
		exec unshare --mount --map-root-user "$0" --inside "$@"
	fi
	echo "skipped: this user may not make a mount namespace"
	exit 77
fi
rank=$2 peer=$3
work=$(mktemp -d)
trap 'umount "$work/shm" 2>/dev/null || true; rm -rf "$work"' EXIT
shm=$work/shm
mkdir "$shm"

fail()
{
	echo "probe_tmpfs: $1" >&2
	cat "$work"/out* >&2 2>/dev/null || true
	exit 1
}
fresh() # OPTIONS: an empty tmpfs
{
	umount "$shm" 2>/dev/null || true
	mount -t tmpfs -o "$1" tmpfs "$shm"
	export SYNCLINE_DIR="$shm/dir"
}
fill_up() { dd if=/dev/zero of="$shm/ballast" bs=64k 2>/dev/null || true; }
expect() # NAME PATTERN: the first line of the rank's output
{
	head -n 1 "$work/out" | grep -q "$2" || fail "$1: expected $2"
}
nothing_left() { [ -z "$(ls -A "$shm/dir" 2>/dev/null)" ] || fail "$1: a file was left behind"; }

# Full: no room for the smallest file.
fresh size=64m
fill_up
"$rank" >"$work/out" || fail "full: the rank must end with 0"
expect full '"on":0.*"errno":28'
nothing_left full

# Too small: a tenth of it is less than the least.
fresh size=2m
"$rank" >"$work/out" || fail "2 MiB: the rank must end with 0"
expect "2 MiB" '"on":0.*"errno":28'
nothing_left "2 MiB"

# What containers give: at most a tenth, whole, and every byte of it usable when
# the rest has been taken by somebody else meanwhile.
fresh size=64m
rm -f "$work/out"
mkfifo "$work/in"
"$rank" --hold --fill --rank 1 --world 8 <"$work/in" >"$work/out" &
pid=$!
exec 3>"$work/in"
until [ -s "$work/out" ]; do kill -0 "$pid" || fail "64 MiB: the rank is gone"; sleep 0.05; done
expect "64 MiB" '"on":1'
bytes=$(sed -n '1s/.*"bytes":\([0-9]*\).*/\1/p' "$work/out")
[ "$bytes" -le $((64 << 20)) ] && [ "$bytes" -le 6710886 ] && [ "$bytes" -ge 6000000 ] ||
	fail "64 MiB: the file has $bytes bytes"
fill_up
echo go >&3
exec 3>&-
wait "$pid" || fail "64 MiB: the rank died with status $? when the tmpfs was full"
tail -n 1 "$work/out" | grep -q '"when":"worked","on":1' || fail "64 MiB: not worked to the end"
"$peer" "$shm/dir" >"$work/out2"
grep -q '^dead rank 1 events [0-9]* dropped [0-9]* closed 1$' "$work/out2" || fail "64 MiB: the peer's view"
rm "$work/in"

# Eight ranks share it, each a tenth of what the others left.
fresh size=64m
pids=
for i in 0 1 2 3 4 5 6 7; do
	"$rank" --steps 100 --rank "$i" --world 8 >"$work/out.$i" &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || fail "eight: a rank ended with $?"; done
[ "$(cat "$work"/out.? | grep -c '"when":"worked","on":1')" = 8 ] || fail "eight: not all are on"
[ "$("$peer" "$shm/dir" | grep -c '^dead rank . events 1200 dropped 0 closed 1$')" = 8 ] ||
	fail "eight: events are missing: $("$peer" "$shm/dir")"

# Read-only, and without a free inode.
fresh size=64m
mkdir "$shm/dir"
mount -o remount,ro "$shm"
"$rank" >"$work/out" || fail "read-only: the rank must end with 0"
expect read-only '"on":0.*"errno":30'
fresh size=64m,nr_inodes=2
mkdir "$shm/dir"
"$rank" >"$work/out" || fail "no inode: the rank must end with 0"
expect "no inode" '"on":0.*"errno":28'
nothing_left "no inode"

# Without a limit a tmpfs says that it has no blocks; that is not "full".
fresh size=0
"$rank" >"$work/out" || fail "unlimited: the rank must end with 0"
expect unlimited '"on":1.*"bytes":8388608'
umount "$shm"
echo "full, small, filling, shared, read-only, inode-less and unlimited tmpfs: fine"
