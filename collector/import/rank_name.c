#include "rank_name.h"

#include "../facts.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MAX_FOLDERS 3

/* Is the rank at p one within something smaller than the job? */
static bool is_within(const char *begin, const char *p)
{
	static const char *const scopes[] = { "local", "node", "group", "dp", "tp", "pp", "ep", "cp", "sp", "mp", "etp" };
	size_t n = 0;

	if (p == begin || !strchr("-_. ", p[-1]))
		return false;
	p--;
	while (p > begin && isalpha((unsigned char)p[-1])) {
		p--;
		n++;
	}
	for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
		if (n == strlen(scopes[i]) && strncasecmp(p, scopes[i], n) == 0)
			return true;
	return false;
}

/* A word begins at p: behind no letter, or as a capital ("localRank" is "local_rank"). */
static bool begins_word(const char *begin, const char *p)
{
	if (p == begin || !isalpha((unsigned char)p[-1]))
		return true;
	if (p - begin >= 6 && strncasecmp(p - 6, "global", 6) == 0)
		return true;
	return isupper((unsigned char)*p) && islower((unsigned char)p[-1]) &&
	       !(p - begin >= 5 && strncasecmp(p - 5, "local", 5) == 0);
}

/* The number behind word at p; -1 when there is none. */
static int64_t number_at(const char *p, const char *end, size_t n_word)
{
	const char *digits = p + n_word;
	int64_t v = 0;

	if (digits < end && strchr("-_= ", *digits))
		digits++;
	if (digits == end || !isdigit((unsigned char)*digits))
		return -1;
	for (; digits < end && isdigit((unsigned char)*digits) && v < FACT_MAX_RANKS; digits++)
		v = v * 10 + (*digits - '0');
	return v < FACT_MAX_RANKS ? v : -1;
}

/* In one name of the path: -1 = none, -2 = several. */
static int64_t find(const char *begin, const char *end, const char *word)
{
	size_t n = strlen(word);
	int64_t found = -1;

	for (const char *p = begin; p + n < end; p++) {
		int64_t v;

		if (strncasecmp(p, word, n) != 0 || !begins_word(begin, p) || is_within(begin, p))
			continue;
		v = number_at(p, end, n);
		if (v >= 0 && found >= 0 && v != found)
			return -2;
		found = v >= 0 ? v : found;
	}
	return found;
}

int64_t rank_of_path(const char *path)
{
	const char *end = path + strlen(path);

	for (unsigned i = 0; i <= MAX_FOLDERS; i++) {
		const char *begin = end;
		int64_t rank;

		while (begin > path && begin[-1] != '/')
			begin--;
		rank = find(begin, end, "rank");
		if (rank == -1)
			rank = find(begin, end, "worker");
		if (rank != -1)
			return rank >= 0 ? rank : -1;
		if (begin == path)
			break;
		end = begin - 1;
	}
	return -1;
}
