#include "source.h"

#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ptrdiff_t read_raw(void *source, unsigned char *out, size_t n)
{
	struct source *s = source;
	ssize_t got;

	if (n > s->end - s->at)
		n = (size_t)(s->end - s->at);
	do
		got = n > 0 ? pread(s->fd, out, n, (off_t)s->at) : 0;
	while (got < 0 && errno == EINTR);
	if (got < 0)
		snprintf(s->why, sizeof s->why, "cannot be read: %s", strerror(errno));
	else
		s->at += (uint64_t)got;
	return got;
}

static bool open_packed(struct source *s)
{
	unsigned char head[8];
	ssize_t n = pread(s->fd, head, s->n_file_bytes < sizeof head ? (size_t)s->n_file_bytes : sizeof head, (off_t)s->at);

	if (n <= 0 || !unpack_is_packed(head, (size_t)n))
		return true;
	s->unpack = unpack_new(head, (size_t)n, read_raw, s);
	if (!s->unpack)
		snprintf(s->why, sizeof s->why, "cannot be read: %s", strerror(ENOMEM));
	return s->unpack != NULL;
}

bool source_open(struct source *s, const char *path)
{
	struct stat st;

	memset(s, 0, sizeof *s);
	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for ever */
	if (s->fd < 0 || fstat(s->fd, &st) != 0) {
		snprintf(s->why, sizeof s->why, "cannot be read: %s", strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(s->why, sizeof s->why, "cannot be read: it is no file");
		return false;
	}
	s->end = s->n_file_bytes = (uint64_t)st.st_size;
	return open_packed(s);
}

bool source_open_input(struct source *s, const struct trace_input *in)
{
	if (!in->member)
		return source_open(s, in->path);
	memset(s, 0, sizeof *s);
	s->fd = in->fd;
	s->borrowed = true;
	s->at = in->at;
	s->n_file_bytes = in->n_file_bytes;
	s->end = s->at + s->n_file_bytes;
	return open_packed(s);
}

void source_close(struct source *s)
{
	unpack_free(s->unpack);
	s->unpack = NULL;
	if (s->fd >= 0 && !s->borrowed)
		close(s->fd);
	s->fd = -1;
}

/* Past the head. */
static ptrdiff_t read_on(struct source *s, unsigned char *out, size_t n)
{
	ptrdiff_t got;

	if (!s->unpack) {
		got = read_raw(s, out, n);
	} else if (s->n_bytes >= SOURCE_FREE_BYTES && s->n_bytes / SOURCE_GROWTH >= s->n_file_bytes) {
		snprintf(s->why, sizeof s->why, "is refused: it unpacks to more than %d times its size", SOURCE_GROWTH);
		return -1;
	} else {
		got = unpack_read(s->unpack, out, n);
		if (got < 0 && !s->why[0])
			snprintf(s->why, sizeof s->why, "cannot be read to its end: it is damaged or cut off");
	}
	if (got > 0)
		s->n_bytes += (uint64_t)got;
	return got;
}

bool source_head(struct source *s)
{
	while (s->n_head < sizeof s->head) {
		ptrdiff_t got = read_on(s, s->head + s->n_head, sizeof s->head - s->n_head);

		if (got < 0)
			return s->n_head > 0; /* what is there is looked at; its reader meets the end */
		if (got == 0)
			break;
		s->n_head += (size_t)got;
	}
	return true;
}

bool source_rewind(struct source *s)
{
	if (s->n_bytes == s->n_head) { /* nothing was read behind the head */
		s->head_at = 0;
		return true;
	}
	s->n_head = s->head_at = 0;
	s->n_bytes = 0;
	s->at = s->end - s->n_file_bytes;
	unpack_free(s->unpack);
	s->unpack = NULL;
	s->why[0] = '\0';
	return open_packed(s);
}

ptrdiff_t source_read(void *source, unsigned char *out, size_t n)
{
	struct source *s = source;

	if (s->head_at < s->n_head) {
		if (n > s->n_head - s->head_at)
			n = s->n_head - s->head_at;
		memcpy(out, s->head + s->head_at, n);
		s->head_at += n;
		return (ptrdiff_t)n;
	}
	return read_on(s, out, n);
}

double source_share(const struct source *s)
{
	return s->n_file_bytes ? 1 - (double)(s->end - s->at) / (double)s->n_file_bytes : 0;
}
