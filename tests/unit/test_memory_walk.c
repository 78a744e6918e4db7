/* A history undone from its end, against an allocator that wrote it: what was in use at each refusal, with the begin of
 * the history there or lost. */
#include "../../collector/import/memory_snapshot.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
#define MAX_SEGMENTS 40
#define MAX_BLOCKS 4000
#define MAX_EVENTS 3000

struct part {
	int64_t address, size, asked;
	enum memory_state state;
};

struct heap { /* blocks in the order of their addresses; segments are where they are */
	struct part blocks[MAX_BLOCKS];
	struct { int64_t address, size; } segments[MAX_SEGMENTS];
	uint32_t n_blocks, n_segments;
	struct memory_event events[MAX_EVENTS + 8];
	struct { uint32_t event; int64_t allocated, reserved, largest; } truths[MAX_EVENTS];
	uint32_t n_events, n_truths;
	uint64_t seed;
};

static void log_event(struct heap *h, enum memory_action action, int64_t address, int64_t size)
{
	h->events[h->n_events] = (struct memory_event){ .at_ns = h->n_events + 1, .address = address, .size = size,
							.device_free = MEMORY_UNKNOWN, .action = action, .seq = h->n_events };
	h->n_events++;
}

static uint32_t segment_of(const struct heap *h, int64_t address)
{
	uint32_t i = 0;

	while (address < h->segments[i].address || address >= h->segments[i].address + h->segments[i].size)
		i++;
	return i;
}

static void insert(struct heap *h, uint32_t at, struct part p)
{
	memmove(&h->blocks[at + 1], &h->blocks[at], (h->n_blocks - at) * sizeof p);
	h->blocks[at] = p;
	h->n_blocks++;
}

static void delete(struct heap *h, uint32_t at)
{
	h->n_blocks--;
	memmove(&h->blocks[at], &h->blocks[at + 1], (h->n_blocks - at) * sizeof *h->blocks);
}

/* At a place of 64 that is free: places are used again. */
static bool add_segment(struct heap *h, int64_t size)
{
	int64_t address = (INT64_C(1) << 40) + (int64_t)(unit_rand(&h->seed) % 64) * 64 * MIB;
	uint32_t at = 0;

	for (uint32_t i = 0; i < h->n_segments; i++)
		if (h->segments[i].address == address)
			return false;
	if (h->n_segments == MAX_SEGMENTS)
		return false;
	h->segments[h->n_segments].address = address;
	h->segments[h->n_segments++].size = size;
	while (at < h->n_blocks && h->blocks[at].address < address)
		at++;
	insert(h, at, (struct part){ address, size, 0, MEMORY_FREE });
	log_event(h, MEMORY_SEGMENT_ALLOC, address, size);
	return true;
}

static bool is_small(const struct heap *h, const struct part *b)
{
	return h->segments[segment_of(h, b->address)].size == 2 * MIB;
}

static void allocate(struct heap *h, int64_t asked)
{
	int64_t size = (asked + 511) / 512 * 512;
	bool small = size <= MIB;
	uint32_t i = 0;

	while (i < h->n_blocks && (h->blocks[i].state != MEMORY_FREE || h->blocks[i].size < size || is_small(h, &h->blocks[i]) != small))
		i++;
	if (i == h->n_blocks) {
		if (add_segment(h, small ? 2 * MIB : size < 10 * MIB ? 20 * MIB : (size / (2 * MIB) + 2) * 2 * MIB))
			allocate(h, asked);
		return;
	}
	if (h->blocks[i].size - size >= (small ? 512 : MIB + 1)) {
		insert(h, i + 1, (struct part){ h->blocks[i].address + size, h->blocks[i].size - size, 0, MEMORY_FREE });
		h->blocks[i].size = size;
	}
	h->blocks[i].state = MEMORY_LIVE;
	h->blocks[i].asked = asked;
	log_event(h, MEMORY_ALLOC, h->blocks[i].address, asked);
}

static void complete(struct heap *h, uint32_t i)
{
	log_event(h, MEMORY_FREE_COMPLETED, h->blocks[i].address, h->blocks[i].asked);
	h->blocks[i].state = MEMORY_FREE;
	for (uint32_t k = i + 1; k-- > (i > 0 ? i - 1 : 0);)
		while (k + 1 < h->n_blocks && h->blocks[k].state == MEMORY_FREE && h->blocks[k + 1].state == MEMORY_FREE &&
		       segment_of(h, h->blocks[k].address) == segment_of(h, h->blocks[k + 1].address)) {
			h->blocks[k].size += h->blocks[k + 1].size;
			delete(h, k + 1);
		}
}

static void release(struct heap *h)
{
	for (uint32_t i = 0; i < h->n_blocks; i++) {
		uint32_t s = segment_of(h, h->blocks[i].address);

		if (h->blocks[i].state != MEMORY_FREE || h->blocks[i].size != h->segments[s].size)
			continue;
		log_event(h, MEMORY_SEGMENT_FREE, h->segments[s].address, h->segments[s].size);
		delete(h, i);
		h->segments[s] = h->segments[--h->n_segments];
		return;
	}
}

static void refuse(struct heap *h)
{
	int64_t allocated = 0, reserved = 0, largest = 0;

	for (uint32_t i = 0; i < h->n_blocks; i++) {
		reserved += h->blocks[i].size;
		allocated += h->blocks[i].state == MEMORY_LIVE ? h->blocks[i].size : 0;
		if (h->blocks[i].state == MEMORY_FREE && h->blocks[i].size > largest)
			largest = h->blocks[i].size;
	}
	h->truths[h->n_truths].event = h->n_events;
	h->truths[h->n_truths].allocated = allocated;
	h->truths[h->n_truths].reserved = reserved;
	h->truths[h->n_truths++].largest = largest;
	log_event(h, MEMORY_OOM, 0, 999 * MIB);
}

static void live(struct heap *h)
{
	while (h->n_events < MAX_EVENTS) {
		unsigned what = (unsigned)(unit_rand(&h->seed) % 100);
		uint32_t i = h->n_blocks ? (uint32_t)(unit_rand(&h->seed) % h->n_blocks) : 0;

		if (what < 45) {
			allocate(h, 1 + (int64_t)(unit_rand(&h->seed) % (unit_rand(&h->seed) % 2 ? 2 * MIB : 24 * MIB)));
		} else if (what < 90 && h->n_blocks > 0) {
			if (h->blocks[i].state == MEMORY_LIVE) {
				log_event(h, MEMORY_FREE_REQUESTED, h->blocks[i].address, h->blocks[i].asked);
				h->blocks[i].state = MEMORY_AWAITING;
			}
			if (h->blocks[i].state == MEMORY_AWAITING && unit_rand(&h->seed) % 4)
				complete(h, i);
		} else if (what < 95) {
			release(h);
		} else {
			refuse(h);
		}
	}
}

/* Of the end of h and all but the first n events. */
static void make_device(const struct heap *h, uint32_t n, struct memory_device *d)
{
	*d = (struct memory_device){ .n_events = h->n_events - n, .n_sites = 1 };
	d->events = calloc(d->n_events + 1, sizeof *d->events);
	d->blocks = calloc(h->n_blocks + 1, sizeof *d->blocks);
	d->segments = calloc(h->n_segments + 1, sizeof *d->segments);
	d->sites = calloc(1, sizeof *d->sites);
	assert_true(d->events && d->blocks && d->segments && d->sites);
	memcpy(d->events, h->events + n, d->n_events * sizeof *d->events);
	for (uint32_t i = 0; i < h->n_blocks; i++) {
		const struct part *b = &h->blocks[i];

		d->blocks[d->n_blocks++] = (struct memory_block){ b->address, b->size, 0, b->state };
		d->allocated += b->state == MEMORY_LIVE ? b->size : 0;
		d->reserved += b->size;
	}
	for (uint32_t i = 0; i < h->n_segments; i++)
		d->segments[d->n_segments++] = (struct memory_segment){ .address = h->segments[i].address, .size = h->segments[i].size };
}

static void free_device(struct memory_device *d)
{
	free(d->events);
	free(d->blocks);
	free(d->segments);
	free(d->sites);
	free(d->ooms);
}

static uint32_t check(const struct heap *h, const struct memory_device *d)
{
	uint32_t n_exact = 0;

	for (uint32_t i = 0; i < d->n_ooms; i++) {
		uint32_t k = h->n_truths - d->n_ooms + i;
		const struct memory_oom *o = &d->ooms[i];

		assert_int_equal(d->events[o->event].seq, h->truths[k].event);
		assert_int_equal(o->reserved, h->truths[k].reserved);
		assert_in_range(h->truths[k].allocated, o->allocated, o->allocated + o->allocated_err);
		assert_in_range(o->allocated + o->allocated_err, 0, o->reserved);
		assert_in_range(o->largest_free, h->truths[k].largest, o->reserved);
		n_exact += o->allocated_err == 0;
	}
	return n_exact;
}

static void test_what_was_in_use_at_each_refusal(void **state)
{
	static struct heap h;
	struct memory_device d;
	uint32_t n_exact = 0, n = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		memset(&h, 0, sizeof h);
		h.seed = seed;
		live(&h);
		for (uint32_t cut = 0; cut < h.n_events; cut += 1 + h.n_events / 3) {
			make_device(&h, cut, &d);
			d.whole_rounding = seed % 4 == 0;
			assert_true(memory_walk(&d));
			n_exact += check(&h, &d);
			n += d.n_ooms;
			free_device(&d);
		}
	}
	assert_true(n > 1000 && n_exact > 40);
}

/* Events that cannot have led to the end: what was in use is unknown, never wrong by silence. */
static void test_a_history_that_does_not_fit(void **state)
{
	static struct heap h;
	struct memory_device d;

	(void)state;
	memset(&h, 0, sizeof h);
	h.seed = 7;
	allocate(&h, 5 * MIB);
	refuse(&h);
	log_event(&h, MEMORY_ALLOC, 12345, 512); /* is not there at the end */
	log_event(&h, MEMORY_SEGMENT_ALLOC, 99, 2 * MIB);
	make_device(&h, 0, &d);
	assert_true(memory_walk(&d));
	assert_int_equal(d.n_ooms, 1);
	assert_true(d.ooms[0].allocated == MEMORY_UNKNOWN && d.ooms[0].reserved == MEMORY_UNKNOWN);
	assert_true(d.ooms[0].largest_free == MEMORY_UNKNOWN);
	free_device(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_in_use_at_each_refusal),
		cmocka_unit_test(test_a_history_that_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
