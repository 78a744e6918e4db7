#!/bin/sh
# probe_liveness.sh RANK PEER - agent and rank that share a directory and a group, nothing else.
#
# The rank runs in its own PID and mount namespace as one user, the peer in
# others as another user: it sees life and death by the file's lock, reads the
# last events and removes the file. A user outside the group sees nothing.
set -eu

rank=$1 peer=$2
rank_uid=54001 peer_uid=54002 other_uid=54003 group=54100 other_group=54101

skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root to be two users"
command -v setpriv >/dev/null || skip "setpriv is not installed"
unshare --pid --mount --fork --mount-proc true 2>/dev/null || skip "PID and mount namespaces are not allowed here"

work=$(mktemp -d)
fresh=
dir=$(mktemp -d /dev/shm/syncline-test-XXXXXX)
chgrp "$group" "$dir" && chmod 2770 "$dir"
chmod 755 "$work"
# The programs may lie where those users cannot look.
cp "$rank" "$work/rank"
cp "$peer" "$work/peer"
lib=$(ldd "$rank" | sed -n 's/.*=> \(.*libsyncline_probe[^ ]*\).*/\1/p')
[ -z "$lib" ] || cp "$lib" "$work/"
chmod -R a+rX "$work" && chmod a+x "$work/rank" "$work/peer"
launcher=
finish()
{
	exec 3>&- || true
	[ -z "$launcher" ] || kill -9 "$launcher" 2>/dev/null || true
	rm -rf "$work" "$dir" ${fresh:+"$fresh"}
}
trap finish EXIT
fail()
{
	echo "probe_liveness: $1" >&2
	cat "$work/out" >&2 2>/dev/null || true
	ls -la "$dir" >&2
	exit 1
}
as() # UID GROUP COMMAND...: in new PID and mount namespaces
{
	uid=$1 gid=$2
	shift 2
	unshare --pid --mount --fork --mount-proc \
		setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all \
		env LD_LIBRARY_PATH="$work" "$@"
}
sees() # NAME UID GROUP PATTERN [ARGUMENT]
{
	seen=$(as "$2" "$3" "$work/peer" "$dir" ${5:-})
	echo "$seen" | grep -q "$4" || fail "$1: the peer saw \"$seen\", expected $4"
}

mkfifo "$work/in"
as "$rank_uid" "$group" env SYNCLINE_DIR="$dir" "$work/rank" --hold --rank 3 --world 4 \
	<"$work/in" >"$work/out" &
launcher=$!
exec 3>"$work/in"
until [ -s "$work/out" ]; do kill -0 "$launcher" || fail "the rank is gone"; sleep 0.05; done
grep -q '"on":1' "$work/out" || fail "the rank is not traced"
file=$(ls "$dir"/*.ring)
[ "$(stat -c '%u %g %a' "$file")" = "$rank_uid $group 660" ] || fail "owner or mode of the file"

sees alive "$peer_uid" "$group" '^alive rank 3 events 0 '
sees outsider "$other_uid" "$other_group" '^denied'
echo go >&3
until grep -q '"when":"worked"' "$work/out"; do kill -0 "$launcher" || fail "the rank is gone"; sleep 0.05; done
sees working "$peer_uid" "$group" '^alive rank 3 events 120 '

# The rank is the child of unshare, which waits for it.
child=$(cat "/proc/$launcher/task/$launcher/children")
[ -n "$child" ] || fail "the rank's process was not found"
for c in $child; do
	for cc in $c $(cat "/proc/$c/task/$c/children" 2>/dev/null); do kill -9 "$cc" 2>/dev/null || true; done
done
wait "$launcher" 2>/dev/null || true
launcher=
sees dead "$peer_uid" "$group" '^dead rank 3 events 120 dropped 0 closed 0$' --unlink-dead
[ -z "$(ls -A "$dir")" ] || fail "the peer could not remove the dead rank's file"

# A directory that nobody made yet is made for the group, too: the rank's own.
fresh=$(mktemp -d /dev/shm/syncline-test-XXXXXX)
chmod 777 "$fresh"
as "$rank_uid" "$group" env SYNCLINE_DIR="$fresh/made" "$work/rank" --rank 1 >"$work/out"
rm -rf "$dir"
dir=$fresh/made
sees made "$peer_uid" "$group" '^dead rank 1 events 120 dropped 0 closed 1$'
echo "alive, dead and removed across users and namespaces: fine"
