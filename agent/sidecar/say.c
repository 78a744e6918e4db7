#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS INT64_C(5000000000)

static bool quiet;

void say_quiet(bool q)
{
	quiet = q;
}

/* One write a line, so that lines of several programs do not mix. What came
 * from a collector may hold anything: control characters are shown as dots. */
__attribute__((format(printf, 1, 0))) static void line(const char *fmt, va_list ap, uint64_t n_held)
{
	char buf[1400] = "syncline-agent: ";
	size_t n = strlen(buf), room = sizeof buf - n - 48;
	int r = vsnprintf(buf + n, room, fmt, ap);

	if (r > 0)
		n += (size_t)r < room ? (size_t)r : room - 1;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 127)
			buf[i] = '.';
	if (n_held > 0)
		n += (size_t)snprintf(buf + n, 47, " (and %llu times before)",
				      (unsigned long long)n_held);
	buf[n++] = '\n';
	(void)!fwrite(buf, 1, n, stderr);
	fflush(stderr);
}

void say(const char *fmt, ...)
{
	va_list ap;

	if (quiet)
		return;
	va_start(ap, fmt);
	line(fmt, ap, 0);
	va_end(ap);
}

void say_fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(fmt, ap, 0);
	va_end(ap);
}

void say_limited(struct say_limit *l, int64_t now_ns, const char *fmt, ...)
{
	va_list ap;

	if (quiet)
		return;
	if (l->last_ns != 0 && now_ns - l->last_ns < LIMIT_NS) {
		l->n_held++;
		return;
	}
	va_start(ap, fmt);
	line(fmt, ap, l->n_held);
	va_end(ap);
	l->last_ns = now_ns;
	l->n_held = 0;
}
