#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

bool source_open(struct source *s, const char *path)
{
	/* A pipe would wait for ever. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	memset(s, 0, sizeof *s);
	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(s->why, sizeof s->why, "cannot be read: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(s->why, sizeof s->why, "cannot be read: it is no file");
		close(fd);
		return false;
	}
	s->n_file_bytes = (uint64_t)st.st_size;
	s->gz = gzdopen(fd, "rb");
	if (!s->gz) {
		snprintf(s->why, sizeof s->why, "cannot be read: %s", strerror(ENOMEM));
		close(fd);
		return false;
	}
	gzbuffer(s->gz, 1u << 17);
	return true;
}

void source_close(struct source *s)
{
	if (s->gz)
		gzclose(s->gz);
	s->gz = NULL;
}

/* Past the head. */
static ptrdiff_t read_packed(struct source *s, unsigned char *out, size_t n)
{
	int got, error;

	if (s->n_bytes >= SOURCE_MAX_BYTES && !gzdirect(s->gz)) {
		snprintf(s->why, sizeof s->why, "is refused: it unpacks to more than %u GiB",
			 (unsigned)(SOURCE_MAX_BYTES >> 30));
		return -1;
	}
	got = gzread(s->gz, out, (unsigned)n);
	(void)gzerror(s->gz, &error);
	if (got < 0 || (got == 0 && error != Z_OK && error != Z_STREAM_END)) {
		snprintf(s->why, sizeof s->why, "cannot be read to its end: it is damaged or cut off");
		return -1;
	}
	s->n_bytes += (uint64_t)got;
	return got;
}

bool source_head(struct source *s)
{
	while (s->n_head < sizeof s->head) {
		ptrdiff_t got = read_packed(s, s->head + s->n_head, sizeof s->head - s->n_head);

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
	if (gzrewind(s->gz) != 0) {
		snprintf(s->why, sizeof s->why, "cannot be read again from its begin");
		return false;
	}
	return true;
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
	return read_packed(s, out, n);
}

double source_share(const struct source *s)
{
	z_off_t at = s->gz ? gzoffset(s->gz) : 0;

	return s->n_file_bytes && at > 0 ? (double)at / (double)s->n_file_bytes : 0;
}
