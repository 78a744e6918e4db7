/* write.c - rows of a job into prepared statements. Writer thread. */
#include "bind.h"

#include "../../proto/event.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *store_state_name(enum row_state v)
{
	switch (v) {
	case ROW_ALIVE:
		return "alive";
	case ROW_LEFT:
		return "left";
	case ROW_DIED:
		return "died";
	}
	return "";
}
const char *store_severity_name(enum fact_severity v)
{
	switch (v) {
	case SEVERITY_NOTICE:
		return "notice";
	case SEVERITY_SLOW:
		return "slow";
	case SEVERITY_WRONG:
		return "wrong";
	case SEVERITY_STUCK:
		return "stuck";
	}
	return "";
}
static const char *confidence_name(enum fact_confidence v)
{
	switch (v) {
	case CONFIDENCE_CERTAIN:
		return "certain";
	case CONFIDENCE_LIKELY:
		return "likely";
	case CONFIDENCE_TOO_CLOSE:
		return "too_close";
	case CONFIDENCE_INSUFFICIENT:
		return "insufficient";
	}
	return "";
}
static const char *error_kind_name(enum fact_error_kind v)
{
	switch (v) {
	case ERROR_KIND_NONE:
		return "none";
	case ERROR_KIND_SOFT:
		return "soft";
	case ERROR_KIND_HARD:
		return "hard";
	}
	return "";
}

static int write_run(struct store *s, const struct row_run *v)
{
	struct bind b = { s->put_run, 0 };

	bind_text(&b, v->run_id);
	bind_text(&b, v->run_id);
	bind_int_unless(&b, v->world_size, 0);
	bind_int(&b, v->started_ns);
	bind_ns(&b, v->ended_ns);
	bind_int(&b, v->fleet_minus_raw_ns);
	bind_text(&b, v->boot_id);
	bind_u64(&b, v->time_ns_inode);
	return run(s, &b);
}

static int write_host(struct store *s, const struct row_host *v)
{
	struct bind b = { s->put_host, 0 };

	bind_int(&b, v->host);
	bind_text(&b, v->name);
	bind_text(&b, v->boot_id);
	bind_u64(&b, v->time_ns_inode);
	bind_int(&b, v->same_clock);
	bind_int(&b, v->offset_ns);
	return run(s, &b);
}

static int write_agent(struct store *s, const struct row_agent *v)
{
	struct bind b = { s->put_agent, 0 };

	bind_int(&b, v->agent);
	bind_blob(&b, v->agent_id, sizeof v->agent_id);
	bind_int(&b, v->host);
	bind_text(&b, v->version);
	bind_int(&b, v->seen_ns);
	bind_u64(&b, v->n_given_up);
	bind_u64(&b, v->cpu_ns);
	bind_u64(&b, v->rss_bytes);
	return run(s, &b);
}

static int write_batch(struct store *s, const struct row_batch *v)
{
	struct bind b = { s->put_batch, 0 };

	bind_int(&b, v->agent);
	bind_u64(&b, v->seq);
	return run(s, &b);
}

static int write_process(struct store *s, const struct row_process *v)
{
	struct bind b = { s->put_process, 0 };

	bind_int(&b, v->process);
	bind_int(&b, v->host);
	bind_int(&b, v->agent);
	bind_u64(&b, v->unique);
	bind_int(&b, v->pid);
	bind_int_unless(&b, v->rank, -1);
	bind_int_unless(&b, v->local_rank, -1);
	bind_int_unless(&b, v->world_size, 0);
	bind_int(&b, v->restart_count);
	bind_int(&b, v->host_started_ns);
	bind_int(&b, v->tick_source);
	bind_int(&b, v->tick_error_ns);
	bind_text(&b, store_state_name(v->state));
	bind_int_unless(&b, v->state_at_ns, 0);
	bind_int_unless(&b, v->exit_code, -1);
	bind_int_unless(&b, v->signal, -1);
	bind_u64(&b, v->n_dropped);
	bind_u64(&b, v->n_text_dropped);
	bind_u64(&b, v->n_names_dropped);
	bind_u64(&b, v->n_gap);
	return run(s, &b);
}

static int write_name(struct store *s, const struct row_name *v)
{
	struct bind b = { s->put_name, 0 };

	bind_int(&b, v->process);
	bind_int(&b, v->id);
	bind_text(&b, v->text);
	return run(s, &b);
}

static int write_chunk(struct store *s, const struct row_chunk *v)
{
	struct bind b = { s->put_chunk, 0 };

	bind_u64(&b, v->chunk);
	bind_int(&b, v->process);
	bind_int(&b, v->ring);
	bind_u64(&b, v->first);
	bind_int(&b, v->n_events);
	bind_u64(&b, v->kinds);
	bind_int(&b, v->t_min_ns);
	bind_int(&b, v->t_max_ns);
	bind_blob(&b, v->data, v->n_bytes);
	return run(s, &b);
}

static int write_ring(struct store *s, const struct row_ring *v)
{
	struct bind b = { s->put_ring, 0 };
	int r = 0;

	if (v->merged) {
		struct bind d = { s->drop_rings, 0 };

		bind_int(&d, v->process);
		bind_int(&d, v->ring);
		bind_u64(&d, v->lo);
		bind_u64(&d, v->hi);
		r = run(s, &d);
	}
	bind_int(&b, v->process);
	bind_int(&b, v->ring);
	bind_u64(&b, v->lo);
	bind_u64(&b, v->hi);
	return r != 0 ? r : run(s, &b);
}

static int write_exchange(struct store *s, const struct row_exchange *v)
{
	struct bind b = { s->put_exchange, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->t0_ns);
	bind_int(&b, v->t1_ns);
	bind_int(&b, v->t2_ns);
	bind_int(&b, v->t3_ns);
	bind_int(&b, v->way);
	return run(s, &b);
}

static int write_snapshot(struct store *s, const struct row_snapshot *v)
{
	struct bind b = { s->put_snapshot, 0 };
	bool has_tick = v->tick_source != UINT32_MAX;

	bind_int(&b, v->host);
	bind_int(&b, v->host_ns);
	bind_int(&b, v->half_ns);
	bind_int(&b, v->mono_ns);
	bind_int(&b, v->real_ns);
	bind_int(&b, v->boot_ns);
	bind_int_unless(&b, v->tick_source, UINT32_MAX);
	bind_int_unless(&b, has_tick ? (int64_t)v->tick : INT64_MIN, INT64_MIN);
	return run(s, &b);
}

static int write_clock_step(struct store *s, const struct row_clock_step *v)
{
	struct bind b = { s->put_clock_step, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->from_ns);
	bind_int(&b, v->to_ns);
	bind_text(&b, v->kind);
	bind_int(&b, v->step_ns);
	bind_int(&b, v->err_ns);
	return run(s, &b);
}

static int write_peer_exchange(struct store *s, const struct row_peer_exchange *v)
{
	struct bind b = { s->put_peer_exchange, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->peer);
	bind_int(&b, v->t0_ns);
	bind_int(&b, v->t1_ns);
	bind_int(&b, v->t2_ns);
	bind_int(&b, v->t3_ns);
	bind_int(&b, v->at_ns);
	bind_ns(&b, v->surplus_ns);
	bind_ns(&b, v->err_ns);
	bind_int(&b, v->contradicts);
	return run(s, &b);
}

static int write_clock_path(struct store *s, const struct row_clock_path *v)
{
	struct bind b = { s->put_clock_path, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->at_ns);
	bind_text(&b, v->way == ROW_WAY_STREAM ? "stream" : "udp");
	bind_text(&b, v->way == ROW_WAY_UDP_KERNEL ? "kernel" : "program");
	bind_text(&b, v->why);
	bind_u64(&b, v->n_sent);
	bind_u64(&b, v->n_received);
	bind_u64(&b, v->n_answered);
	bind_u64(&b, v->n_exchanges);
	bind_u64(&b, v->n_refused);
	bind_int(&b, v->wish);
	return run(s, &b);
}

static int write_log(struct store *s, const struct row_log *v)
{
	struct bind b = { s->put_log, 0 };

	bind_int(&b, v->at_ns);
	bind_int(&b, v->err_ns);
	bind_int_unless(&b, v->process, -1);
	bind_int_unless(&b, v->rank, -1);
	bind_text(&b, v->kind);
	bind_int(&b, v->level);
	bind_text(&b, v->logger);
	bind_text(&b, v->text);
	return run(s, &b);
}

static int write_record(struct store *s, const struct row_record *v)
{
	struct bind b = { s->put_record, 0 };

	bind_int(&b, v->at_ns);
	bind_int(&b, v->process);
	bind_int_unless(&b, v->rank, -1);
	bind_text(&b, v->category);
	bind_text(&b, v->fields);
	return run(s, &b);
}

static int write_env(struct store *s, const struct row_env *v)
{
	struct bind b = { s->put_env, 0 };

	bind_int(&b, v->process);
	bind_int_unless(&b, v->rank, -1);
	bind_text(&b, v->key);
	bind_text(&b, v->value);
	return run(s, &b);
}

static int write_gauge(struct store *s, const struct row_gauge *v)
{
	struct bind b = { s->put_gauge, 0 };

	bind_int(&b, v->at_ns);
	bind_int(&b, v->host);
	bind_int_unless(&b, v->rank, -1);
	bind_text(&b, v->name);
	bind_real(&b, v->value);
	return run(s, &b);
}

static int write_step(struct store *s, const struct fact_step *v)
{
	struct bind b = { s->put_step, 0 };

	bind_int(&b, v->step);
	bind_int(&b, v->begin_ns);
	bind_int(&b, v->dur_ns);
	bind_int(&b, v->dur_err_ns);
	bind_int(&b, v->n_ranks);
	bind_int_unless(&b, v->slowest_rank, -1);
	bind_int(&b, v->complete);
	return run(s, &b);
}

static int write_rank_step(struct store *s, const struct fact_rank_step *v)
{
	struct bind b = { s->put_rank_step, 0 };

	bind_int(&b, v->step);
	bind_int(&b, v->rank);
	bind_int(&b, v->begin_ns);
	bind_int(&b, v->begin_err_ns);
	bind_int(&b, v->dur_ns);
	bind_ns(&b, v->self_ns);
	bind_ns(&b, v->exposed_comm_ns);
	bind_ns(&b, v->wait_ns);
	bind_ns(&b, v->wait_err_ns);
	bind_ns(&b, v->input_wait_ns);
	bind_ns(&b, v->fwd_ns);
	bind_ns(&b, v->bwd_ns);
	bind_ns(&b, v->opt_ns);
	bind_ns(&b, v->eval_ns);
	bind_real(&b, v->excess_ratio);
	bind_int(&b, v->n_peers);
	bind_real(&b, v->coverage);
	bind_int(&b, v->dur_err_ns);
	bind_ns(&b, v->compute_ns);
	bind_ns(&b, v->idle_ns);
	bind_ns(&b, v->host_ns);
	return run(s, &b);
}

static char *append_int(char *p, int64_t v)
{
	char digits[20];
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	int n = 0;

	if (v < 0)
		*p++ = '-';
	do {
		digits[n++] = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	while (n)
		*p++ = digits[--n];
	return p;
}

/* [[rank,enter,exit,err,wait_err],…], with the wait behind it where it is not the time until
 * the last arrival, null where it is not known: a call a collective, so it is written by hand. */
static const char *arrivals_json(struct store *s, const struct fact_collective *c,
				 const struct fact_arrival *v)
{
	size_t n_max = 3 + (size_t)c->n_seen * (6 * 21 + 6);
	char *p;

	if (s->n_text_alloc < n_max) {
		char *grown = realloc(s->text, n_max * 2);

		if (!grown)
			return NULL;
		s->text = grown;
		s->n_text_alloc = n_max * 2;
	}
	p = s->text;
	*p++ = '[';
	for (uint32_t i = 0; i < c->n_seen; i++) {
		if (i)
			*p++ = ',';
		*p++ = '[';
		p = append_int(p, v[i].rank);
		*p++ = ',';
		p = append_int(p, v[i].enter_ns - c->first_arrival_ns);
		*p++ = ',';
		if (v[i].exit_ns == FACT_NONE) {
			memcpy(p, "null", 4);
			p += 4;
		} else {
			p = append_int(p, v[i].exit_ns - c->first_arrival_ns);
		}
		*p++ = ',';
		p = append_int(p, v[i].err_ns);
		*p++ = ',';
		p = append_int(p, v[i].wait_err_ns);
		if (v[i].wait_ns == FACT_NONE) {
			memcpy(p, ",null", 5);
			p += 5;
		} else if (v[i].wait_ns != c->last_arrival_ns - v[i].enter_ns) {
			*p++ = ',';
			p = append_int(p, v[i].wait_ns);
		}
		*p++ = ']';
	}
	*p++ = ']';
	*p = '\0';
	return s->text;
}

static int write_collective(struct store *s, const struct fact_collective *v,
			    const struct facts *f)
{
	struct bind b = { s->put_collective, 0 };
	const char *json;

	assert(v->first_arrival_index + v->n_seen <= f->arrivals.n);
	json = arrivals_json(s, v, f->arrivals.v + v->first_arrival_index);
	if (!json)
		return -ENOMEM;
	bind_int(&b, v->group);
	bind_u64(&b, v->seq);
	bind_int(&b, v->op);
	bind_int(&b, v->dtype);
	bind_u64(&b, v->bytes);
	bind_int_unless(&b, v->step, EVENT_STEP_UNKNOWN);
	bind_int(&b, v->first_arrival_ns);
	bind_int(&b, v->last_arrival_ns);
	bind_ns(&b, v->end_ns);
	bind_int(&b, v->skew_ns);
	bind_int(&b, v->skew_err_ns);
	bind_int_unless(&b, v->last_rank, -1);
	bind_int(&b, v->decided);
	bind_int(&b, v->mismatch);
	bind_int_unless(&b, v->n_expected, 0);
	bind_int(&b, v->n_seen);
	bind_text(&b, json);
	bind_int(&b, v->gap);
	return run(s, &b);
}

static int write_group(struct store *s, const struct fact_group *v)
{
	struct bind b = { s->put_group, 0 };

	bind_int(&b, v->group);
	bind_text(&b, v->name);
	bind_text(&b, v->ranks_json);
	bind_int(&b, v->ranks_known);
	return run(s, &b);
}

static int write_bucket(struct store *s, const struct fact_bucket *v)
{
	struct bind b = { s->put_bucket, 0 };

	bind_int(&b, v->step);
	bind_int(&b, v->rank);
	bind_int(&b, v->ddp == FACT_NO_DDP ? -1 : (int64_t)v->ddp);
	bind_int(&b, v->micro);
	bind_int(&b, v->bucket);
	bind_u64(&b, v->bytes);
	bind_int_unless(&b, (int64_t)v->seq, -1);
	bind_ns(&b, v->ready_ns);
	bind_ns(&b, v->submitted_ns);
	bind_ns(&b, v->started_ns);
	bind_ns(&b, v->reduced_ns);
	bind_ns(&b, v->applied_ns);
	bind_int(&b, v->err_ns);
	bind_int_unless(&b, (int64_t)v->group - 1, -1);
	return run(s, &b);
}

static int write_verdict(struct store *s, const struct fact_verdict *v, int64_t *ret_id)
{
	struct bind b = { s->put_verdict, 0 };
	int r;

	bind_text(&b, v->key);
	bind_text(&b, v->class_name);
	bind_text(&b, store_severity_name(v->severity));
	bind_text(&b, confidence_name(v->confidence));
	bind_text(&b, error_kind_name(v->error_kind));
	bind_text(&b, v->culprit_json);
	bind_text(&b, v->sentence);
	bind_text(&b, v->evidence_json);
	bind_text(&b, v->rules_out_json);
	bind_text(&b, v->coverage_json);
	bind_int_unless(&b, v->first_step, EVENT_STEP_UNKNOWN);
	bind_int_unless(&b, v->last_step, EVENT_STEP_UNKNOWN);
	bind_ns(&b, v->onset_ns);
	bind_ns(&b, v->detected_ns);
	bind_real(&b, v->cost_ratio);
	bind_ns(&b, v->margin_ns);
	bind_ns(&b, v->error_ns);
	assert(b.at == sqlite3_bind_parameter_count(b.q));
	r = sqlite3_step(b.q);
	*ret_id = r == SQLITE_ROW ? sqlite3_column_int64(b.q, 0) : 0;
	/* A statement that returns rows has done its work only once it is done. */
	if (r == SQLITE_ROW)
		r = sqlite3_step(b.q);
	r = store_outcome_of(s->db, r);
	sqlite3_reset(b.q);
	return r;
}

static int write_contradiction(struct store *s, const struct fact_contradiction *v)
{
	struct bind b = { s->put_contradiction, 0 };

	bind_int(&b, v->group);
	bind_u64(&b, v->seq);
	bind_int(&b, v->early);
	bind_int(&b, v->late);
	bind_int(&b, v->at_ns);
	bind_int(&b, v->impossible_ns);
	bind_text(&b, v->against);
	bind_ns(&b, v->lifted_ns);
	return run(s, &b);
}

static int write_stage(struct store *s, const struct fact_stage *v)
{
	struct bind b = { s->put_stage, 0 };

	bind_int(&b, v->step);
	bind_int(&b, v->rank);
	bind_int(&b, v->stage);
	bind_int(&b, v->pipeline);
	bind_int(&b, v->n_stages);
	bind_int(&b, v->n_micro);
	bind_int(&b, v->work_ns);
	bind_int(&b, v->collective_ns);
	bind_int(&b, v->message_ns);
	bind_int(&b, v->rest_ns);
	bind_int(&b, v->wait_ns);
	bind_int(&b, v->step_ns);
	bind_real(&b, v->theory_ratio);
	return run(s, &b);
}

static int write_clock_pair(struct store *s, const struct fact_pair *v)
{
	struct bind b = { s->put_clock_pair, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->reference);
	bind_int(&b, v->at_ns);
	bind_int(&b, v->correction_ns);
	bind_int(&b, v->width_ns);
	bind_int(&b, v->probe_width_ns);
	bind_ns(&b, v->soft_ns);
	bind_text(&b, v->basis);
	return run(s, &b);
}

static int write_comm_class(struct store *s, const struct fact_comm_class *v)
{
	struct bind b = { s->put_comm_class, 0 };

	bind_int(&b, v->group);
	bind_int(&b, v->n_ranks);
	bind_int(&b, v->n_hosts);
	bind_int(&b, v->op);
	bind_int(&b, v->dtype);
	bind_int(&b, v->size);
	bind_int(&b, v->n_groups);
	bind_u64(&b, v->n);
	bind_real(&b, v->bytes);
	bind_real(&b, v->sum_ns);
	bind_int(&b, v->min_ns);
	bind_int(&b, v->p50_ns);
	bind_int(&b, v->p95_ns);
	bind_int(&b, v->p99_ns);
	bind_int(&b, v->max_ns);
	bind_int(&b, v->err_ns);
	bind_real(&b, v->wait_ns);
	bind_real(&b, v->inside_ns);
	bind_u64(&b, v->n_copies);
	bind_u64(&b, v->copy_bytes);
	bind_u64(&b, v->n_layouts);
	bind_real(&b, v->peak_gbs > 0 ? v->peak_gbs : (double)NAN);
	return run(s, &b);
}

static int write_what_if(struct store *s, const struct fact_what_if *v)
{
	struct bind b = { s->put_what_if, 0 };

	bind_text(&b, v->scope);
	bind_text(&b, v->name);
	bind_int_unless(&b, v->number, -1);
	bind_real(&b, v->slowdown);
	bind_real(&b, v->share);
	bind_int(&b, v->step_ns);
	bind_ns(&b, v->without_ns);
	bind_int_unless(&b, v->err_ns, FACT_UNBOUNDED);
	bind_int(&b, v->n_steps);
	bind_text(&b, v->method);
	return run(s, &b);
}

static int write_meta(struct store *s, const struct row_meta *v)
{
	struct bind b = { s->put_meta, 0 };

	bind_text(&b, v->key);
	bind_text(&b, v->value);
	return run(s, &b);
}

static int write_input(struct store *s, const struct row_input *v)
{
	struct bind b = { s->put_input, 0 };

	bind_text(&b, v->file);
	sqlite3_bind_text(b.q, ++b.at, v->format, -1, SQLITE_STATIC); /* NULL stays NULL */
	bind_text(&b, v->outcome);
	bind_int_unless(&b, v->rank, -1);
	bind_u64(&b, v->n_events);
	return run(s, &b);
}

static int write_clock(struct store *s, const struct fact_clock *v)
{
	struct bind b = { s->put_clock, 0 };

	bind_int(&b, v->host);
	bind_int(&b, v->at_ns);
	bind_int(&b, v->offset_ns);
	bind_int(&b, v->error_ns);
	bind_int(&b, v->rtt_ns);
	bind_text(&b, v->quality);
	bind_ns(&b, v->soft_ns);
	bind_real(&b, v->skew_ppb);
	bind_text(&b, v->status);
	return run(s, &b);
}

static int write_low_water(struct store *s, uint64_t low_water)
{
	struct bind b = { s->put_meta, 0 };
	int r;

	if (low_water == s->low_water)
		return 0;
	bind_text(&b, "low_water");
	bind_u64(&b, low_water);
	r = run(s, &b);
	if (r == 0)
		s->low_water = low_water;
	return r;
}

static int write_late(struct store *s, uint64_t n)
{
	struct bind b = { s->put_meta, 0 };
	int r;

	if (n == s->n_late)
		return 0;
	bind_text(&b, "late_events");
	bind_u64(&b, n);
	r = run(s, &b);
	if (r == 0)
		s->n_late = n;
	return r;
}

static int write_core_state(struct store *s, const unsigned char *v, size_t n)
{
	struct bind b = { s->put_meta, 0 };

	bind_text(&b, "core");
	bind_blob(&b, v, n);
	return run(s, &b);
}

int store_write_rows(struct store *s, struct store_job *j)
{
	const struct facts *f = &j->facts;
	int r = 0;

	if (j->run.set)
		r = write_run(s, &j->run);
#define EACH(array, write)                                                                     \
	for (size_t i = 0; i < (array).n && r == 0; i++)                                       \
		r = write(s, &(array).v[i]);
	EACH(j->hosts, write_host)
	EACH(j->agents, write_agent)
	EACH(j->processes, write_process)
	EACH(j->names, write_name)
	EACH(j->chunks, write_chunk)
	EACH(j->rings, write_ring)
	EACH(j->batches, write_batch)
	EACH(j->exchanges, write_exchange)
	EACH(j->snapshots, write_snapshot)
	EACH(j->clock_steps, write_clock_step)
	EACH(j->clock_paths, write_clock_path)
	EACH(j->peer_exchanges, write_peer_exchange)
	EACH(j->logs, write_log)
	EACH(j->records, write_record)
	EACH(j->envs, write_env)
	EACH(j->gauges, write_gauge)
	EACH(f->groups, write_group)
	EACH(f->clocks, write_clock)
	EACH(f->contradictions, write_contradiction)
	EACH(f->stages, write_stage)
	EACH(f->pairs, write_clock_pair)
	EACH(f->comm_classes, write_comm_class)
	EACH(f->what_ifs, write_what_if)
	EACH(j->inputs, write_input)
	if (r == 0)
		r = store_write_imported(s, j->imported.v, j->imported.n);
	EACH(j->metas, write_meta)
	EACH(f->steps, write_step)
	EACH(f->rank_steps, write_rank_step)
	EACH(f->buckets, write_bucket)
	for (size_t i = 0; i < f->paths.n && r == 0; i++)
		r = store_write_path(s, &f->paths.v[i], f);
	EACH(f->blames, store_write_blame)
#undef EACH
	j->verdict_ids.n = 0; /* a second try starts over */
	for (size_t i = 0; i < f->verdicts.n && r == 0; i++) {
		int64_t *id = JOB_PUSH(j, verdict_ids);

		r = id ? write_verdict(s, &f->verdicts.v[i], id) : -ENOMEM;
	}
	for (size_t i = 0; i < f->collectives.n && r == 0; i++)
		r = write_collective(s, &f->collectives.v[i], f);
	if (r == 0 && j->core_state.n)
		r = write_core_state(s, j->core_state.v, j->core_state.n);
	if (r == 0)
		r = write_low_water(s, j->low_water);
	if (r == 0)
		r = write_late(s, j->n_late);
	return r;
}

int store_write(struct store *s, struct store_job *j)
{
	int r = store_exec(s->db, "BEGIN IMMEDIATE");

	if (r != 0)
		return r;
	r = store_write_rows(s, j);
	if (r == 0)
		r = store_exec(s->db, "COMMIT");
	if (r != 0) {
		(void)store_exec(s->db, "ROLLBACK"); /* already failing; keep the first reason */
		s->low_water = s->n_late = 0; /* what the file holds now is not known: write it again */
	}
	return r;
}
