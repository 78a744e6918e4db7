#include "nccl_words.h"
#include "nccl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void nccl_blanks(const char **p)
{
	while (**p == ' ' || **p == '\t')
		++*p;
}

bool nccl_literal(const char **p, const char *text)
{
	const char *at = *p;

	nccl_blanks(&at);
	if (strncmp(at, text, strlen(text)) != 0)
		return false;
	*p = at + strlen(text);
	return true;
}

bool nccl_number(const char **p, int64_t lowest, int64_t highest, int64_t *ret)
{
	const char *at = *p;
	char *end;
	long long v;

	nccl_blanks(&at);
	if (!isdigit((unsigned char)at[0]) && !(at[0] == '-' && isdigit((unsigned char)at[1])))
		return false;
	v = strtoll(at, &end, 10);
	if (v < lowest || v > highest)
		return false;
	*p = end;
	*ret = v;
	return true;
}

bool nccl_rank_of(const char **p, int32_t *ret)
{
	int64_t v;

	if (!nccl_number(p, -1, NCCL_MAX_RANKS - 1, &v))
		return false;
	*ret = (int32_t)v;
	return true;
}

/* A word, to a blank or one of stops. */
bool nccl_word(const char **p, const char *stops, char *out, size_t n_out)
{
	size_t n = 0;

	nccl_blanks(p);
	for (; **p && **p != ' ' && !strchr(stops, **p); ++*p)
		if (n + 1 < n_out)
			out[n++] = **p;
	out[n] = '\0';
	return n > 0;
}

/* The word behind a key that stands as a word of its own. */
bool nccl_after(const char *text, const char *key, char *out, size_t n_out)
{
	size_t n = strlen(key);

	for (const char *at = text; (at = strstr(at, key)); at += n)
		if ((at == text || at[-1] == ' ') && at[n] == ' ') {
			at += n;
			return nccl_word(&at, ",", out, n_out);
		}
	out[0] = '\0';
	return false;
}

int64_t nccl_number_after(const char *text, const char *key, int64_t highest)
{
	char value[32];
	const char *p = value;
	int64_t v;

	return nccl_after(text, key, value, sizeof value) && nccl_number(&p, -1, highest, &v) ? v : TRACE_NULL;
}

bool nccl_ends(const char *p)
{
	nccl_blanks(&p);
	return *p == '\0';
}
