/* One map a message with one-letter-ish keys; lists of records are arrays in a
 * fixed order, to which later versions may append. Readers look a key up by
 * name and ignore what they do not know. */
#include "frame.h"

#include "chunk.h"
#include "shm.h"

#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing */

static int buf_write(void *data, const char *bytes, size_t n)
{
	struct frame_buf *b = data;

	if (n > b->n_alloc - b->n_bytes) {
		size_t n_alloc = b->n_alloc ? b->n_alloc : 4096;
		unsigned char *p;

		while (n_alloc - b->n_bytes < n)
			n_alloc *= 2;
		p = realloc(b->data, n_alloc);
		if (!p)
			return -1;
		b->data = p;
		b->n_alloc = n_alloc;
	}
	if (n > 0)
		memcpy(b->data + b->n_bytes, bytes, n);
	b->n_bytes += n;
	return 0;
}

void frame_buf_fini(struct frame_buf *b)
{
	free(b->data);
	*b = (struct frame_buf){ 0 };
}

struct packer {
	msgpack_packer pk;
	bool failed;
};

static void check(struct packer *p, int r)
{
	p->failed |= r != 0;
}
static void put_bytes(struct packer *p, const char *s, size_t n)
{
	check(p, msgpack_pack_str_with_body(&p->pk, s, n));
}
static void put_str(struct packer *p, const char *s)
{
	put_bytes(p, s ? s : "", s ? strlen(s) : 0);
}
static void put_bin(struct packer *p, const void *s, size_t n)
{
	check(p, msgpack_pack_bin_with_body(&p->pk, s, n));
}
static void put_u64(struct packer *p, uint64_t v)
{
	check(p, msgpack_pack_uint64(&p->pk, v));
}
static void put_i64(struct packer *p, int64_t v)
{
	check(p, msgpack_pack_int64(&p->pk, v));
}
static void put_array(struct packer *p, size_t n)
{
	check(p, msgpack_pack_array(&p->pk, n));
}
static void key_u64(struct packer *p, const char *key, uint64_t v)
{
	put_str(p, key);
	put_u64(p, v);
}
static void key_i64(struct packer *p, const char *key, int64_t v)
{
	put_str(p, key);
	put_i64(p, v);
}
static void key_str(struct packer *p, const char *key, const char *v)
{
	put_str(p, key);
	put_str(p, v);
}

#define N_PROC_FIELDS 18
static void put_proc(struct packer *p, const struct frame_proc *v)
{
	put_array(p, N_PROC_FIELDS);
	put_u64(p, v->proc);
	put_u64(p, v->unique);
	put_i64(p, v->started_ns);
	put_u64(p, v->pid);
	put_i64(p, v->rank);
	put_i64(p, v->local_rank);
	put_i64(p, v->world_size);
	put_i64(p, v->restart_count);
	put_u64(p, v->tick_source);
	put_u64(p, v->tick_error_ns);
	put_u64(p, v->level);
	put_u64(p, v->state);
	put_i64(p, v->state_at_ns);
	put_i64(p, v->exit_code);
	put_i64(p, v->signal);
	put_u64(p, v->n_dropped);
	put_u64(p, v->n_text_dropped);
	put_u64(p, v->n_names_dropped);
}

static void put_procs(struct packer *p, const struct frame_proc *v, uint32_t n)
{
	put_str(p, "pr");
	put_array(p, n);
	for (uint32_t i = 0; i < n; i++)
		put_proc(p, &v[i]);
}

static void put_hello(struct packer *p, const struct frame_hello *h)
{
	put_str(p, "id");
	put_bin(p, h->agent_id, sizeof h->agent_id);
	key_str(p, "run", h->run_id);
	key_str(p, "host", h->host);
	key_str(p, "boot", h->boot_id);
	key_str(p, "tok", h->token);
	key_str(p, "ver", h->version);
	key_u64(p, "tns", h->time_ns_inode);
	key_i64(p, "raw", h->raw_ns);
	key_i64(p, "real", h->real_ns);
	put_procs(p, h->procs, h->n_procs);
}

static void put_heartbeat(struct packer *p, const struct frame_heartbeat *h)
{
	key_u64(p, "st", h->stream);
	key_i64(p, "t0", h->t0_ns);
	key_i64(p, "real", h->real_ns);
	put_str(p, "x");
	put_array(p, 4);
	put_i64(p, h->last.t0_ns);
	put_i64(p, h->last.t1_ns);
	put_i64(p, h->last.t2_ns);
	put_i64(p, h->last.t3_ns);
	key_u64(p, "sp", h->n_spooled_bytes);
	key_u64(p, "sd", h->n_spool_dropped);
	key_u64(p, "old", h->oldest_seq);
	key_u64(p, "cpu", h->cpu_ns);
	key_u64(p, "rss", h->rss_bytes);
	put_str(p, "pb");
	put_array(p, 5);
	put_u64(p, h->probing.state);
	put_u64(p, h->probing.n_sent);
	put_u64(p, h->probing.n_answered);
	put_u64(p, h->probing.n_refused);
	put_u64(p, h->probing.peer_port);
	put_str(p, "fl");
	put_array(p, h->n_inflight);
	for (uint32_t i = 0; i < h->n_inflight; i++) {
		const struct frame_inflight *f = &h->inflight[i];

		put_array(p, 9);
		put_u64(p, f->proc);
		put_i64(p, f->rank);
		put_u64(p, f->step);
		put_u64(p, f->phase);
		put_str(p, f->group);
		put_u64(p, f->seq);
		put_u64(p, f->op);
		put_i64(p, f->since_ns);
		put_i64(p, f->last_event_ns);
	}
}

static void put_snapshots(struct packer *p, const struct frame_snapshot *v, uint32_t n)
{
	put_str(p, "sn");
	put_array(p, n);
	for (uint32_t i = 0; i < n; i++) {
		put_array(p, 7);
		put_i64(p, v[i].raw_ns);
		put_i64(p, v[i].mono_ns);
		put_i64(p, v[i].real_ns);
		put_i64(p, v[i].boot_ns);
		put_u64(p, v[i].half_ns);
		put_u64(p, v[i].tick_source);
		put_u64(p, v[i].tick);
	}
}

static void put_batch(struct packer *p, const struct frame_batch *b)
{
	key_u64(p, "st", b->stream);
	key_u64(p, "sq", b->seq);
	put_str(p, "id");
	put_bin(p, b->agent_id, sizeof b->agent_id);
	key_u64(p, "gu", b->n_given_up);
	put_procs(p, b->procs, b->n_procs);
	put_str(p, "nm");
	put_array(p, b->n_names);
	for (uint32_t i = 0; i < b->n_names; i++) {
		put_array(p, 3);
		put_u64(p, b->names[i].proc);
		put_u64(p, b->names[i].id);
		put_bytes(p, b->names[i].text, b->names[i].n_text);
	}
	put_str(p, "ch");
	put_array(p, b->n_chunks);
	for (uint32_t i = 0; i < b->n_chunks; i++) {
		put_array(p, 4);
		put_u64(p, b->chunks[i].proc);
		put_u64(p, b->chunks[i].ring);
		put_u64(p, b->chunks[i].first);
		put_bin(p, b->chunks[i].data, b->chunks[i].n_bytes);
	}
	put_str(p, "tx");
	put_array(p, b->n_texts);
	for (uint32_t i = 0; i < b->n_texts; i++) {
		put_array(p, 5);
		put_u64(p, b->texts[i].proc);
		put_u64(p, b->texts[i].kind);
		put_u64(p, b->texts[i].level);
		put_i64(p, b->texts[i].at_ns);
		put_bytes(p, b->texts[i].text, b->texts[i].n_text);
	}
	put_str(p, "ga");
	put_array(p, b->n_gauges);
	for (uint32_t i = 0; i < b->n_gauges; i++) {
		put_array(p, 4);
		put_u64(p, b->gauges[i].proc);
		put_i64(p, b->gauges[i].at_ns);
		put_str(p, b->gauges[i].name);
		check(p, msgpack_pack_double(&p->pk, b->gauges[i].value));
	}
	put_snapshots(p, b->snapshots, b->n_snapshots);
	put_str(p, "px");
	put_array(p, b->n_peer_exchanges);
	for (uint32_t i = 0; i < b->n_peer_exchanges; i++) {
		put_array(p, 5);
		put_u64(p, b->peer_exchanges[i].host);
		put_i64(p, b->peer_exchanges[i].t0_ns);
		put_i64(p, b->peer_exchanges[i].t1_ns);
		put_i64(p, b->peer_exchanges[i].t2_ns);
		put_i64(p, b->peer_exchanges[i].t3_ns);
	}
}

static void put_peers(struct packer *p, const struct frame_peer *v, uint32_t n)
{
	put_str(p, "pe");
	put_array(p, n);
	for (uint32_t i = 0; i < n; i++) {
		put_array(p, 3);
		put_u64(p, v[i].host);
		put_u64(p, v[i].port);
		put_bin(p, v[i].address, v[i].n_address);
	}
}

/* Entries of the map beyond "t" and "v". */
static size_t n_keys(enum frame_type t)
{
	switch (t) {
	case FRAME_HELLO:
		return 10;
	case FRAME_HEARTBEAT:
	case FRAME_BATCH:
		return 11;
	case FRAME_WELCOME:
		return 8;
	case FRAME_BEAT:
		return 6;
	case FRAME_ACK:
	case FRAME_REFUSE:
		return 2;
	case FRAME_REHELLO:
		return 1;
	}
	return 0;
}

int frame_pack(struct frame_buf *b, const struct frame *f)
{
	struct packer p = { 0 };

	b->n_bytes = 0;
	msgpack_packer_init(&p.pk, b, buf_write);
	check(&p, msgpack_pack_map(&p.pk, 2 + n_keys(f->type)));
	key_u64(&p, "t", f->type);
	key_u64(&p, "v", FRAME_PROTOCOL);
	switch (f->type) {
	case FRAME_HELLO:
		put_hello(&p, &f->hello);
		break;
	case FRAME_HEARTBEAT:
		put_heartbeat(&p, &f->heartbeat);
		break;
	case FRAME_BATCH:
		put_batch(&p, &f->batch);
		break;
	case FRAME_WELCOME:
		key_u64(&p, "st", f->welcome.stream);
		key_u64(&p, "lv", f->welcome.level);
		key_str(&p, "run", f->welcome.run_id);
		key_str(&p, "ver", f->welcome.version);
		key_str(&p, "no", f->welcome.notice);
		key_u64(&p, "up", f->welcome.probe_port);
		put_str(&p, "us");
		put_bin(&p, f->welcome.probe_secret, sizeof f->welcome.probe_secret);
		put_str(&p, "ms");
		put_bin(&p, f->welcome.peer_secret, sizeof f->welcome.peer_secret);
		break;
	case FRAME_BEAT:
		key_i64(&p, "t1", f->beat.t1_ns);
		key_i64(&p, "t2", f->beat.t2_ns);
		key_u64(&p, "lv", f->beat.level);
		key_u64(&p, "cr", f->beat.credit);
		key_str(&p, "no", f->beat.notice);
		put_peers(&p, f->beat.peers, f->beat.n_peers);
		break;
	case FRAME_ACK:
		key_u64(&p, "sq", f->ack.seq);
		key_u64(&p, "cr", f->ack.credit);
		break;
	case FRAME_REHELLO:
		key_u64(&p, "st", f->rehello.stream);
		break;
	case FRAME_REFUSE:
		key_u64(&p, "c", f->refuse.code);
		key_str(&p, "s", f->refuse.text);
		break;
	}
	return p.failed ? -ENOMEM : 0;
}

/* ---- opening */

/* A reader that remembers failure, so that a record is read in one go and
 * judged once. Out of memory is apart: it is not the sender's fault. */
struct reader {
	msgpack_object_map map;
	msgpack_zone *zone;
	bool bad, no_memory;
};

/* NULL: the sender is of a release that did not have it. */
static const msgpack_object *find_newer(struct reader *r, const char *key)
{
	size_t n = strlen(key);

	for (uint32_t i = 0; i < r->map.size; i++) {
		const msgpack_object_kv *kv = &r->map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == n &&
		    memcmp(kv->key.via.str.ptr, key, n) == 0)
			return &kv->val;
	}
	return NULL;
}

static const msgpack_object *find(struct reader *r, const char *key)
{
	const msgpack_object *o = find_newer(r, key);

	r->bad |= !o;
	return o;
}

static uint64_t as_u64(struct reader *r, const msgpack_object *o, uint64_t max)
{
	if (!o || o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > max) {
		r->bad = true;
		return 0;
	}
	return o->via.u64;
}
static uint32_t as_u32(struct reader *r, const msgpack_object *o)
{
	return (uint32_t)as_u64(r, o, UINT32_MAX);
}
static int64_t as_i64(struct reader *r, const msgpack_object *o)
{
	if (o && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		return o->via.i64;
	return (int64_t)as_u64(r, o, INT64_MAX);
}
static int32_t as_i32(struct reader *r, const msgpack_object *o)
{
	int64_t v = as_i64(r, o);

	if (v < INT32_MIN || v > INT32_MAX) {
		r->bad = true;
		return 0;
	}
	return (int32_t)v;
}

/* A zero-terminated copy in the zone; refuses embedded zeros and long ones. */
static const char *as_str(struct reader *r, const msgpack_object *o, size_t max)
{
	char *s;

	if (!o || o->type != MSGPACK_OBJECT_STR || o->via.str.size > max ||
	    (o->via.str.size > 0 && memchr(o->via.str.ptr, 0, o->via.str.size))) {
		r->bad = true;
		return "";
	}
	s = msgpack_zone_malloc(r->zone, (size_t)o->via.str.size + 1);
	if (!s) {
		r->no_memory = true;
		return "";
	}
	if (o->via.str.size > 0)
		memcpy(s, o->via.str.ptr, o->via.str.size);
	s[o->via.str.size] = 0;
	return s;
}

/* Bytes in place; the message outlives the frame. */
static const char *as_bytes(struct reader *r, const msgpack_object *o, size_t max, uint32_t *ret_n)
{
	*ret_n = 0;
	if (!o || o->type != MSGPACK_OBJECT_STR || o->via.str.size > max) {
		r->bad = true;
		return "";
	}
	*ret_n = o->via.str.size;
	return o->via.str.ptr;
}

static void as_id(struct reader *r, const msgpack_object *o, uint8_t id[16])
{
	if (!o || o->type != MSGPACK_OBJECT_BIN || o->via.bin.size != 16)
		r->bad = true;
	else
		memcpy(id, o->via.bin.ptr, 16);
}

/* The elements of a list; its size was checked against its bytes. */
static const msgpack_object *as_list(struct reader *r, const char *key, uint32_t max, uint32_t *ret_n)
{
	const msgpack_object *o = find(r, key);

	*ret_n = 0;
	if (!o || o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > max) {
		r->bad = true;
		return NULL;
	}
	*ret_n = o->via.array.size;
	return o->via.array.ptr;
}

/* The fields of one record, at least n of them. */
static const msgpack_object *fields(struct reader *r, const msgpack_object *o, uint32_t n)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size < n) {
		r->bad = true;
		return NULL;
	}
	return o->via.array.ptr;
}

static void *room(struct reader *r, uint32_t n, size_t size)
{
	void *p = n > 0 ? msgpack_zone_malloc(r->zone, n * size) : NULL;

	if (n > 0 && !p)
		r->no_memory = true;
	return p;
}

static bool sound(const struct reader *r)
{
	return !r->bad && !r->no_memory;
}

static struct frame_proc *get_procs(struct reader *r, uint32_t *ret_n)
{
	const msgpack_object *list = as_list(r, "pr", FRAME_MAX_PROCS, ret_n);
	struct frame_proc *v = room(r, *ret_n, sizeof *v);

	for (uint32_t i = 0; sound(r) && i < *ret_n; i++) {
		const msgpack_object *f = fields(r, &list[i], N_PROC_FIELDS);

		if (!f)
			break;
		v[i] = (struct frame_proc){
			.proc = as_u32(r, f),
			.unique = as_u64(r, f + 1, UINT64_MAX),
			.started_ns = as_i64(r, f + 2),
			.pid = as_u32(r, f + 3),
			.rank = as_i32(r, f + 4),
			.local_rank = as_i32(r, f + 5),
			.world_size = as_i32(r, f + 6),
			.restart_count = as_i32(r, f + 7),
			.tick_source = as_u32(r, f + 8),
			.tick_error_ns = as_u32(r, f + 9),
			.level = as_u32(r, f + 10),
			.state = as_u32(r, f + 11),
			.state_at_ns = as_i64(r, f + 12),
			.exit_code = as_i32(r, f + 13),
			.signal = as_i32(r, f + 14),
			.n_dropped = as_u64(r, f + 15, INT64_MAX),
			.n_text_dropped = as_u64(r, f + 16, INT64_MAX),
			.n_names_dropped = as_u64(r, f + 17, INT64_MAX),
		};
		r->bad |= v[i].proc >= FRAME_MAX_PROCS || v[i].rank < -1 ||
			  v[i].rank > 1 << 20 || v[i].world_size < 0 ||
			  v[i].world_size > 1 << 20 || v[i].rank >= v[i].world_size + (v[i].rank < 0) ||
			  v[i].state < PROC_ALIVE || v[i].state > PROC_DIED;
	}
	return v;
}

static void get_hello(struct reader *r, struct frame_hello *h)
{
	as_id(r, find(r, "id"), h->agent_id);
	h->run_id = as_str(r, find(r, "run"), FRAME_MAX_ID);
	h->host = as_str(r, find(r, "host"), FRAME_MAX_ID);
	h->boot_id = as_str(r, find(r, "boot"), FRAME_MAX_ID);
	h->token = as_str(r, find(r, "tok"), 4 * FRAME_MAX_ID);
	h->version = as_str(r, find(r, "ver"), FRAME_MAX_ID);
	h->time_ns_inode = as_u64(r, find(r, "tns"), INT64_MAX);
	h->raw_ns = as_i64(r, find(r, "raw"));
	h->real_ns = as_i64(r, find(r, "real"));
	h->procs = get_procs(r, &h->n_procs);
}

static void get_probing(struct reader *r, struct frame_probing_state *v)
{
	const msgpack_object *o = find_newer(r, "pb"), *f = o ? fields(r, o, 4) : NULL;

	if (!f)
		return;
	v->state = as_u32(r, f);
	v->n_sent = as_u64(r, f + 1, INT64_MAX);
	v->n_answered = as_u64(r, f + 2, INT64_MAX);
	v->n_refused = as_u64(r, f + 3, INT64_MAX);
	if (o->via.array.size > 4)
		v->peer_port = (uint32_t)as_u64(r, f + 4, UINT16_MAX);
}

static void get_heartbeat(struct reader *r, struct frame_heartbeat *h)
{
	const msgpack_object *x, *list;
	struct frame_inflight *v;
	uint32_t n;

	h->stream = as_u64(r, find(r, "st"), UINT64_MAX);
	h->t0_ns = as_i64(r, find(r, "t0"));
	h->real_ns = as_i64(r, find(r, "real"));
	x = as_list(r, "x", 4, &n);
	if (n != 4) {
		r->bad = true;
		return;
	}
	h->last = (struct frame_exchange){ as_i64(r, x), as_i64(r, x + 1), as_i64(r, x + 2),
					   as_i64(r, x + 3) };
	h->n_spooled_bytes = as_u64(r, find(r, "sp"), INT64_MAX);
	h->n_spool_dropped = as_u64(r, find(r, "sd"), INT64_MAX);
	h->oldest_seq = as_u64(r, find(r, "old"), INT64_MAX);
	h->cpu_ns = as_u64(r, find(r, "cpu"), INT64_MAX);
	h->rss_bytes = as_u64(r, find(r, "rss"), INT64_MAX);
	get_probing(r, &h->probing);

	list = as_list(r, "fl", FRAME_MAX_PROCS, &h->n_inflight);
	h->inflight = v = room(r, h->n_inflight, sizeof *v);
	for (uint32_t i = 0; sound(r) && i < h->n_inflight; i++) {
		const msgpack_object *f = fields(r, &list[i], 9);

		if (!f)
			break;
		v[i] = (struct frame_inflight){
			.proc = as_u32(r, f),
			.rank = as_i32(r, f + 1),
			.step = as_u32(r, f + 2),
			.phase = as_u32(r, f + 3),
			.group = as_str(r, f + 4, SHM_MAX_STRING),
			.seq = as_u32(r, f + 5),
			.op = as_u32(r, f + 6),
			.since_ns = as_i64(r, f + 7),
			.last_event_ns = as_i64(r, f + 8),
		};
	}
}

static void get_names(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list = as_list(r, "nm", WIRE_MAX_ELEMENTS, &b->n_names);
	struct frame_name *v = room(r, b->n_names, sizeof *v);

	b->names = v;
	for (uint32_t i = 0; sound(r) && i < b->n_names; i++) {
		const msgpack_object *f = fields(r, &list[i], 3);

		if (!f)
			break;
		v[i].proc = as_u32(r, f);
		v[i].id = as_u32(r, f + 1);
		v[i].text = as_bytes(r, f + 2, SHM_MAX_STRING, &v[i].n_text);
	}
}

static void get_chunks(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list = as_list(r, "ch", WIRE_MAX_ELEMENTS, &b->n_chunks);
	struct frame_chunk *v = room(r, b->n_chunks, sizeof *v);

	b->chunks = v;
	for (uint32_t i = 0; sound(r) && i < b->n_chunks; i++) {
		const msgpack_object *f = fields(r, &list[i], 4);

		if (!f)
			break;
		v[i].proc = as_u32(r, f);
		v[i].ring = as_u32(r, f + 1);
		v[i].first = as_u64(r, f + 2, INT64_MAX);
		if (f[3].type != MSGPACK_OBJECT_BIN || v[i].ring >= SHM_MAX_RINGS) {
			r->bad = true;
			break;
		}
		v[i].data = (const unsigned char *)f[3].via.bin.ptr;
		v[i].n_bytes = f[3].via.bin.size;
	}
}

static void get_texts(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list = as_list(r, "tx", WIRE_MAX_ELEMENTS, &b->n_texts);
	struct frame_text *v = room(r, b->n_texts, sizeof *v);

	b->texts = v;
	for (uint32_t i = 0; sound(r) && i < b->n_texts; i++) {
		const msgpack_object *f = fields(r, &list[i], 5);

		if (!f)
			break;
		v[i].proc = as_u32(r, f);
		v[i].kind = as_u32(r, f + 1);
		v[i].level = as_u32(r, f + 2);
		v[i].at_ns = as_i64(r, f + 3);
		v[i].text = as_bytes(r, f + 4, SHM_MAX_TEXT, &v[i].n_text);
	}
}

static void get_gauges(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list = as_list(r, "ga", WIRE_MAX_ELEMENTS, &b->n_gauges);
	struct frame_gauge *v = room(r, b->n_gauges, sizeof *v);

	b->gauges = v;
	for (uint32_t i = 0; sound(r) && i < b->n_gauges; i++) {
		const msgpack_object *f = fields(r, &list[i], 4);

		if (!f)
			break;
		v[i].proc = as_u32(r, f);
		v[i].at_ns = as_i64(r, f + 1);
		v[i].name = as_str(r, f + 2, SHM_MAX_STRING);
		if (f[3].type != MSGPACK_OBJECT_FLOAT64 && f[3].type != MSGPACK_OBJECT_FLOAT32) {
			r->bad = true;
			break;
		}
		v[i].value = f[3].via.f64;
	}
}

static void get_snapshots(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list;
	struct frame_snapshot *v;

	if (!find_newer(r, "sn"))
		return;
	list = as_list(r, "sn", WIRE_MAX_ELEMENTS, &b->n_snapshots);
	b->snapshots = v = room(r, b->n_snapshots, sizeof *v);
	for (uint32_t i = 0; sound(r) && i < b->n_snapshots; i++) {
		const msgpack_object *f = fields(r, &list[i], 7);

		if (!f)
			break;
		v[i] = (struct frame_snapshot){
			.raw_ns = as_i64(r, f),
			.mono_ns = as_i64(r, f + 1),
			.real_ns = as_i64(r, f + 2),
			.boot_ns = as_i64(r, f + 3),
			.half_ns = as_u32(r, f + 4),
			.tick_source = as_u32(r, f + 5),
			.tick = as_u64(r, f + 6, UINT64_MAX),
		};
	}
}

static void get_peer_exchanges(struct reader *r, struct frame_batch *b)
{
	const msgpack_object *list;
	struct frame_peer_exchange *v;

	if (!find_newer(r, "px"))
		return;
	list = as_list(r, "px", WIRE_MAX_ELEMENTS, &b->n_peer_exchanges);
	b->peer_exchanges = v = room(r, b->n_peer_exchanges, sizeof *v);
	for (uint32_t i = 0; sound(r) && i < b->n_peer_exchanges; i++) {
		const msgpack_object *f = fields(r, &list[i], 5);

		if (!f)
			break;
		v[i] = (struct frame_peer_exchange){ as_u32(r, f), as_i64(r, f + 1), as_i64(r, f + 2),
						     as_i64(r, f + 3), as_i64(r, f + 4) };
	}
}

static void get_batch(struct reader *r, struct frame_batch *b)
{
	b->stream = as_u64(r, find(r, "st"), UINT64_MAX);
	b->seq = as_u64(r, find(r, "sq"), INT64_MAX);
	as_id(r, find(r, "id"), b->agent_id);
	b->n_given_up = as_u64(r, find(r, "gu"), INT64_MAX);
	b->procs = get_procs(r, &b->n_procs);
	get_names(r, b);
	get_chunks(r, b);
	get_texts(r, b);
	get_gauges(r, b);
	get_snapshots(r, b);
	get_peer_exchanges(r, b);
}

static void get_peers(struct reader *r, struct frame_beat *b)
{
	const msgpack_object *list;

	if (!find_newer(r, "pe"))
		return;
	list = as_list(r, "pe", FRAME_MAX_PEERS, &b->n_peers);
	for (uint32_t i = 0; sound(r) && i < b->n_peers; i++) {
		const msgpack_object *f = fields(r, &list[i], 3);
		struct frame_peer *v = &b->peers[i];

		if (!f)
			break;
		v->host = as_u32(r, f);
		v->port = (uint32_t)as_u64(r, f + 1, UINT16_MAX);
		if (f[2].type != MSGPACK_OBJECT_BIN ||
		    (f[2].via.bin.size != 4 && f[2].via.bin.size != 16)) {
			r->bad = true;
			break;
		}
		v->n_address = (uint8_t)f[2].via.bin.size;
		memcpy(v->address, f[2].via.bin.ptr, v->n_address);
	}
}

static void as_secret(struct reader *r, const msgpack_object *o, uint8_t out[FRAME_SECRET_BYTES])
{
	if (o->type != MSGPACK_OBJECT_BIN || o->via.bin.size != FRAME_SECRET_BYTES)
		r->bad = true;
	else
		memcpy(out, o->via.bin.ptr, FRAME_SECRET_BYTES);
}

/* A release without clock probes says none of it. */
static void get_probe_place(struct reader *r, struct frame_welcome *w)
{
	const msgpack_object *peers = find_newer(r, "ms");
	const msgpack_object *port = find_newer(r, "up"), *secret = find_newer(r, "us");

	if (!port || !secret)
		return;
	w->probe_port = (uint32_t)as_u64(r, port, UINT16_MAX);
	as_secret(r, secret, w->probe_secret);
	if (peers)
		as_secret(r, peers, w->peer_secret);
}

static bool get_body(struct reader *r, struct frame *f)
{
	switch (f->type) {
	case FRAME_HELLO:
		get_hello(r, &f->hello);
		return true;
	case FRAME_HEARTBEAT:
		get_heartbeat(r, &f->heartbeat);
		return true;
	case FRAME_BATCH:
		get_batch(r, &f->batch);
		return true;
	case FRAME_WELCOME:
		f->welcome = (struct frame_welcome){
			.stream = as_u64(r, find(r, "st"), UINT64_MAX),
			.level = as_u32(r, find(r, "lv")),
			.run_id = as_str(r, find(r, "run"), FRAME_MAX_ID),
			.version = as_str(r, find(r, "ver"), FRAME_MAX_ID),
			.notice = as_str(r, find(r, "no"), 1024),
		};
		get_probe_place(r, &f->welcome);
		return true;
	case FRAME_BEAT:
		f->beat = (struct frame_beat){
			.t1_ns = as_i64(r, find(r, "t1")),
			.t2_ns = as_i64(r, find(r, "t2")),
			.level = as_u32(r, find(r, "lv")),
			.credit = as_u32(r, find(r, "cr")),
			.notice = as_str(r, find(r, "no"), 1024),
		};
		get_peers(r, &f->beat);
		return true;
	case FRAME_ACK:
		f->ack = (struct frame_ack){
			.seq = as_u64(r, find(r, "sq"), INT64_MAX),
			.credit = as_u32(r, find(r, "cr")),
		};
		return true;
	case FRAME_REHELLO:
		f->rehello.stream = as_u64(r, find(r, "st"), UINT64_MAX);
		return true;
	case FRAME_REFUSE:
		f->refuse = (struct frame_refuse){
			.code = as_u32(r, find(r, "c")),
			.text = as_str(r, find(r, "s"), 1024),
		};
		return true;
	}
	return false;
}

static int open_map(struct frame *f, struct reader *r)
{
	uint64_t protocol, type;

	protocol = as_u64(r, find(r, "v"), UINT32_MAX);
	type = as_u64(r, find(r, "t"), UINT32_MAX);
	if (r->bad)
		return FRAME_BAD_FIELD;
	f->protocol = (uint32_t)protocol;
	if (protocol > FRAME_PROTOCOL)
		return FRAME_NEWER;
	f->type = (enum frame_type)type;
	if (!get_body(r, f))
		return FRAME_BAD_TYPE;
	if (f->type == FRAME_HELLO)
		f->hello.protocol = f->protocol;
	if (r->no_memory)
		return -ENOMEM;
	return r->bad ? FRAME_BAD_FIELD : FRAME_OK;
}

int frame_open(struct frame *ret, const void *data, size_t n_bytes)
{
	struct frame f = { 0 };
	struct reader r = { 0 };
	msgpack_unpacked u;
	size_t at = 0;
	int outcome;

	*ret = f;
	if (n_bytes > FRAME_MAX_BYTES || wire_check(data, n_bytes) != WIRE_OK)
		return FRAME_BAD_SHAPE;
	msgpack_unpacked_init(&u);
	if (msgpack_unpack_next(&u, data, n_bytes, &at) != MSGPACK_UNPACK_SUCCESS ||
	    u.data.type != MSGPACK_OBJECT_MAP) {
		msgpack_unpacked_destroy(&u);
		return FRAME_BAD_SHAPE;
	}
	r.map = u.data.via.map;
	r.zone = f.zone = msgpack_unpacked_release_zone(&u);
	if (!r.zone) /* an empty map needs none, and is no message either */
		return FRAME_BAD_FIELD;
	outcome = open_map(&f, &r);
	if (outcome != FRAME_OK) {
		ret->protocol = f.protocol;
		frame_close(&f);
		return outcome;
	}
	*ret = f;
	return FRAME_OK;
}

void frame_close(struct frame *f)
{
	if (f->zone)
		msgpack_zone_free(f->zone);
	f->zone = NULL;
}

const char *frame_outcome_text(int outcome)
{
	switch ((enum frame_outcome)outcome) {
	case FRAME_OK:
		return "fine";
	case FRAME_BAD_SHAPE:
		return "it is not one whole msgpack map";
	case FRAME_BAD_TYPE:
		return "its type is not known here";
	case FRAME_BAD_FIELD:
		return "a field is missing, of another type or too large";
	case FRAME_NEWER:
		return "it is of a newer protocol";
	}
	return outcome == -ENOMEM ? "there is no memory" : "unknown";
}

int frame_data_url(const char *control_url, char *out, size_t n_out)
{
	int n;

	if (strncmp(control_url, "ipc://", 6) == 0 && control_url[6]) {
		n = snprintf(out, n_out, "%s.data", control_url);
	} else if (strncmp(control_url, "tcp://", 6) == 0) {
		const char *colon = strrchr(control_url, ':');
		unsigned long port;
		char *end;

		if (colon <= control_url + 5 || !colon[1])
			return -EINVAL;
		port = strtoul(colon + 1, &end, 10);
		if (*end || port == 0 || port >= 65535)
			return -EINVAL;
		n = snprintf(out, n_out, "%.*s:%lu", (int)(colon - control_url), control_url,
			     port + 1);
	} else {
		return -EINVAL;
	}
	return n < 0 || (size_t)n >= n_out ? -EINVAL : 0;
}
