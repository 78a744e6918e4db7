#include "lines.h"

#include <stdlib.h>
#include <string.h>

bool lines_open(struct lines *l, bytes_fn read, void *arg)
{
	*l = (struct lines){ .read = read, .arg = arg, .buf = malloc(LINES_MAX + 1) };
	return l->buf != NULL;
}

void lines_close(struct lines *l)
{
	free(l->buf);
	l->buf = NULL;
}

/* More bytes behind those that are there. False at the end. */
static bool more(struct lines *l)
{
	ptrdiff_t got;

	memmove(l->buf, l->buf + l->at, l->n - l->at);
	l->n -= l->at;
	l->at = 0;
	if (l->ended || l->n == LINES_MAX)
		return false;
	got = l->read(l->arg, (unsigned char *)l->buf + l->n, LINES_MAX - l->n);
	l->failed = got < 0;
	l->ended = got <= 0;
	if (got > 0)
		l->n += (size_t)got;
	return got > 0;
}

/* To the end of a line that does not fit. */
static void skip(struct lines *l)
{
	l->n_long++;
	do {
		char *end = memchr(l->buf + l->at, '\n', l->n - l->at);

		l->at = end ? (size_t)(end - l->buf) + 1 : l->n;
		if (end)
			return;
	} while (more(l));
}

char *lines_next(struct lines *l, size_t *ret_n)
{
	size_t looked = 0;

	for (;;) {
		char *line = l->buf + l->at, *end = memchr(line + looked, '\n', l->n - l->at - looked);
		size_t n = end ? (size_t)(end - line) : l->n - l->at;

		if (end || (l->ended && n > 0)) {
			l->at += n + (end ? 1 : 0);
			n -= n > 0 && line[n - 1] == '\r';
			line[n] = '\0';
			*ret_n = n;
			return line;
		}
		looked = n;
		if (more(l))
			continue;
		if (l->n == LINES_MAX) {
			skip(l);
			looked = 0;
		} else if (l->n == l->at) {
			return NULL;
		}
	}
}
