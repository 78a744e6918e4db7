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

	*s = (struct source){ 0 };
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

ptrdiff_t source_read(void *source, unsigned char *out, size_t n)
{
	struct source *s = source;
	int got, error;

	if (s->n_bytes >= SOURCE_MAX_BYTES) {
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

double source_share(const struct source *s)
{
	z_off_t at = s->gz ? gzoffset(s->gz) : 0;

	return s->n_file_bytes && at > 0 ? (double)at / (double)s->n_file_bytes : 0;
}
