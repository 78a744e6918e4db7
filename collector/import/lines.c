#include "lines.h"

#include <string.h>

void lines_init(struct lines *s, bytes_fn read, void *arg)
{
	s->read = read;
	s->arg = arg;
	s->n = s->at = 0;
	s->failed = s->ended = false;
	s->text[0] = '\0';
}

static bool fill(struct lines *s)
{
	ptrdiff_t got = s->ended || s->failed ? 0 : s->read(s->arg, s->buf, sizeof s->buf);

	s->failed |= got < 0;
	s->ended |= got == 0;
	s->at = 0;
	s->n = got > 0 ? (size_t)got : 0;
	return got > 0;
}

bool lines_next(struct lines *s)
{
	size_t n = 0;
	bool any = false;

	for (;;) {
		const unsigned char *end;
		size_t piece, room = sizeof s->text - 1 - n;

		if (s->at == s->n && !fill(s))
			break;
		any = true;
		end = memchr(s->buf + s->at, '\n', s->n - s->at);
		piece = end ? (size_t)(end - (s->buf + s->at)) : s->n - s->at;
		for (size_t i = 0; i < piece && i < room; i++)
			s->text[n++] = s->buf[s->at + i] ? (char)s->buf[s->at + i] : ' ';
		s->at += piece + (end != NULL);
		if (end)
			break;
	}
	while (n > 0 && s->text[n - 1] == '\r')
		n--;
	s->text[n] = '\0';
	return any && !s->failed;
}
