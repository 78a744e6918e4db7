#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spill {
	char *dir;
	size_t memory_bytes;
	atomic_uint n_refs;
	atomic_size_t used_bytes;
	atomic_uint_fast64_t end; /* of the file */
	atomic_int error;
	pthread_mutex_t lock; /* of what is below */
	int fd;		      /* -1 = not made yet; stays, once made */
};

struct spill *spill_new(const char *dir, size_t memory_bytes)
{
	struct spill *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->dir = strdup(dir);
	if (!s->dir) {
		free(s);
		return NULL;
	}
	s->memory_bytes = memory_bytes;
	s->n_refs = 1;
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct spill *spill_ref(struct spill *s)
{
	s->n_refs++;
	return s;
}

void spill_unref(struct spill *s)
{
	if (!s || --s->n_refs > 0)
		return;
	if (s->fd >= 0)
		close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->dir);
	free(s);
}

bool spill_ask(struct spill *s, size_t n_bytes, size_t of)
{
	size_t limit = of ? s->memory_bytes - s->memory_bytes / of : s->memory_bytes;

	if (atomic_fetch_add(&s->used_bytes, n_bytes) + n_bytes <= limit)
		return true;
	s->used_bytes -= n_bytes;
	return false;
}

void spill_take(struct spill *s, size_t n_bytes)
{
	s->used_bytes += n_bytes;
}

void spill_release(struct spill *s, size_t n_bytes)
{
	s->used_bytes -= n_bytes;
}

static bool fail(struct spill *s, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&s->error, &none, error);
	return false;
}

static int open_nameless(const char *dir)
{
	char path[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if (snprintf(path, sizeof path, "%s/syncline-XXXXXX", dir) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

bool spill_place(struct spill *s, uint64_t n_bytes, uint64_t *ret_at)
{
	pthread_mutex_lock(&s->lock);
	if (s->fd < 0) {
		s->fd = open_nameless(s->dir);
		if (s->fd < 0)
			fail(s, errno);
	}
	pthread_mutex_unlock(&s->lock);
	*ret_at = atomic_fetch_add(&s->end, n_bytes);
	return s->error == 0;
}

bool spill_write(struct spill *s, uint64_t at, const void *bytes, size_t n_bytes)
{
	const char *from = bytes;

	while (n_bytes > 0) {
		ssize_t n = pwrite(s->fd, from, n_bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(s, n < 0 ? errno : ENOSPC);
		from += n;
		at += (uint64_t)n;
		n_bytes -= (size_t)n;
	}
	return true;
}

bool spill_read(struct spill *s, uint64_t at, void *bytes, size_t n_bytes)
{
	char *to = bytes;

	while (n_bytes > 0) {
		ssize_t n = pread(s->fd, to, n_bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(s, n < 0 ? errno : EIO);
		to += n;
		at += (uint64_t)n;
		n_bytes -= (size_t)n;
	}
	return true;
}

void spill_drop(struct spill *s, uint64_t at, uint64_t n_bytes)
{
	/* Where it cannot be, the place is only given back at the end. */
	(void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)n_bytes);
}

uint64_t spill_written_bytes(const struct spill *s)
{
	return s->end;
}

bool spill_explain(const struct spill *s, char *why, size_t n_why)
{
	if (!s || s->error == 0)
		return false;
	snprintf(why, n_why, "what does not fit into memory cannot be kept in %s: %s. Name another folder with --tmp",
		 s->dir, strerror(s->error));
	return true;
}
