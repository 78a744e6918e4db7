#include "spool_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_SEGMENT_BYTES (UINT64_C(32) << 20)

#define RECORD_MAGIC 0x64636572u /* "recd" */
#define MAX_FRAME (1u << 20)
#define MAX_CURSORS 65536u
#define MAX_SEGMENT_BYTES (UINT64_C(32) << 20)
#define TRUNCATE_AT (UINT64_C(256) << 10) /* an emptied file smaller than this stays as it is */
#define RETRY_PUTS 256			  /* batches in memory before the disk is asked again */

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

/* The tail of a record that did not fit is cut off, or marked as torn by its
 * checksum if even that fails. */
static uint64_t put_file(struct spool *s, struct segment *g, const struct spool_record *rec,
			 const struct spool_cursor *cursors, const void *frame)
{
	size_t n_cur = rec->n_cursors * sizeof *cursors;
	uint64_t at = g->n_file_bytes;
	struct item *it = spool_item_push(g, rec->seq, rec->n_events, rec->flags, rec->n_bytes);
	int r = it ? 0 : -ENOMEM;

	if (r == 0)
		r = spool_write_all(g->fd, rec, sizeof *rec, at);
	if (r == 0 && n_cur > 0)
		r = spool_write_all(g->fd, cursors, n_cur, at + sizeof *rec);
	if (r == 0)
		r = spool_write_all(g->fd, frame, rec->n_bytes, at + sizeof *rec + n_cur);
	if (r != 0) {
		(void)!ftruncate(g->fd, (off_t)at);
		spool_disk_error(s, -r);
		return 0;
	}
	it->at = at + sizeof *rec + n_cur;
	g->n_file_bytes = it->at + rec->n_bytes;
	return spool_item_added(s, g);
}

static uint64_t put_memory(struct spool *s, const struct spool_record *rec, const void *frame)
{
	struct segment *g = s->n_segments > 0 ? s->segments[s->n_segments - 1] : NULL;
	struct item *it;

	while (spool_used_bytes(s, true) + rec->n_bytes > SPOOL_MEMORY_BYTES)
		if (!spool_drop_oldest_in_memory(s))
			return 0;
	if (!g || g->fd >= 0 || g->dropped || !g->own || g->n > UINT16_MAX) {
		unsigned n_puts = s->n_puts_to_retry;

		s->n_puts_to_retry = n_puts > 0 ? n_puts : 1;
		g = spool_segment_open(s);
		s->n_puts_to_retry = n_puts;
	}
	it = g ? spool_item_push(g, rec->seq, rec->n_events, rec->flags, rec->n_bytes) : NULL;
	if (!it)
		return 0;
	it->data = malloc(rec->n_bytes);
	if (!it->data)
		return 0;
	memcpy(it->data, frame, rec->n_bytes);
	g->n_file_bytes += rec->n_bytes;
	return spool_item_added(s, g);
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

		while (spool_used_bytes(s, false) + n_record > s->max_bytes &&
		       spool_drop_oldest_file(s))
			continue;
		g = s->n_segments > 0 ? s->segments[s->n_segments - 1] : NULL;
		if (!g || g->fd < 0 || g->dropped || !g->own || full)
			g = spool_segment_open(s);
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
	struct item *it = spool_item_of(s, id, &g);

	return it ? describe(g, (size_t)(it - g->items)) : (struct spool_item){ 0 };
}

int spool_read(struct spool *s, uint64_t id, void *out)
{
	struct segment *g;
	struct item *it = spool_item_of(s, id, &g);

	if (!it)
		return -EIO;
	if (it->data) {
		memcpy(out, it->data, it->n_bytes);
		return 0;
	}
	if (g->fd >= 0 && spool_read_all(g->fd, out, it->n_bytes, it->at) == 0)
		return 0;
	spool_give_up(s, id);
	return -EIO;
}

void spool_take(struct spool *s, uint64_t id)
{
	struct segment *g;
	struct item *it = spool_item_of(s, id, &g);

	if (it)
		it->state = FLYING;
}

static void gone(struct spool *s, uint64_t id, bool lost)
{
	struct segment *g;
	struct item *it = spool_item_of(s, id, &g);

	if (!it)
		return;
	spool_item_gone(s, g, it, lost);
	spool_segment_settle(s, g);
}

void spool_put_back(struct spool *s, uint64_t id)
{
	struct segment *g;
	struct item *it = spool_item_of(s, id, &g);

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

uint64_t spool_oldest(const struct spool *s, uint64_t seq)
{
	uint64_t oldest = seq + 1;

	for (size_t i = 0; i < s->n_segments; i++) {
		const struct segment *g = s->segments[i];

		for (size_t k = g->first; g->own && k < g->n; k++)
			if (g->items[k].state != DONE && g->items[k].seq < oldest)
				oldest = g->items[k].seq;
	}
	return oldest;
}

/* ---- life, and what a person sees */

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
		r = s->dir ? spool_adopt_all(s) : -ENOMEM;
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
		spool_segment_free(g);
	}
	free(s->segments);
	free(s->cursors);
	free(s->dir);
	free(s);
}

void spool_stats(const struct spool *s, struct spool_stats *ret)
{
	*ret = s->stats;
	ret->file_bytes = spool_used_bytes(s, false);
}

const char *spool_path(const struct spool *s)
{
	for (size_t i = 0; i < s->n_segments; i++)
		if (s->segments[i]->fd >= 0 && s->segments[i]->n_left > 0)
			return s->segments[i]->path;
	return "";
}
