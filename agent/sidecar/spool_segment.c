/* spool_segment.c - the spool's segments: files, or memory where the disk refuses;
 * what is kept in them, and what goes when there is no more room.
 */
#include "spool_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TRUNCATE_AT (UINT64_C(256) << 10) /* an emptied file smaller than this stays as it is */
#define RETRY_PUTS 256			  /* batches in memory before the disk is asked again */

bool spool_grow(void **v, size_t n, size_t *n_alloc, size_t size)
{
	size_t want;
	void *p;

	if (n < *n_alloc)
		return true;
	want = *n_alloc ? *n_alloc * 2 : 16;
	p = realloc(*v, want * size);
	if (!p)
		return false;
	*v = p;
	*n_alloc = want;
	return true;
}

/* ---- files */

void spool_disk_error(struct spool *s, int err)
{
	s->stats.n_disk_errors++;
	s->stats.last_errno = err;
	s->n_puts_to_retry = RETRY_PUTS;
}

int spool_write_all(int fd, const void *data, size_t n, uint64_t at)
{
	const unsigned char *p = data;

	while (n > 0) {
		ssize_t r = pwrite(fd, p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		p += r;
		at += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

int spool_read_all(int fd, void *data, size_t n, uint64_t at)
{
	unsigned char *p = data;

	while (n > 0) {
		ssize_t r = pread(fd, p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -EIO;
		p += r;
		at += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

/* ---- segments */

void spool_segment_free(struct segment *g)
{
	if (!g)
		return;
	for (size_t i = g->first; i < g->n; i++)
		free(g->items[i].data);
	if (g->fd >= 0)
		close(g->fd);
	free(g->path);
	free(g->items);
	free(g);
}

struct segment *spool_segment_push(struct spool *s)
{
	struct segment *g;

	if (!spool_grow((void **)&s->segments, s->n_segments, &s->n_segments_alloc,
			sizeof *s->segments))
		return NULL;
	g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->fd = -1;
	g->own = true;
	g->serial = s->next_serial++;
	memcpy(g->agent_id, s->head.agent_id, sizeof g->agent_id);
	s->segments[s->n_segments++] = g;
	return g;
}

void spool_segment_remove(struct spool *s, struct segment *g)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		if (s->segments[i] == g) {
			memmove(s->segments + i, s->segments + i + 1,
				(s->n_segments - i - 1) * sizeof *s->segments);
			s->n_segments--;
			break;
		}
	}
	spool_segment_free(g);
}

void spool_segment_settle(struct spool *s, struct segment *g)
{
	bool newest = g == s->segments[s->n_segments - 1] && g->own && !g->dropped;

	if (g->n_left > 0)
		return;
	if (!newest) {
		if (g->fd >= 0)
			unlink(g->path);
		spool_segment_remove(s, g);
		return;
	}
	if (g->fd >= 0 && g->n_file_bytes < TRUNCATE_AT)
		return;
	if (g->fd >= 0 && ftruncate(g->fd, sizeof s->head) == 0)
		g->n_file_bytes = sizeof s->head;
	/* Ids are never used twice: a late answer must not hit another batch. */
	g->serial = s->next_serial++;
	g->n = g->first = 0;
}

/* Segments that were emptied while they were the newest. */
static void sweep(struct spool *s)
{
	for (size_t i = s->n_segments; i-- > 0;)
		if (i + 1 < s->n_segments && s->segments[i]->n_left == 0)
			spool_segment_settle(s, s->segments[i]);
}

/* File names hold only what is safe in one. */
static void safe_name(const char *from, char *to, size_t n_to)
{
	size_t i = 0;

	for (; from[i] && i + 1 < n_to; i++) {
		char c = from[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || c == '-' || c == '_';

		to[i] = ok ? c : '_';
	}
	to[i] = 0;
}

struct segment *spool_segment_open(struct spool *s)
{
	struct segment *g = spool_segment_push(s);
	char run[64], id[33];
	int r;

	sweep(s);
	if (!g || !s->dir || s->n_puts_to_retry > 0)
		return g;
	safe_name(s->head.run_id, run, sizeof run);
	for (int i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", s->head.agent_id[i]);
	if (asprintf(&g->path, "%s/%s-%s-%06llu" SPOOL_SUFFIX, s->dir, run, id,
		     (unsigned long long)g->serial) < 0) {
		g->path = NULL;
		return g;
	}
	g->fd = open(g->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (g->fd < 0) {
		spool_disk_error(s, errno);
		goto memory;
	}
	r = flock(g->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (r == 0)
		r = spool_write_all(g->fd, &s->head, sizeof s->head, 0);
	if (r == 0) {
		g->n_file_bytes = sizeof s->head;
		return g;
	}
	spool_disk_error(s, -r);
	unlink(g->path);
	close(g->fd);
	g->fd = -1;
memory:
	free(g->path);
	g->path = NULL;
	return g;
}

/* ---- what is kept */

static struct segment *segment_of(const struct spool *s, uint64_t id)
{
	for (size_t i = 0; i < s->n_segments; i++)
		if (s->segments[i]->serial == id >> 32)
			return s->segments[i];
	return NULL;
}

struct item *spool_item_of(const struct spool *s, uint64_t id, struct segment **ret)
{
	struct segment *g = segment_of(s, id);
	size_t i = (uint32_t)id;

	*ret = g;
	return g && i >= g->first && i < g->n && g->items[i].state != DONE ? &g->items[i] : NULL;
}

struct item *spool_item_push(struct segment *g, uint64_t seq, uint64_t n_events, uint32_t flags,
			     uint32_t n_bytes)
{
	struct item *it;

	if (!spool_grow((void **)&g->items, g->n, &g->n_alloc, sizeof *g->items))
		return NULL;
	it = &g->items[g->n];
	*it = (struct item){
		.seq = seq, .n_events = n_events, .flags = flags, .n_bytes = n_bytes };
	return it;
}

static void kept(struct spool *s, const struct item *it, bool now)
{
	if (now) {
		s->stats.n_kept++;
		s->stats.kept_bytes += it->n_bytes;
	} else {
		s->stats.n_kept--;
		s->stats.kept_bytes -= it->n_bytes;
	}
}

uint64_t spool_item_added(struct spool *s, struct segment *g)
{
	kept(s, &g->items[g->n], true);
	g->n++;
	g->n_left++;
	return g->serial << 32 | (uint64_t)(g->n - 1);
}

uint64_t spool_used_bytes(const struct spool *s, bool memory)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_segments; i++)
		if (!s->segments[i]->dropped && (s->segments[i]->fd < 0) == memory)
			n += s->segments[i]->n_file_bytes;
	return n;
}

void spool_item_gone(struct spool *s, struct segment *g, struct item *it, bool lost)
{
	if (lost) {
		s->stats.n_given_up += it->n_events;
		s->stats.n_batches_given_up++;
	}
	kept(s, it, false);
	if (it->data && g->fd < 0)
		g->n_file_bytes -= it->n_bytes;
	free(it->data);
	it->data = NULL;
	it->state = DONE;
	g->n_left--;
	while (g->first < g->n && g->items[g->first].state == DONE)
		g->first++;
}

bool spool_drop_oldest_file(struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		if (g->fd < 0)
			continue;
		for (size_t k = g->first; k < g->n; k++)
			if (g->items[k].state == READY)
				spool_item_gone(s, g, &g->items[k], true);
		unlink(g->path);
		close(g->fd);
		g->fd = -1;
		g->dropped = true;
		if (g->n_left == 0)
			spool_segment_remove(s, g);
		return true;
	}
	return false;
}

bool spool_drop_oldest_in_memory(struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		if (g->fd >= 0 || g->dropped)
			continue;
		for (size_t k = g->first; k < g->n; k++) {
			if (g->items[k].state == READY) {
				spool_item_gone(s, g, &g->items[k], true);
				spool_segment_settle(s, g);
				return true;
			}
		}
	}
	return false;
}
