#include "train.h"

#include <assert.h>

#define START_NS INT64_C(1700000000000000000)

static void say(struct train *t, uint32_t ring, uint32_t rank, int64_t fleet_ns, unsigned kind,
		unsigned flags, uint32_t name, uint64_t a, uint64_t b)
{
	size_t *n = &t->n[ring][rank];

	assert(*n < t->cap);
	t->ev[ring][rank * t->cap + (*n)++] = (struct event){
		.tick = (uint64_t)(fleet_ns - t->offset_ns[train_host(t, rank)]),
		.kind = (uint16_t)kind,
		.flags = (uint16_t)flags,
		.name = name,
		.a = a,
		.b = b,
	};
}

static int64_t vary(const struct train_config *cfg, uint64_t *rng, double ns)
{
	return (int64_t)(ns * (1 + cfg->noise * (2 * train_unit(rng) - 1)));
}

void train_make(struct train *t, const struct train_config *cfg)
{
	uint64_t rng = cfg->seed;
	uint32_t w = cfg->world;
	int64_t *now, *ready, *sync, *end;
	unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

	*t = (struct train){ .cfg = *cfg };
	t->cap = (size_t)cfg->n_steps * (14 + 5 * cfg->n_buckets) + 8;
	for (uint32_t r = 0; r < TRAIN_RINGS; r++) {
		t->ev[r] = malloc(w * t->cap * sizeof *t->ev[r]);
		t->n[r] = calloc(w, sizeof *t->n[r]);
		assert(t->ev[r] && t->n[r]);
	}
	t->truth = calloc((size_t)w * cfg->n_steps, sizeof *t->truth);
	t->offset_ns = calloc(cfg->n_hosts, sizeof *t->offset_ns);
	now = calloc(w, sizeof *now);
	ready = calloc((size_t)w * (cfg->n_buckets + 1), sizeof *ready);
	sync = calloc(w, sizeof *sync);
	end = calloc(w, sizeof *end);
	assert(t->truth && t->offset_ns && now && ready && sync && end);
	for (uint32_t h = 0; h < cfg->n_hosts; h++)
		t->offset_ns[h] = START_NS - 1000000000 +
				  (h && cfg->max_offset_ns
					   ? (int64_t)(train_rand(&rng) %
						       (uint64_t)(2 * cfg->max_offset_ns)) -
						     cfg->max_offset_ns
					   : 0);
	for (uint32_t r = 0; r < w; r++) {
		now[r] = START_NS + (int64_t)(train_rand(&rng) % 1000000);
		say(t, 0, r, now[r], EVENT_STEP_BEGIN, 0, 0, event_a(0, 0), 0);
	}

	for (uint32_t s = 0; s < cfg->n_steps; s++) {
		int64_t done = 0, all_in = 0;

		for (uint32_t r = 0; r < w; r++) {
			struct train_truth *v = &t->truth[s * w + r];
			double slow = (int32_t)r == cfg->slow_rank && s >= cfg->slow_from
					      ? 1 + cfg->slow_by
					      : 1;
			int64_t at = now[r], bwd;

			v->begin_ns = at;
			v->data_ns = vary(cfg, &rng, 500000);
			v->fwd_ns = vary(cfg, &rng, 3000000 * slow);
			v->opt_ns = vary(cfg, &rng, 700000);
			bwd = vary(cfg, &rng, 6000000);
			say(t, 0, r, at, EVENT_PHASE_BEGIN, PHASE_DATA, 0, event_a(s, 0), 0);
			at += v->data_ns;
			say(t, 0, r, at, EVENT_PHASE_END, PHASE_DATA, 0, event_a(s, 0), 0);
			say(t, 0, r, at, EVENT_PHASE_BEGIN, PHASE_FORWARD, 0, event_a(s, 0), 0);
			at += v->fwd_ns;
			say(t, 0, r, at, EVENT_PHASE_END, PHASE_FORWARD, 0, event_a(s, 0), 0);
			say(t, 0, r, at, EVENT_PHASE_BEGIN, PHASE_BACKWARD, 0, event_a(s, 0), 0);
			for (uint32_t b = 0; b < cfg->n_buckets; b++) {
				int64_t in = at + bwd * (b + 1) / cfg->n_buckets;

				ready[r * cfg->n_buckets + b] = in;
				say(t, 0, r, in, EVENT_BUCKET_READY,
				    event_bucket_flags(0, 0), TRAIN_GROUP, event_a(s, b), 4096);
				say(t, 0, r, in, EVENT_BUCKET_SUBMIT, event_bucket_flags(0, 0),
				    TRAIN_GROUP, event_a(s, b), s * cfg->n_buckets + b);
				say(t, 0, r, in, EVENT_COLL_BEGIN, flags, TRAIN_GROUP,
				    event_a(s, s * cfg->n_buckets + b), 4096);
			}
			v->bwd_ns = bwd;
			now[r] = at + bwd;
		}
		for (uint32_t b = 0; b < cfg->n_buckets; b++) {
			int64_t last = 0;

			for (uint32_t r = 0; r < w; r++)
				if (ready[r * cfg->n_buckets + b] > last)
					last = ready[r * cfg->n_buckets + b];
			done = (last > done ? last : done) + 400000;
			for (uint32_t r = 0; r < w; r++) {
				say(t, 1, r, done, EVENT_COLL_END, flags, TRAIN_GROUP,
				    event_a(s, s * cfg->n_buckets + b), 4096);
				say(t, 1, r, done + 1000, EVENT_BUCKET_REDUCED,
				    event_bucket_flags(0, 0), TRAIN_GROUP, event_a(s, b),
				    s * cfg->n_buckets + b);
			}
			if (b + 1 == cfg->n_buckets)
				for (uint32_t r = 0; r < w; r++) {
					int64_t mine = ready[r * cfg->n_buckets + b];

					t->truth[s * w + r].exposed_ns = done + 2000 - mine;
					t->truth[s * w + r].wait_ns = last - mine;
				}
		}
		for (uint32_t r = 0; r < w; r++) {
			int64_t at = (cfg->n_buckets ? done + 2000 : now[r]);

			say(t, 0, r, at, EVENT_PHASE_END, PHASE_BACKWARD, 0, event_a(s, 0), 0);
			sync[r] = at + vary(cfg, &rng, 10000);
			if (!cfg->no_sync)
				say(t, 0, r, sync[r], EVENT_COLL_BEGIN, flags, TRAIN_LOSS_GROUP,
				    event_a(s, s), 4 | EVENT_COLL_SYNC_BIT);
			if (sync[r] > all_in)
				all_in = sync[r];
		}
		for (uint32_t r = 0; r < w; r++) {
			struct train_truth *v = &t->truth[s * w + r];
			int64_t at = sync[r];

			if (!cfg->no_sync) {
				at = all_in + 50000;
				say(t, 0, r, at, EVENT_COLL_END, flags, TRAIN_LOSS_GROUP,
				    event_a(s, s), 4 | EVENT_COLL_SYNC_BIT);
				v->exposed_ns += at - sync[r];
				v->wait_ns += all_in - sync[r];
			}
			say(t, 0, r, at, EVENT_PHASE_BEGIN, PHASE_OPTIMIZER, 0, event_a(s, 0), 0);
			at += v->opt_ns;
			say(t, 0, r, at, EVENT_PHASE_END, PHASE_OPTIMIZER, 0, event_a(s, 0), 0);
			at += 20000;
			say(t, 0, r, at, EVENT_STEP_END, 0, 0, event_a(s, 0), 0);
			if (s + 1 < cfg->n_steps)
				say(t, 0, r, at, EVENT_STEP_BEGIN, 0, 0, event_a(s + 1, 0), 0);
			v->dur_ns = at - v->begin_ns;
			now[r] = at;
		}
	}
	free(now);
	free(ready);
	free(sync);
	free(end);
}

void train_fini(struct train *t)
{
	for (uint32_t r = 0; r < TRAIN_RINGS; r++) {
		free(t->ev[r]);
		free(t->n[r]);
	}
	free(t->truth);
	free(t->offset_ns);
}

void train_introduce(const struct train *t, struct core *c, int64_t tick_error_ns)
{
	static const char *names[] = { "default", "loss" };

	for (uint32_t h = 0; h < t->cfg.n_hosts; h++)
		core_host(c, h, h == 0, h == 0 ? t->offset_ns[0] : 0);
	for (uint32_t r = 0; r < t->cfg.world; r++) {
		core_process(c, &(struct core_process){ .process = 100 + r,
							.host = train_host(t, r),
							.rank = (int32_t)r,
							.world_size = (int32_t)t->cfg.world,
							.tick_error_ns = tick_error_ns });
		for (uint32_t i = 0; i < 2; i++)
			core_name(c, 100 + r, i + 1, names[i], strlen(names[i]));
	}
}

uint64_t train_feed(const struct train *t, struct core *c, uint64_t seed, size_t n_chunk,
		    uint64_t from, uint64_t to)
{
	uint32_t n_streams = t->cfg.world * TRAIN_RINGS, n_live = n_streams;
	size_t *at = calloc(n_streams, sizeof *at);
	int64_t tick_ns = START_NS;
	uint64_t rng = seed, chunk = 1;

	assert(at);
	while (n_live > 0) {
		uint32_t pick = (uint32_t)(train_rand(&rng) % n_streams), best = n_streams;
		const struct event *ev;
		size_t n, have;
		int64_t fleet_ns;

		/* The stream that is furthest behind, or a random one near it. */
		for (uint32_t i = 0; i < n_streams; i++) {
			uint32_t k = (pick + i) % n_streams, ring = k % TRAIN_RINGS;

			if (at[k] == t->n[ring][k / TRAIN_RINGS])
				continue;
			if (best == n_streams || at[k] + 2 * n_chunk < at[best])
				best = k;
		}
		ev = train_events(t, best % TRAIN_RINGS, best / TRAIN_RINGS) + at[best];
		have = t->n[best % TRAIN_RINGS][best / TRAIN_RINGS] - at[best];
		n = 1 + train_rand(&rng) % n_chunk;
		if (n > have)
			n = have;
		fleet_ns = (int64_t)ev[n - 1].tick +
			   t->offset_ns[train_host(t, best / TRAIN_RINGS)];
		while (fleet_ns > tick_ns + 250000000) {
			tick_ns += 250000000;
			if (chunk >= from && chunk < to)
				core_tick(c, (fleet_time){ tick_ns });
		}
		if (chunk >= from && chunk < to) {
			int r = core_events(c, 100 + best / TRAIN_RINGS, best % TRAIN_RINGS, chunk,
					    ev, n);

			assert(r == 0);
			(void)r;
		}
		chunk++;
		at[best] += n;
		if (at[best] == t->n[best % TRAIN_RINGS][best / TRAIN_RINGS])
			n_live--;
	}
	free(at);
	return chunk;
}
