# setup.sh - what quickstart and run-tests share: packages, page, build. Sourced by bash.
#
# Each step looks first and does nothing when there is nothing to do, so that a
# second run is quick. `say` goes to stderr.

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

# need_packages SECTION…: install what is missing of tools/packages. A node that is already there
# (from anywhere) is used; Debian's comes in when there is none.
need_packages() {
	local missing=() section="" line name found
	while read -r line; do
		case $line in
		'' | '#'*) continue ;;
		'['*) section=${line//[\[\]]/}; continue ;;
		esac
		[[ " $* " == *" $section "* ]] || continue
		found=
		for name in ${line//|/ }; do
			[ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && found=1
		done
		[ -n "$found" ] || missing+=("${line%%|*}")
	done < tools/packages
	command -v node >/dev/null || missing+=(nodejs)
	command -v npm >/dev/null || missing+=(npm)
	[ ${#missing[@]} -eq 0 ] && return 0
	[ "$(id -u)" = 0 ] || die "missing packages: ${missing[*]}. Run this as root, or install them and pass --no-install"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update || die "apt-get update failed: is the network there? --no-install goes on without"
	apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
		die "apt-get could not install ${missing[*]}"
}

# build_page [--no-install]: web/dist, from which the collector's page is embedded.
build_page() {
	if ! command -v node >/dev/null; then
		say "node is missing: the dashboard is built without its page"
		return 0
	fi
	sh web/build.sh "$@" >&2
}

# build DIR [meson option…]: configure once, then what changed. Set CC for another compiler.
build() {
	local dir=$1
	shift
	if [ -f "$dir/build.ninja" ]; then
		if [ "$*" != "$(cat "$dir/.options" 2>/dev/null)" ]; then
			meson configure "$dir" "$@" >/dev/null || return
		fi
	else
		meson setup "$dir" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
	fi
	rm -f "$dir.log"
	printf '%s' "$*" >"$dir/.options"
	if ! ninja -C "$dir" >"$dir/.ninja.log" 2>&1; then
		tail -60 "$dir/.ninja.log" >&2
		return 1
	fi
	# The plain build is free of warnings; sanitizers make gcc see things.
	if [[ "$*" != *b_sanitize* ]] && grep -q 'warning:' "$dir/.ninja.log"; then
		grep -A4 'warning:' "$dir/.ninja.log" | head -40 >&2
		say "the build has warnings"
		return 1
	fi
}
