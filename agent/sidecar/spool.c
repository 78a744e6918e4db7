#include "spool.h"

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

#define RECORD_MAGIC 0x64636572u /* "recd" */
#define MAX_FRAME (1u << 20)
#define MAX_CURSORS 65536u
#define MAX_SEGMENT_BYTES (UINT64_C(32) << 20)
#define TRUNCATE_AT (UINT64_C(256) << 10) /* an emptied file smaller than this stays as it is */
#define RETRY_PUTS 256			  /* batches in memory before the disk is asked again */

enum state { READY, FLYING, DONE };

struct item {
	uint64_t seq, n_events, at; /* at: of the frame, in the file */
	unsigned char *data;	    /* in a memory segment */
	uint32_t n_bytes, flags;
	enum state state;
};

struct segment {
	uint64_t serial;
	int fd; /* -1 = memory, or dropped */
	char *path;
	bool own, dropped;
	uint8_t agent_id[16];
	uint64_t n_file_bytes; /* or of memory */
	struct item *items;
	size_t n, n_alloc, first; /* items before first are done */
	size_t n_left;
};

struct spool {
	char *dir; /* NULL = memory only */
	uint64_t max_bytes, segment_bytes;
	struct spool_head head;
	struct segment **segments; /* oldest first */
	size_t n_segments, n_segments_alloc;
	uint64_t next_serial;
	unsigned n_puts_to_retry;
	struct spool_cursor *cursors;
	size_t n_cursors, n_cursors_alloc;
	struct spool_stats stats;
};

static bool grow(void **v, size_t n, size_t *n_alloc, size_t size)
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

/* ---- segments */

static void segment_free(struct segment *g)
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

static struct segment *segment_push(struct spool *s)
{
	struct segment *g;

	if (!grow((void **)&s->segments, s->n_segments, &s->n_segments_alloc, sizeof *s->segments))
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

static void segment_remove(struct spool *s, struct segment *g)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		if (s->segments[i] == g) {
			memmove(s->segments + i, s->segments + i + 1,
				(s->n_segments - i - 1) * sizeof *s->segments);
			s->n_segments--;
			break;
		}
	}
	segment_free(g);
}

static struct segment *segment_of(const struct spool *s, uint64_t id)
{
	for (size_t i = 0; i < s->n_segments; i++)
		if (s->segments[i]->serial == id >> 32)
			return s->segments[i];
	return NULL;
}

static struct item *item_of(const struct spool *s, uint64_t id, struct segment **ret)
{
	struct segment *g = segment_of(s, id);
	size_t i = (uint32_t)id;

	*ret = g;
	return g && i >= g->first && i < g->n && g->items[i].state != DONE ? &g->items[i] : NULL;
}

/* Nothing left in it: give the disk its room back. The newest segment of ours
 * is used again. */
static void segment_settle(struct spool *s, struct segment *g)
{
	bool newest = g == s->segments[s->n_segments - 1] && g->own && !g->dropped;

	if (g->n_left > 0)
		return;
	if (!newest) {
		if (g->fd >= 0)
			unlink(g->path);
		segment_remove(s, g);
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
			segment_settle(s, s->segments[i]);
}

static void disk_error(struct spool *s, int err)
{
	s->stats.n_disk_errors++;
	s->stats.last_errno = err;
	s->n_puts_to_retry = RETRY_PUTS;
}

static int write_all(int fd, const void *data, size_t n, uint64_t at)
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

static int read_all(int fd, void *data, size_t n, uint64_t at)
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

/* A file of ours to append to; a memory segment when the disk refuses. */
static struct segment *segment_open(struct spool *s)
{
	struct segment *g = segment_push(s);
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
		disk_error(s, errno);
		goto memory;
	}
	r = flock(g->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (r == 0)
		r = write_all(g->fd, &s->head, sizeof s->head, 0);
	if (r == 0) {
		g->n_file_bytes = sizeof s->head;
		return g;
	}
	disk_error(s, -r);
	unlink(g->path);
	close(g->fd);
	g->fd = -1;
memory:
	free(g->path);
	g->path = NULL;
	return g;
}

/* ---- what is kept */

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

static uint64_t used_bytes(const struct spool *s, bool memory)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_segments; i++)
		if (!s->segments[i]->dropped && (s->segments[i]->fd < 0) == memory)
			n += s->segments[i]->n_file_bytes;
	return n;
}

static void item_gone(struct spool *s, struct segment *g, struct item *it, bool lost)
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

/* The oldest goes, whatever is in it. What is in flight may still arrive, so it
 * is only counted when its answer says no. */
static bool drop_oldest_file(struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		if (g->fd < 0)
			continue;
		for (size_t k = g->first; k < g->n; k++)
			if (g->items[k].state == READY)
				item_gone(s, g, &g->items[k], true);
		unlink(g->path);
		close(g->fd);
		g->fd = -1;
		g->dropped = true;
		if (g->n_left == 0)
			segment_remove(s, g);
		return true;
	}
	return false;
}

/* In memory the oldest batch goes, not a whole segment. */
static bool drop_oldest_in_memory(struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		if (g->fd >= 0 || g->dropped)
			continue;
		for (size_t k = g->first; k < g->n; k++) {
			if (g->items[k].state == READY) {
				item_gone(s, g, &g->items[k], true);
				segment_settle(s, g);
				return true;
			}
		}
	}
	return false;
}

/* ---- putting */

static void put_head(struct spool_record *rec, uint64_t seq, uint64_t n_events, uint32_t flags,
		     const struct spool_cursor *cursors, uint32_t n_cursors, const void *frame,
		     uint32_t n_bytes)
{
	uLong crc;

	*rec = (struct spool_record){ .magic = RECORD_MAGIC,
				      .n_bytes = n_bytes,
				      .seq = seq,
				      .n_events = n_events,
				      .n_cursors = n_cursors,
				      .flags = flags };
	crc = crc32(0, (const Bytef *)rec, sizeof *rec);
	if (n_cursors > 0)
		crc = crc32(crc, (const Bytef *)cursors, (uInt)(n_cursors * sizeof *cursors));
	rec->crc = (uint32_t)crc32(crc, frame, n_bytes);
}

static struct item *item_push(struct segment *g, uint64_t seq, uint64_t n_events, uint32_t flags,
			      uint32_t n_bytes)
{
	struct item *it;

	if (!grow((void **)&g->items, g->n, &g->n_alloc, sizeof *g->items))
		return NULL;
	it = &g->items[g->n];
	*it = (struct item){
		.seq = seq, .n_events = n_events, .flags = flags, .n_bytes = n_bytes };
	return it;
}

static uint64_t item_added(struct spool *s, struct segment *g)
{
	kept(s, &g->items[g->n], true);
	g->n++;
	g->n_left++;
	return g->serial << 32 | (uint64_t)(g->n - 1);
}

/* The tail of a record that did not fit is cut off, or marked as torn by its
 * checksum if even that fails. */
static uint64_t put_file(struct spool *s, struct segment *g, const struct spool_record *rec,
			 const struct spool_cursor *cursors, const void *frame)
{
	size_t n_cur = rec->n_cursors * sizeof *cursors;
	uint64_t at = g->n_file_bytes;
	struct item *it = item_push(g, rec->seq, rec->n_events, rec->flags, rec->n_bytes);
	int r = it ? 0 : -ENOMEM;

	if (r == 0)
		r = write_all(g->fd, rec, sizeof *rec, at);
	if (r == 0 && n_cur > 0)
		r = write_all(g->fd, cursors, n_cur, at + sizeof *rec);
	if (r == 0)
		r = write_all(g->fd, frame, rec->n_bytes, at + sizeof *rec + n_cur);
	if (r != 0) {
		(void)!ftruncate(g->fd, (off_t)at);
		disk_error(s, -r);
		return 0;
	}
	it->at = at + sizeof *rec + n_cur;
	g->n_file_bytes = it->at + rec->n_bytes;
	return item_added(s, g);
}

static uint64_t put_memory(struct spool *s, const struct spool_record *rec, const void *frame)
{
	struct segment *g = s->n_segments > 0 ? s->segments[s->n_segments - 1] : NULL;
	struct item *it;

	while (used_bytes(s, true) + rec->n_bytes > SPOOL_MEMORY_BYTES)
		if (!drop_oldest_in_memory(s))
			return 0;
	if (!g || g->fd >= 0 || g->dropped || !g->own || g->n > UINT16_MAX) {
		unsigned n_puts = s->n_puts_to_retry;

		s->n_puts_to_retry = n_puts > 0 ? n_puts : 1;
		g = segment_open(s);
		s->n_puts_to_retry = n_puts;
	}
	it = g ? item_push(g, rec->seq, rec->n_events, rec->flags, rec->n_bytes) : NULL;
	if (!it)
		return 0;
	it->data = malloc(rec->n_bytes);
	if (!it->data)
		return 0;
	memcpy(it->data, frame, rec->n_bytes);
	g->n_file_bytes += rec->n_bytes;
	return item_added(s, g);
}

uint64_t spool_put(struct spool *s, uint64_t seq, uint64_t n_events, uint32_t flags,
		   const struct spool_cursor *cursors, uint32_t n_cursors, const void *frame,
		   uint32_t n_bytes)
{
	struct segment *g = s->n_segments > 0 ? s->segments[s->n_segments - 1] : NULL;
	struct spool_record rec;
	uint64_t n_record, id = 0;

	put_head(&rec, seq, n_events, flags, cursors, n_cursors, frame, n_bytes);
	n_record = sizeof rec + n_cursors * sizeof *cursors + n_bytes;
	if (s->n_puts_to_retry > 0)
		s->n_puts_to_retry--;
	if (s->dir && s->n_puts_to_retry == 0) {
		bool full = g && g->n > 0 && g->n_file_bytes + n_record > s->segment_bytes;

		while (used_bytes(s, false) + n_record > s->max_bytes && drop_oldest_file(s))
			continue;
		g = s->n_segments > 0 ? s->segments[s->n_segments - 1] : NULL;
		if (!g || g->fd < 0 || g->dropped || !g->own || full)
			g = segment_open(s);
		if (g && g->fd >= 0)
			id = put_file(s, g, &rec, cursors, frame);
	}
	if (id == 0)
		id = put_memory(s, &rec, frame);
	if (id == 0) {
		s->stats.n_given_up += n_events;
		s->stats.n_batches_given_up++;
	}
	return id;
}

/* ---- taking */

static struct spool_item describe(const struct segment *g, size_t i)
{
	const struct item *it = &g->items[i];
	struct spool_item ret = {
		.id = g->serial << 32 | (uint64_t)i,
		.seq = it->seq,
		.n_events = it->n_events,
		.n_bytes = it->n_bytes,
		.flags = it->flags,
	};

	memcpy(ret.agent_id, g->agent_id, sizeof ret.agent_id);
	return ret;
}

struct spool_item spool_next(struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		for (size_t k = g->first; k < g->n && !g->dropped; k++)
			if (g->items[k].state == READY)
				return describe(g, k);
	}
	return (struct spool_item){ 0 };
}

struct spool_item spool_item(struct spool *s, uint64_t id)
{
	struct segment *g;
	struct item *it = item_of(s, id, &g);

	return it ? describe(g, (size_t)(it - g->items)) : (struct spool_item){ 0 };
}

int spool_read(struct spool *s, uint64_t id, void *out)
{
	struct segment *g;
	struct item *it = item_of(s, id, &g);

	if (!it)
		return -EIO;
	if (it->data) {
		memcpy(out, it->data, it->n_bytes);
		return 0;
	}
	if (g->fd >= 0 && read_all(g->fd, out, it->n_bytes, it->at) == 0)
		return 0;
	spool_give_up(s, id);
	return -EIO;
}

void spool_take(struct spool *s, uint64_t id)
{
	struct segment *g;
	struct item *it = item_of(s, id, &g);

	if (it)
		it->state = FLYING;
}

static void gone(struct spool *s, uint64_t id, bool lost)
{
	struct segment *g;
	struct item *it = item_of(s, id, &g);

	if (!it)
		return;
	item_gone(s, g, it, lost);
	segment_settle(s, g);
}

void spool_put_back(struct spool *s, uint64_t id)
{
	struct segment *g;
	struct item *it = item_of(s, id, &g);

	if (!it)
		return;
	if (g->dropped)
		gone(s, id, true);
	else
		it->state = READY;
}

void spool_done(struct spool *s, uint64_t id)
{
	gone(s, id, false);
}

void spool_give_up(struct spool *s, uint64_t id)
{
	gone(s, id, true);
}

bool spool_settled(const struct spool *s, uint64_t seq)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct segment *g = s->segments[i];

		for (size_t k = g->first; g->own && k < g->n; k++)
			if (g->items[k].state != DONE && g->items[k].seq <= seq)
				return false;
	}
	return true;
}

/* ---- adopting */

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
	if (!grow((void **)&s->cursors, s->n_cursors, &s->n_cursors_alloc, sizeof *s->cursors))
		return false;
	s->cursors[s->n_cursors++] = *c;
	return true;
}

bool spool_cursor(const struct spool *s, uint64_t unique, uint32_t ring, uint64_t *ret_next)
{
	for (size_t i = 0; i < s->n_cursors; i++) {
		if (s->cursors[i].unique == unique && s->cursors[i].ring == ring) {
			*ret_next = s->cursors[i].next;
			return true;
		}
	}
	return false;
}

/* One record at `at`; false at the end or where the tail is torn. */
static bool read_record(struct spool *s, struct segment *g, uint64_t at, uint64_t n_file,
			unsigned char **buf, size_t *n_buf, uint64_t *ret_next)
{
	struct spool_record rec, zero;
	struct item *it;
	size_t n_cur, n;
	uint32_t crc;

	if (n_file - at < sizeof rec || read_all(g->fd, &rec, sizeof rec, at) != 0 ||
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
	if (read_all(g->fd, *buf, n, at + sizeof rec) != 0)
		return false;
	zero = rec;
	zero.crc = 0;
	crc = (uint32_t)crc32(crc32(0, (const Bytef *)&zero, sizeof zero), *buf, (uInt)n);
	if (crc != rec.crc)
		return false;
	it = item_push(g, rec.seq, rec.n_events, rec.flags, rec.n_bytes);
	if (!it)
		return false;
	it->at = at + sizeof rec + n_cur;
	item_added(s, g);
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
	    (uint64_t)st.st_size < sizeof *ret || read_all(fd, ret, sizeof *ret, 0) != 0 ||
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
	g = segment_push(s);
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
		segment_remove(s, g);
	}
	return 0;
}

static int is_spool(const struct dirent *d)
{
	size_t n = strlen(d->d_name), k = strlen(SPOOL_SUFFIX);

	return n > k && strcmp(d->d_name + n - k, SPOOL_SUFFIX) == 0;
}

/* Names sort by agent, then by segment: the order in which they were written. */
static int adopt_all(struct spool *s)
{
	struct dirent **names;
	int n = scandir(s->dir, &names, is_spool, alphasort), r = 0;

	if (n < 0) {
		disk_error(s, errno);
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

int spool_open(struct spool **ret, const struct spool_config *cfg)
{
	struct spool *s = calloc(1, sizeof *s);
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->head = *cfg->who;
	s->head.magic = SPOOL_MAGIC;
	s->head.version = SPOOL_VERSION;
	s->head.head_bytes = sizeof s->head;
	s->next_serial = 1;
	s->max_bytes = cfg->max_bytes < SPOOL_MIN_BYTES ? SPOOL_MIN_BYTES : cfg->max_bytes;
	s->segment_bytes = s->max_bytes / 8;
	if (s->segment_bytes > MAX_SEGMENT_BYTES)
		s->segment_bytes = MAX_SEGMENT_BYTES;
	if (cfg->dir) {
		s->dir = strdup(cfg->dir);
		r = s->dir ? adopt_all(s) : -ENOMEM;
	}
	if (r != 0) {
		spool_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_segments; i++) {
		struct segment *g = s->segments[i];

		if (g->fd >= 0 && g->n_left == 0)
			unlink(g->path);
		segment_free(g);
	}
	free(s->segments);
	free(s->cursors);
	free(s->dir);
	free(s);
}

void spool_stats(const struct spool *s, struct spool_stats *ret)
{
	*ret = s->stats;
	ret->file_bytes = used_bytes(s, false);
}

const char *spool_path(const struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++)
		if (s->segments[i]->fd >= 0 && s->segments[i]->n_left > 0)
			return s->segments[i]->path;
	return "";
}
