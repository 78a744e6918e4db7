#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum term_color chosen = COLOR_AUTO;

void term_set_color(enum term_color c)
{
	chosen = c;
}

static bool is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

bool term_has_color(FILE *f)
{
	const char *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");

	if (chosen != COLOR_AUTO)
		return chosen == COLOR_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	return isatty(fileno(f)) && term && strcmp(term, "dumb") != 0;
}

const char *term_on(FILE *f, enum term_style s)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "",	   [STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",
		[STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[1;31m",
	};

	return term_has_color(f) ? codes[s] : "";
}

const char *term_off(FILE *f)
{
	return term_has_color(f) ? "\033[0m" : "";
}

const char *term_ns(int64_t ns, char *buf, size_t n)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	double v = (double)ns, size = v < 0 ? -v : v;

	if (ns == INT64_MIN) {
		snprintf(buf, n, "?");
		return buf;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (size < units[i].ns)
			continue;
		size /= units[i].ns;
		snprintf(buf, n, "%.*f %s",
			 size < 10    ? 2
			 : size < 100 ? 1
				      : 0,
			 v / units[i].ns, units[i].name);
		return buf;
	}
	snprintf(buf, n, "%" PRId64 " ns", ns);
	return buf;
}

const char *term_time(int64_t unix_ns, char *buf, size_t n)
{
	time_t t = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	if (unix_ns == INT64_MIN || !gmtime_r(&t, &tm) ||
	    strftime(buf, n, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		snprintf(buf, n, "?");
	return buf;
}

void term_put(FILE *f, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		/* C0, DEL, and C1 as UTF-8 (0xc2 0x80..0x9f). */
		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) {
			fprintf(f, "\\x%02x", c[1]);
			c++;
		} else if ((*c < 0x20 && *c != '\t' && *c != '\n') || *c == 0x7f) {
			fprintf(f, "\\x%02x", *c);
		} else {
			putc(*c, f);
		}
	}
}
