/* spool_adopt.c - what earlier agents of this run, host and boot left behind. */
#include "spool_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_FRAME (1u << 20)
#define MAX_CURSORS 65536u

static bool remember_cursor(struct spool *s, const struct spool_cursor *c)
{
	for (size_t i = 0; i < s->n_cursors; i++) {
		struct spool_cursor *v = &s->cursors[i];

		if (v->unique == c->unique && v->ring == c->ring) {
			if (c->next > v->next)
				v->next = c->next;
			return true;
		}
	}
	if (!spool_grow((void **)&s->cursors, s->n_cursors, &s->n_cursors_alloc,
			sizeof *s->cursors))
		return false;
	s->cursors[s->n_cursors++] = *c;
	return true;
}

/* One record at `at`; false at the end or where the tail is torn. */
static bool read_record(struct spool *s, struct segment *g, uint64_t at, uint64_t n_file,
			unsigned char **buf, size_t *n_buf, uint64_t *ret_next)
{
	struct spool_record rec, zero;
	struct item *it;
	size_t n_cur, n;
	uint32_t crc;

	if (n_file - at < sizeof rec || spool_read_all(g->fd, &rec, sizeof rec, at) != 0 ||
	    rec.magic != RECORD_MAGIC || rec.n_bytes == 0 || rec.n_bytes > MAX_FRAME ||
	    rec.n_cursors > MAX_CURSORS)
		return false;
	n_cur = rec.n_cursors * sizeof(struct spool_cursor);
	n = n_cur + rec.n_bytes;
	if (n > n_file - at - sizeof rec)
		return false;
	if (n > *n_buf) {
		unsigned char *p = realloc(*buf, n);

		if (!p)
			return false;
		*buf = p;
		*n_buf = n;
	}
	if (spool_read_all(g->fd, *buf, n, at + sizeof rec) != 0)
		return false;
	zero = rec;
	zero.crc = 0;
	crc = (uint32_t)crc32(crc32(0, (const Bytef *)&zero, sizeof zero), *buf, (uInt)n);
	if (crc != rec.crc)
		return false;
	it = spool_item_push(g, rec.seq, rec.n_events, rec.flags, rec.n_bytes);
	if (!it)
		return false;
	it->at = at + sizeof rec + n_cur;
	spool_item_added(s, g);
	for (uint32_t i = 0; i < rec.n_cursors; i++) {
		struct spool_cursor c;

		memcpy(&c, *buf + i * sizeof c, sizeof c);
		remember_cursor(s, &c);
	}
	*ret_next = it->at + rec.n_bytes;
	return true;
}

static bool same_text(const char *a, const char *b, size_t n)
{
	return strncmp(a, b, n) == 0;
}

/* Is it a file of ours that no living agent holds? The name of another's file,
 * a link or a pipe in a shared directory must not fool us. */
static int open_leftover(const char *path, struct spool_head *ret, uint64_t *ret_bytes)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
	    (uint64_t)st.st_size < sizeof *ret || spool_read_all(fd, ret, sizeof *ret, 0) != 0 ||
	    ret->magic != SPOOL_MAGIC || ret->version != SPOOL_VERSION ||
	    ret->head_bytes != sizeof *ret) {
		close(fd);
		return -1;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

static int adopt(struct spool *s, const char *name)
{
	struct spool_head h;
	struct segment *g;
	unsigned char *buf = NULL;
	size_t n_buf = 0;
	uint64_t n_file, at;
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", s->dir, name) < 0)
		return -ENOMEM;
	fd = open_leftover(path, &h, &n_file);
	if (fd < 0 || !same_text(h.run_id, s->head.run_id, sizeof h.run_id)) {
		if (fd >= 0)
			close(fd);
		free(path);
		return 0;
	}
	if (!same_text(h.boot_id, s->head.boot_id, sizeof h.boot_id) ||
	    !same_text(h.host, s->head.host, sizeof h.host) ||
	    h.time_ns_inode != s->head.time_ns_inode) {
		s->stats.n_foreign++; /* its times are of a clock that is gone */
		close(fd);
		free(path);
		return 0;
	}
	g = spool_segment_push(s);
	if (!g) {
		close(fd);
		free(path);
		return -ENOMEM;
	}
	g->fd = fd;
	g->path = path;
	g->own = false;
	memcpy(g->agent_id, h.agent_id, sizeof g->agent_id);
	g->n_file_bytes = n_file;
	at = sizeof h;
	while (at < n_file && read_record(s, g, at, n_file, &buf, &n_buf, &at))
		continue;
	if (at != n_file)
		s->stats.n_torn++;
	free(buf);
	s->stats.n_adopted += g->n;
	if (g->n == 0) {
		unlink(path);
		spool_segment_remove(s, g);
	}
	return 0;
}

static int is_spool(const struct dirent *d)
{
	size_t n = strlen(d->d_name), k = strlen(SPOOL_SUFFIX);

	return n > k && strcmp(d->d_name + n - k, SPOOL_SUFFIX) == 0;
}

int spool_adopt_all(struct spool *s)
{
	struct dirent **names;
	int n = scandir(s->dir, &names, is_spool, alphasort), r = 0;

	if (n < 0) {
		spool_disk_error(s, errno);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = adopt(s, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return r;
}
