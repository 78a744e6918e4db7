#include "json_number.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 40
#define MAX_TEXT 400

/* Its digits without the point, and how many of them lie behind it. */
static bool split(const char *text, bool *ret_negative, char digits[MAX_DIGITS + 1], long *ret_behind)
{
	size_t n = 0;
	bool any = false, point = false;

	*ret_behind = 0;
	*ret_negative = *text == '-';
	text += *ret_negative;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		any = true;
		if (n == MAX_DIGITS) {
			if (!point)
				return false;
			continue; /* far behind what can matter */
		}
		if (n == 0 && *text == '0' && !point)
			continue;
		digits[n++] = *text;
		*ret_behind += point;
	}
	digits[n] = '\0';
	if (any && (*text | 32) == 'e') {
		char *end;
		long exponent = strtol(text + 1, &end, 10);

		if (end == text + 1 || exponent > 400 || exponent < -400)
			return false;
		*ret_behind -= exponent;
		text = end;
	}
	return any && *text == '\0';
}

bool json_integer_of(const char *text, size_t n_text, int power, int64_t *ret)
{
	char whole[MAX_TEXT + 1], digits[MAX_DIGITS + 1];
	bool negative;
	int64_t v = 0;
	long behind, n, keep;

	if (n_text > MAX_TEXT)
		return false;
	memcpy(whole, text, n_text);
	whole[n_text] = '\0';
	if (!split(whole, &negative, digits, &behind))
		return false;
	n = (long)strlen(digits);
	keep = n - behind + power; /* digits in front of the point afterwards */
	for (long i = 0; i < keep && n > 0; i++) {
		int d = i < n ? digits[i] - '0' : 0;

		if (v > (INT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	if (keep >= 0 && keep < n && digits[keep] >= '5' && v < INT64_MAX)
		v++;
	*ret = negative ? -v : v;
	return true;
}
