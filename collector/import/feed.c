#include "feed.h"
#include "feed_mask.h"

#include "../core.h"
#include "../store/store.h"
#include "../../proto/chunk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define TICK_NS (SECOND / 10)
#define MAX_TICKS 20000 /* of a whole trace: a long one has coarser ones */
#define MAX_ROWS 4096 /* written at once */
#define AFTER_NS (5 * SECOND) /* what waits for late words has waited long enough */

struct feed {
	struct trace *t;
	const struct feed_config *cfg;
	struct store *store;
	struct core *core;
	struct store_job *job;
	struct feed_mask *mask;
	struct ring {
		struct runs_reader *in;
		const struct event *next; /* NULL = all were given */
		uint64_t n_given;
	} (*rings)[TRACE_RINGS]; /* by rank */
	uint32_t *hosts;	   /* by rank */
	uint32_t n_hosts;
	uint64_t next_chunk;
	int64_t begin_ns, end_ns;
	char *why;
	size_t n_why;
	bool failed;
};

static bool fail(struct feed *f, int r)
{
	if (f->failed)
		return false;
	f->failed = true;
	if (r > 0)
		store_explain(f->why, f->n_why, r, f->cfg->db);
	else
		snprintf(f->why, f->n_why, "%s", r == -ENOMEM ? "there is not enough memory" : strerror(-r));
	return false;
}

static bool check(struct feed *f, int r)
{
	return r == 0 || fail(f, r);
}

static bool fail_trace(struct feed *f)
{
	if (!f->failed)
		trace_explain(f->t, f->why, f->n_why);
	f->failed = true;
	return false;
}

static bool write_job(struct feed *f)
{
	if (!check(f, store_write(f->store, f->job)))
		return false;
	job_clear(f->job);
	return true;
}

/* ---- who there is ---- */

/* From a rank's clock to the job's, as far as it was found. Files of hosts that were started at
 * different times are hours apart: what is given in the order of the job's time stays together. */
static int64_t to_fleet_ns(const struct feed *f, uint32_t i)
{
	const struct trace_rank *r = &f->t->ranks[i];

	return r->placed && r->clock != f->t->reference ? r->best_ns : 0;
}

/* A host a clock and name. The first clock is the collector's. */
static bool put_hosts(struct feed *f)
{
	for (uint32_t i = 0; i < f->t->n_ranks; i++) {
		struct trace_rank *r = &f->t->ranks[i];
		uint32_t k = 0;
		char boot_id[32];
		struct row_host *row;
		struct row_agent *agent;

		while (k < i && (f->t->ranks[k].clock != r->clock ||
				 strcmp(f->t->ranks[k].host, r->host) != 0))
			k++;
		f->hosts[i] = k < i ? f->hosts[k] : f->n_hosts;
		if (k < i)
			continue;
		snprintf(boot_id, sizeof boot_id, "import-%u", r->clock);
		row = JOB_PUSH(f->job, hosts);
		agent = JOB_PUSH(f->job, agents);
		if (!row || !agent)
			return fail(f, -ENOMEM);
		*row = (struct row_host){ .host = f->n_hosts, .name = feed_host(f->mask, f->job, r->host),
					  .boot_id = job_text(f->job, boot_id), .time_ns_inode = 1,
					  .same_clock = r->clock == f->t->reference };
		*agent = (struct row_agent){ .agent = f->n_hosts, .host = f->n_hosts,
					     .version = "import " SYNCLINE_VERSION, .seen_ns = f->begin_ns };
		memcpy(agent->agent_id, &f->n_hosts, sizeof f->n_hosts);
		if (!row->name || !row->boot_id)
			return fail(f, -ENOMEM);
		if (!check(f, core_host(f->core, f->n_hosts, row->same_clock, 0)) ||
		    !check(f, core_host_name(f->core, f->n_hosts, row->name)))
			return false;
		f->n_hosts++;
	}
	return true;
}

static bool put_process(struct feed *f, uint32_t i, bool left)
{
	struct row_process *row = JOB_PUSH(f->job, processes);
	const struct trace_rank *r = &f->t->ranks[i];
	int64_t begin_ns = f->begin_ns - to_fleet_ns(f, i), end_ns = f->end_ns - to_fleet_ns(f, i);

	if (!row)
		return fail(f, -ENOMEM);
	*row = (struct row_process){
		.process = i, .host = f->hosts[i], .agent = f->hosts[i], .unique = i + 1, .pid = i + 1,
		.rank = r->rank, .local_rank = -1, .world_size = f->t->world_size,
		.host_started_ns = begin_ns, .state = left ? ROW_LEFT : ROW_ALIVE,
		.state_at_ns = left ? end_ns : begin_ns, .exit_code = -1, .signal = -1,
	};
	if (left)
		return check(f, core_process_state(f->core, i, CORE_LEFT, (host_time){ end_ns }));
	return check(f, core_process(f->core, &(struct core_process){
							.process = i, .host = f->hosts[i], .rank = r->rank,
							.world_size = f->t->world_size }));
}

static bool put_names(struct feed *f, uint32_t i)
{
	const struct trace_rank *r = &f->t->ranks[i];

	for (uint32_t k = 0; k < r->n_names; k++) {
		struct row_name *row = JOB_PUSH(f->job, names);

		if (!row)
			return fail(f, -ENOMEM);
		*row = (struct row_name){ i, k + 1, feed_text(f->mask, f->job, r->names[k]) };
		if (!row->text)
			return fail(f, -ENOMEM);
		if (!check(f, core_name(f->core, i, k + 1, row->text, strlen(row->text))))
			return false;
	}
	return true;
}

static bool put_records(struct feed *f, uint32_t i)
{
	const struct trace_rank *r = &f->t->ranks[i];
	int64_t begin_ns = f->begin_ns - to_fleet_ns(f, i);

	for (uint32_t k = 0; k < r->n_records; k++) {
		const struct trace_record *v = &r->records[k];
		struct row_record *row = JOB_PUSH(f->job, records);
		int64_t at_ns = v->at_ns > begin_ns ? v->at_ns : begin_ns;

		if (!row)
			return fail(f, -ENOMEM);
		*row = (struct row_record){ at_ns + to_fleet_ns(f, i), i, r->rank, job_text(f->job, v->category),
					    feed_fields(f->mask, f->job, v->fields) };
		if (!row->category || !row->fields)
			return fail(f, -ENOMEM);
		if (!check(f, core_record(f->core, i, (host_time){ at_ns }, v->category, row->fields,
					  strlen(row->fields))))
			return false;
	}
	return true;
}

static bool put_run(struct feed *f, bool ended)
{
	struct row_run *run = &f->job->run;

	*run = (struct row_run){ .set = true, .world_size = f->t->world_size, .started_ns = f->begin_ns,
				 .ended_ns = ended ? f->end_ns : FACT_NONE, .boot_id = "import",
				 .time_ns_inode = 1 };
	snprintf(run->run_id, sizeof run->run_id, "%s", f->cfg->run_id);
	return true;
}

static bool put_meta(struct feed *f, const char *key, const char *value)
{
	struct row_meta *row = value && value[0] ? JOB_PUSH(f->job, metas) : NULL;

	if (!value || !value[0])
		return true;
	if (!row)
		return fail(f, -ENOMEM);
	*row = (struct row_meta){ key, job_text(f->job, value) };
	return row->value || fail(f, -ENOMEM);
}

static bool put_inputs(struct feed *f)
{
	for (uint32_t i = 0; i < f->cfg->n_inputs; i++) {
		const struct trace_input *in = &f->cfg->inputs[i];
		struct row_input *row = JOB_PUSH(f->job, inputs);

		if (!row)
			return fail(f, -ENOMEM);
		*row = (struct row_input){ feed_text(f->mask, f->job, in->path), in->format,
					   feed_text(f->mask, f->job, in->outcome), in->rank, in->n_events };
		if (!row->file || !row->outcome)
			return fail(f, -ENOMEM);
	}
	return true;
}

static bool put_row(struct feed *f, const struct trace_row *v)
{
	struct row_value *values = (struct row_value *)job_bytes(f->job, v->n_values * sizeof *values);
	struct row_imported *row = JOB_PUSH(f->job, imported);

	if (!values || !row)
		return fail(f, -ENOMEM);
	*row = (struct row_imported){ v->table, values, v->n_values };
	for (uint32_t i = 0; i < v->n_values; i++) {
		char type = trace_type(v, i);

		values[i] = (struct row_value){ .type = type };
		if (type == 'i')
			values[i].integer = v->values[i].integer;
		else if (type == 'r')
			values[i].real = v->values[i].real;
		else if (type == 't' && !(values[i].text = feed_cell(f->mask, f->job, v, i)))
			return fail(f, -ENOMEM);
	}
	return true;
}

static bool mask_text_of(struct feed *f, const char **text)
{
	const char *masked = *text ? feed_lasting(f->mask, *text) : NULL;

	if (*text && !masked)
		return fail(f, -ENOMEM);
	*text = masked;
	return true;
}

/* What goes to the rules as it is, and from them into sentences. */
static bool mask_findings(struct feed *f)
{
	struct dumped *d = &f->t->dumped;

	for (uint32_t i = 0; i < d->n_lines; i++)
		if (!mask_text_of(f, &d->lines[i].group) || !mask_text_of(f, &d->lines[i].what) ||
		    !mask_text_of(f, &d->lines[i].op))
			return false;
	for (uint32_t i = 0; i < f->t->n_what_ifs; i++) {
		const char **name = &f->t->what_ifs[i].name, *masked = *name ? feed_lasting(f->mask, *name) : NULL;

		if (masked == *name)
			continue;
		free((char *)*name); /* the trace's own */
		*name = masked ? strdup(masked) : NULL;
		if (!*name)
			return fail(f, -ENOMEM);
	}
	return true;
}

static bool put_start(struct feed *f)
{
	bool fine = put_run(f, false) && put_hosts(f) && put_meta(f, "clock_method", f->t->clock_method) &&
		    put_meta(f, "layout", f->t->layout) && put_inputs(f) && mask_findings(f);

	for (uint32_t i = 0; i < f->t->n_ranks && fine; i++)
		fine = put_process(f, i, false);
	for (uint32_t i = 0; i < f->t->n_groups && fine; i++) {
		const char *name = feed_text(f->mask, f->job, f->t->groups[i].name);

		fine = name ? check(f, core_group(f->core, name, f->t->groups[i].ranks, f->t->groups[i].n_ranks))
			    : fail(f, -ENOMEM);
	}
	for (uint32_t i = 0; i < f->t->n_ranks && fine; i++)
		fine = put_names(f, i) && put_records(f, i);
	for (uint32_t i = 0; i < f->t->n_rows && fine; i++)
		fine = put_row(f, &f->t->rows[i]) && (f->job->imported.n < MAX_ROWS || write_job(f));
	for (uint32_t i = 0; i < f->t->n_what_ifs && fine; i++) {
		struct fact_what_if *v = FACTS_PUSH(&f->job->facts, what_ifs);

		if (!v)
			return fail(f, -ENOMEM);
		*v = f->t->what_ifs[i];
		v->name = facts_string(&f->job->facts, v->name);
	}
	if (f->t->dumped.n_dumps > 0)
		core_dumped(f->core, &f->t->dumped);
	if (f->t->n_what_ifs > 0)
		core_replayed(f->core, f->t->what_ifs, f->t->n_what_ifs, f->t->first_step, f->t->last_step);
	return fine && write_job(f);
}

/* ---- clocks ---- */

/* Bounds of an offset are what a two-way exchange gives. Its middle is where calls end
 * together, so the nearer bound is given away. They widen away from where they were
 * found. */
static bool put_clock(struct feed *f, uint32_t i, int64_t now_ns, int64_t half_ns)
{
	const struct trace_rank *r = &f->t->ranks[i];
	int64_t there_ns = now_ns - r->best_ns - half_ns, slack_ns;

	slack_ns = (int64_t)((double)llabs(there_ns - r->at_ns) * f->t->rate_bound) + 1;
	return check(f, core_exchange(f->core, f->hosts[i], (host_time){ there_ns - slack_ns },
				      (fleet_time){ now_ns }, (fleet_time){ now_ns },
				      (host_time){ now_ns - r->best_ns + half_ns + slack_ns }));
}

static bool put_clocks(struct feed *f, int64_t now_ns)
{
	for (uint32_t i = 0; i < f->t->n_ranks; i++) {
		const struct trace_rank *r = &f->t->ranks[i];
		uint32_t first = 0;

		while (f->hosts[first] != f->hosts[i])
			first++;
		if (first == i && r->placed && r->clock != f->t->reference) {
			int64_t half_ns = r->hi_ns - r->best_ns > r->best_ns - r->lo_ns ? r->hi_ns - r->best_ns
											: r->best_ns - r->lo_ns;

			if (!put_clock(f, i, now_ns, half_ns))
				return false;
		}
	}
	return true;
}

/* ---- what happened ---- */

static bool open_rings(struct feed *f)
{
	for (uint32_t i = 0; i < f->t->n_ranks; i++)
		for (unsigned ring = 0; ring < TRACE_RINGS; ring++) {
			struct ring *g = &f->rings[i][ring];

			g->in = trace_read(f->t, &f->t->ranks[i], ring);
			if (!g->in)
				return fail_trace(f);
			g->next = runs_next(g->in);
		}
	return true;
}

/* False when one was not read to its end. */
static bool close_rings(struct feed *f)
{
	for (uint32_t i = 0; f->rings && i < f->t->n_ranks; i++)
		for (unsigned ring = 0; ring < TRACE_RINGS; ring++)
			if (f->rings[i][ring].in)
				(void)trace_read_end(f->t, f->rings[i][ring].in);
	return !f->t->no_memory;
}

static bool put_chunk(struct feed *f, uint32_t i, unsigned ring, const struct event *ev, size_t n)
{
	unsigned char *bytes = (unsigned char *)job_bytes(f->job, CHUNK_MAX_BYTES(n));
	struct row_chunk *row = JOB_PUSH(f->job, chunks);
	struct ring *g = &f->rings[i][ring];
	struct chunk_info info;
	size_t n_bytes;

	if (!bytes || !row)
		return fail(f, -ENOMEM);
	n_bytes = chunk_encode(ev, n, bytes);
	(void)chunk_peek(bytes, n_bytes, &info); /* our own */
	*row = (struct row_chunk){ .chunk = f->next_chunk++, .process = i, .ring = ring,
				   .first = g->n_given, .kinds = info.kinds, .n_events = info.n_events,
				   .t_min_ns = info.t_min_ns, .t_max_ns = info.t_max_ns, .data = bytes,
				   .n_bytes = n_bytes };
	g->n_given += n;
	return check(f, core_events(f->core, i, ring, row->chunk, ev, n)) &&
	       (f->job->chunks.n < STORE_GROUP_CHUNKS || write_job(f));
}

static bool put_ring(struct feed *f, uint32_t i, unsigned ring, int64_t until_ns)
{
	struct ring *g = &f->rings[i][ring];
	struct event batch[CHUNK_EVENTS];

	until_ns -= to_fleet_ns(f, i);
	while (g->next && (int64_t)g->next->tick < until_ns) {
		size_t n = 0;

		while (n < CHUNK_EVENTS && g->next && (int64_t)g->next->tick < until_ns) {
			batch[n++] = *g->next;
			g->next = runs_next(g->in);
		}
		if (!put_chunk(f, i, ring, batch, n))
			return false;
	}
	return !g->in->failed || fail_trace(f);
}

static bool put_until(struct feed *f, int64_t until_ns)
{
	for (uint32_t i = 0; i < f->t->n_ranks; i++)
		for (unsigned ring = 0; ring < TRACE_RINGS; ring++)
			if (!put_ring(f, i, ring, until_ns))
				return false;
	return true;
}

static bool put_events(struct feed *f)
{
	int64_t tick_ns = (f->end_ns - f->begin_ns) / MAX_TICKS;
	int64_t now_ns = f->begin_ns, asked_ns = now_ns;

	if (tick_ns < TICK_NS)
		tick_ns = TICK_NS;
	if (!open_rings(f) || !put_clocks(f, now_ns))
		return false;
	while (now_ns <= f->end_ns) {
		now_ns += tick_ns;
		if (now_ns - asked_ns >= SECOND && !put_clocks(f, asked_ns = now_ns))
			return false;
		if (!put_until(f, now_ns) || !check(f, core_tick(f->core, (fleet_time){ now_ns })))
			return false;
		if (f->job->chunks.n >= STORE_GROUP_CHUNKS && !write_job(f))
			return false;
		if (f->cfg->progress)
			f->cfg->progress(f->cfg->arg, (double)(now_ns - f->begin_ns) /
							      (double)(f->end_ns - f->begin_ns + 1));
	}
	return true;
}

static bool put_end(struct feed *f)
{
	int64_t now_ns = f->end_ns + AFTER_NS;
	bool fine = put_run(f, true);
	size_t n;

	for (uint32_t i = 0; i < f->t->n_ranks && fine; i++)
		fine = put_process(f, i, true);
	fine = fine && put_clocks(f, f->end_ns);
	for (int64_t at_ns = f->end_ns + TICK_NS; fine && at_ns < now_ns; at_ns += TICK_NS)
		fine = check(f, core_tick(f->core, (fleet_time){ at_ns }));
	fine = fine && check(f, core_finish(f->core, (fleet_time){ now_ns }));
	if (!fine)
		return false;
	f->job->low_water = f->next_chunk;
	n = core_save(f->core, NULL, 0);
	free(f->job->core_state.v);
	f->job->core_state.v = malloc(n);
	f->job->core_state.n_alloc = f->job->core_state.n = f->job->core_state.v ? n : 0;
	if (!f->job->core_state.v)
		return fail(f, -ENOMEM);
	(void)core_save(f->core, f->job->core_state.v, n);
	return write_job(f);
}

static void find_span(struct feed *f)
{
	f->begin_ns = INT64_MAX;
	f->end_ns = 0;
	for (uint32_t i = 0; i < f->t->n_ranks; i++) {
		const struct trace_rank *r = &f->t->ranks[i];

		if (r->first_ns > r->last_ns)
			continue; /* it has none */
		if (r->first_ns + to_fleet_ns(f, i) < f->begin_ns)
			f->begin_ns = r->first_ns + to_fleet_ns(f, i);
		if (r->last_ns + to_fleet_ns(f, i) > f->end_ns)
			f->end_ns = r->last_ns + to_fleet_ns(f, i);
	}
	if (f->begin_ns > f->end_ns)
		f->begin_ns = f->end_ns;
}

static void forget_catalogue(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char name[4096 + 8];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

/* Ours from here on, and nobody else's before. */
static bool claim(struct feed *f)
{
	int fd = open(f->cfg->db, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd >= 0) {
		close(fd);
		return true;
	}
	f->failed = true;
	if (errno == EEXIST)
		snprintf(f->why, f->n_why, "%s is there already. Remove it, or name another file with --db",
			 f->cfg->db);
	else
		snprintf(f->why, f->n_why, "cannot make %s: %s", f->cfg->db, strerror(errno));
	return false;
}

static int by_rank(const void *a, const void *b)
{
	const struct trace_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

int trace_feed(struct trace *t, const struct feed_config *cfg, char *why, size_t n_why)
{
	struct feed f = { .t = t, .cfg = cfg, .why = why, .n_why = n_why, .next_chunk = 1 };
	bool fine, mine;

	if (t->n_ranks > 1)
		qsort(t->ranks, t->n_ranks, sizeof *t->ranks, by_rank);
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (!trace_sort(t, &t->ranks[i]))
			return fail_trace(&f) ? 0 : -1;
	find_span(&f);
	fine = mine = claim(&f);
	f.rings = calloc((size_t)t->n_ranks + 1, sizeof *f.rings);
	f.hosts = calloc((size_t)t->n_ranks + 1, sizeof *f.hosts);
	f.job = job_new();
	f.mask = feed_mask_new(t, cfg->inputs, cfg->n_inputs, cfg->keep_names);
	if (fine && (!f.rings || !f.hosts || !f.job || !f.mask))
		fine = fail(&f, -ENOMEM);
	fine = fine && check(&f, store_open(&f.store, &(struct store_config){ .path = cfg->db, .is_draft = true,
										  .cache_bytes = cfg->cache_bytes })) &&
	       check(&f, core_new(&f.core, &(struct core_config){ .n_ranks = t->n_ranks, .no_heat = true },
				  &f.job->facts)) &&
	       put_start(&f) && put_events(&f) && put_end(&f);
	fine = close_rings(&f) && fine;
	core_free(f.core);
	store_close(f.store);
	job_free(f.job);
	feed_mask_free(f.mask);
	free(f.rings);
	free(f.hosts);
	if (!fine && mine)
		forget_catalogue(cfg->db);
	return fine ? 0 : -1;
}
