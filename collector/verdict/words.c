#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void words_json(const char *in, char *out, size_t n_out)
{
	size_t at = 0;

	for (; *in && at + 7 < n_out; in++) {
		unsigned char c = (unsigned char)*in;

		if (c == '"' || c == '\\')
			out[at++] = '\\';
		if (c < 0x20)
			at += (size_t)snprintf(out + at, n_out - at, "\\u%04x", c);
		else
			out[at++] = (char)c;
	}
	out[at] = '\0';
}

void words_ns(int64_t ns, char *out, size_t n_out)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" } };
	double size = (double)(ns < 0 ? -ns : ns);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		double v = (double)ns / units[i].ns;

		if (size < units[i].ns)
			continue;
		snprintf(out, n_out, "%.*f %s", size < 10 * units[i].ns ? 2 : size < 100 * units[i].ns, v,
			 units[i].name);
		return;
	}
	snprintf(out, n_out, "%" PRId64 " ns", ns);
}

bool words_has(const char *text, const char *words)
{
	size_t n = strlen(words);

	for (; text && *text; text++)
		if (strncasecmp(text, words, n) == 0)
			return true;
	return false;
}
