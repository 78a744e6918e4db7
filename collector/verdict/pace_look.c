/* pace_look.c - slow.fixed_rank, slow.fixed_host, slow.global, slow.throttled,
 * slow.work_imbalance, data.uneven_batch and data.late_input, where devices tell.
 *
 * What it says: who takes longer for its own part of a step, since when, how much it
 * costs, and the nearest reason that was measured.
 *
 * How it decides: pace_find says that somebody's own time changed or differs; here
 * the reason is looked for in the order of what is most concrete: a device that says
 * that it is throttled, a loader that says that it takes longer, amounts of work that
 * the times follow; then whether it is a whole host. What has no reason is a rank, a
 * host or everyone that computes slower. One key is kept for all of them: a reason
 * that is heard of later replaces the class and is no second verdict. Work that is
 * unequal and costs less than an eighth of the step is honest and is told by nobody.
 *
 * Neighbours: slow.stage_imbalance (in a pipeline ranks differ by their stage: only
 * changes count there), slow.link (time in transfers is no own time),
 * slow.rotating_* (no rank stays slow), absent.* and deadlock.* (a job that is held
 * up is told as that).
 */
#include "pace_why.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVERY 8		 /* steps between two looks */
#define EVERY_TOLD 64	 /* and between two tellings */
#define LIVE_NS 1000000000 /* while the job runs a change must last */
#define N_LIVE 16
#define N_LONG_LIVE 128 /* where little is known of the time before, or of others */
#define N_ALWAYS_LIVE 192
#define N_AT_END 12
#define FOLLOWS_R2 0.7
#define LOST 0.125
#define INPUT_SHARE 0.15

struct cause {
	struct finding f;
	char detail[200], sentence[700], evidence[300], who[160], since[100];
};

static bool is_throttled(const void *arg, uint32_t proc)
{
	char why[120];

	return proc != UINT32_MAX && pace_throttled(arg, proc, INT64_MIN, why, sizeof why);
}

/* Since when on that rank's own clock; of rounds of calls nobody knows for the host. */
static int64_t since_ns(const struct rules *r, const struct pace_change *c, uint32_t rank)
{
	const struct pace *p = &r->pace;
	const struct pace_cell *x = pace_cell(p, c->onset, rank);

	return r->by_calls || c->kind == PACE_ALWAYS || c->kind == PACE_EVERY || x->self < 0 ? INT64_MIN : x->loop_ns;
}

static const char *host_of(const struct rules *r, uint32_t rank)
{
	const struct roster *roster = r->ledger.roster;
	uint32_t proc = pace_proc(&r->pace, rank);

	return proc == UINT32_MAX ? NULL : roster->hosts[roster->procs[proc].host].name;
}

/* The name of the host that has these ranks and no others, of two or more; NULL. */
static const char *whole_host(const struct rules *r, const struct pace_change *c)
{
	const char *host = host_of(r, (uint32_t)c->ranks[0]);

	if (c->n_ranks < 2 || c->n_ranks == r->pace.n_ranks || !host || !*host)
		return NULL;
	for (uint32_t rank = 0; rank < r->pace.n_ranks; rank++) {
		const char *other = host_of(r, rank);

		if (other && (strcmp(other, host) == 0) != pace_holds(c, rank))
			return NULL;
	}
	return host;
}

static void name_ranks(struct cause *v, const int32_t *ranks, uint32_t n, uint32_t n_all)
{
	for (uint32_t i = 0; i < n && n < n_all; i++)
		finding_rank(&v->f, ranks[i]);
	if (v->f.n_ranks == 0)
		snprintf(v->who, sizeof v->who, "Every rank");
	else
		words_ranks(v->f.ranks, v->f.n_ranks, v->who, sizeof v->who);
}

/* Which part of the time grew, for a person. */
static const char *part_of(const struct pace_change *c)
{
	if (c->paused)
		return "host side: it gives its device no work for that long";
	if (c->compute_ns >= 0.6 * c->added_ns)
		return "GPU side: its kernels run longer";
	if (c->input_ns >= 0.6 * c->added_ns)
		return "host side: its device waits for data";
	if (c->compute_ns <= 0.4 * c->added_ns)
		return "host side: its device idles until the host has launched";
	return "host and GPU side";
}

/* ---- the reasons, each true when it is that ---- */

static bool throttled(struct rules *r, const struct pace_change *c, struct cause *v)
{
	uint32_t n = c->kind == PACE_ALL ? r->pace.n_ranks : c->n_ranks;
	char why[120];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = c->kind == PACE_ALL ? i : (uint32_t)c->ranks[i];
		uint32_t proc = pace_proc(&r->pace, rank);

		if (proc == UINT32_MAX ||
		    !pace_throttled(r, proc, since_ns(r, c, rank), why, sizeof why))
			return false;
		if (i == 0)
			snprintf(v->detail, sizeof v->detail, "%s", why);
	}
	name_ranks(v, c->ranks, c->n_ranks, r->pace.n_ranks);
	v->f.class_name = "slow.throttled";
	snprintf(v->sentence, sizeof v->sentence,
		 "The device of %s computes %.0f %% longer from %s on, because %s. Look at cooling, "
		 "power limits and application clocks of that device.", v->who, c->ratio * 100, v->since,
		 v->detail);
	snprintf(v->evidence, sizeof v->evidence,
		 "[{\"view\":\"record\",\"category\":\"dev.clock\"},{\"view\":\"rank_step\",\"step\":%u}]",
		 v->f.step);
	return true;
}

static bool late_input(struct rules *r, const struct pace_change *c, struct cause *v)
{
	double load_ns = fmin(pace_load_more_ns(r, c), c->added_ns - c->compute_ns);

	if (c->added_ns <= 0 || (c->input_ns < c->added_ns / 2 && load_ns < c->added_ns / 2))
		return false;
	name_ranks(v, c->ranks, c->n_ranks, r->pace.n_ranks);
	v->f.class_name = "data.late_input";
	v->f.confidence = CONFIDENCE_LIKELY;
	snprintf(v->detail, sizeof v->detail, "host side: its device waits for data");
	snprintf(v->sentence, sizeof v->sentence,
		 "%s: the device waits for input, %.1f ms a step more from %s on. Look at the storage "
		 "and the number of loader workers there.", v->who, c->added_ns / 1e6, v->since);
	snprintf(v->evidence, sizeof v->evidence,
		 "[{\"view\":\"record\",\"category\":\"loader.batch\"},{\"view\":\"rank_step\",\"step\":%u}]",
		 v->f.step);
	return true;
}

/* 1, or 0 when it is not that, -1 when it is and costs too little to be told. */
static int uneven_work(struct rules *r, const struct pace_work *w, const struct pace_change *c,
		       struct cause *v)
{
	bool samples = w->what == MEASURE_SAMPLES;

	if (!w->known || w->r2 < FOLLOWS_R2)
		return 0;
	for (uint32_t i = 0; c && i < c->n_ranks && w->n_ranks > 0; i++) {
		bool loaded = false;

		for (uint32_t k = 0; k < w->n_ranks; k++)
			loaded |= w->ranks[k] == c->ranks[i];
		if (!loaded)
			return 0;
	}
	if (w->lost < LOST)
		return -1;
	name_ranks(v, w->ranks, w->n_ranks, r->pace.n_ranks);
	v->f.class_name = samples ? "data.uneven_batch" : "slow.work_imbalance";
	if (!r->by_calls)
		v->f.step = r->pace.step_of[pace_slot(&r->pace, w->first)];
	v->f.cost_ratio = w->lost / (1 - fmin(w->lost, 0.9));
	v->f.margin_ns = (int64_t)(w->lost * v->f.cost_ratio);
	snprintf(v->detail, sizeof v->detail, "%s a step: the most loaded rank has %.0f %% more than the mean",
		 samples ? "samples" : "tokens", w->uneven * 100);
	snprintf(v->sentence, sizeof v->sentence,
		 "%s: ranks get unequal work (%s), and their own times follow it (r2 %.2f); "
		 "%.0f %% of each step is spent waiting for the most loaded. %s", v->who, v->detail,
		 w->r2, w->lost * 100,
		 samples ? "Make the sampler give every rank the same batch."
			 : "Pack or sort sequences so that every rank gets as many tokens.");
	snprintf(v->evidence, sizeof v->evidence,
		 "[{\"view\":\"gauge\",\"name\":\"%s\"},{\"view\":\"rank_step\",\"step\":%u}]",
		 samples ? "batch" : "tokens", v->f.step);
	return 1;
}

static bool slower(struct rules *r, const struct pace_change *c, struct cause *v)
{
	const char *host = whole_host(r, c);

	if (2 * c->n_ranks >= r->pace.n_ranks && !host && c->kind != PACE_EVERY && c->kind != PACE_ALL &&
	    (c->kind == PACE_ALWAYS || c->n_ranks > 1))
		return false; /* who is slow and who is fast? */
	snprintf(v->detail, sizeof v->detail, "%s", part_of(c));
	snprintf(v->evidence, sizeof v->evidence,
		 "[{\"view\":\"rank_step\",\"step\":%u,\"rank\":%d},{\"view\":\"step\",\"step\":%u}]",
		 v->f.step, c->n_ranks ? c->ranks[0] : 0, v->f.step);
	if (c->kind == PACE_ALL) {
		v->f.class_name = "slow.global";
		v->f.rules_out_json = "[\"slow.fixed_rank: the ranks slowed down together\"]";
		snprintf(v->sentence, sizeof v->sentence,
			 "All ranks compute %.0f %% longer from %s on, and none more than the others: "
			 "look for what they share or what changed then (input, model, clocks, power of the "
			 "whole job).", c->ratio * 100, v->since);
		return true;
	}
	v->f.rules_out_json = "[\"slow.global: in the same steps the other ranks did not slow down\","
			      "\"slow.link: the time grew in own work, not in transfers\"]";
	if (host) {
		v->f.class_name = "slow.fixed_host";
		v->f.host = host;
		snprintf(v->sentence, sizeof v->sentence,
			 "All %u ranks on host %.80s compute %.1f %% longer than the others (%.1f ms a step, %s) "
			 "from %s on; the others wait for them. Look at that host: power, cooling, "
			 "other work on it.", c->n_ranks, host, c->ratio * 100, c->added_ns / 1e6, v->detail,
			 v->since);
		return true;
	}
	name_ranks(v, c->ranks, c->n_ranks, r->pace.n_ranks);
	host = c->n_ranks == 1 ? host_of(r, (uint32_t)c->ranks[0]) : NULL;
	v->f.host = host && *host ? host : NULL;
	v->f.class_name = "slow.fixed_rank";
	if (c->kind == PACE_EVERY)
		snprintf(v->sentence, sizeof v->sentence,
			 "%s adds %.1f ms to every step from %s on, in all %u that were seen (%s); "
			 "the others wait for it. Look at that device and its host.", v->who,
			 c->added_ns / 1e6, v->since, c->n, v->detail);
	else
		snprintf(v->sentence, sizeof v->sentence,
			 "%s take%s %.1f %% longer than the other ranks for its own part of a step "
			 "(%.1f ms, %s) from %s on; the others wait for it. Look at that device and "
			 "its host.", v->who, c->n_ranks == 1 ? "s" : "", c->ratio * 100,
			 c->added_ns / 1e6, v->detail, v->since);
	return true;
}

/* ---- telling ---- */

static void begin_cause(struct rules *r, const struct pace_change *c, struct cause *v)
{
	const struct pace *p = &r->pace;

	*v = (struct cause){ .f = { .severity = SEVERITY_SLOW,
				    .confidence = c->kind == PACE_ALWAYS || c->kind == PACE_EVERY
							  ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN,
				    .step = p->step_of[pace_slot(p, c->onset)],
				    .last_step = p->step_of[pace_slot(p, p->n_steps - 1)],
				    .onset_ns = p->begin_of[pace_slot(p, c->onset)],
				    .cost_ratio = c->step_ns > c->added_ns
							  ? c->added_ns / (c->step_ns - c->added_ns) : 0,
				    .margin_ns = (int64_t)c->added_ns,
				    .error_ns = (int64_t)c->spread_ns } };
	snprintf(v->since, sizeof v->since, "step %u", v->f.step);
	if (!r->by_calls)
		return;
	v->f.has_call = true;
	v->f.call = v->f.step;
	v->f.group = r->ledger.match->groups[r->beats.group].name;
	v->f.step = v->f.last_step = EVENT_STEP_UNKNOWN;
	snprintf(v->since, sizeof v->since, "call %llu of group %.60s", (unsigned long long)v->f.call,
		 v->f.group);
}

static int tell(struct rules *r, const struct pace_change *c, struct cause *v)
{
	struct pace *p = &r->pace;

	v->f.key = "slow.pace";
	v->f.detail = v->detail;
	v->f.sentence = v->sentence;
	if (r->by_calls)
		snprintf(v->evidence, sizeof v->evidence, "[{\"view\":\"collective\",\"seq\":%llu}]",
			 (unsigned long long)v->f.call);
	v->f.evidence_json = v->evidence;
	p->told = *c;
	p->told_class = v->f.class_name;
	p->told_steps = p->n_steps;
	return rules_tell(r, &v->f);
}

/* Has it been told, or has something else that explains it? */
static bool is_known(const struct rules *r, const struct pace_change *c)
{
	const struct pace *p = &r->pace;

	if (p->told_class)
		return false; /* what stands is told anew, by whatever class */
	for (uint32_t i = 0; i < c->n_ranks; i++)
		if (rules_explained(r, c->ranks[i]))
			return true;
	return c->n_ranks == 0 && rules_explained(r, -1);
}

/* While the job runs, a change has to last; what its end shows has lasted to the end. */
static bool lasts(const struct rules *r, const struct pace_change *c)
{
	const struct pace *p = &r->pace;
	int64_t ns = p->end_of[pace_slot(p, p->n_steps - 1)] - p->begin_of[pace_slot(p, c->onset)];

	if (c->kind == PACE_EVERY)
		return r->finishing;
	if (r->finishing && c->n >= N_AT_END)
		return true;
	if (ns < LIVE_NS || c->n < N_LIVE)
		return false;
	if (c->kind == PACE_ALWAYS)
		return c->n >= N_ALWAYS_LIVE;
	if (c->kind != PACE_ALL && p->n_ranks >= 4 && c->onset - pace_first(p) >= N_LIVE)
		return true;
	/* A large job is remembered for fewer steps, but there are many others. */
	return c->n >= N_LONG_LIVE || (c->kind != PACE_ALL && 2 * c->n >= p->n_window);
}

/* Nobody changed: unequal work or late input all along. */
static int look_at_steady(struct rules *r, const struct pace_work *work)
{
	struct pace_change c = { .kind = PACE_STEADY, .onset = pace_first(&r->pace) };
	struct pace_input in;
	struct cause v;
	int r2;

	if (r->pace.told_class || rules_explained(r, -1))
		return 0;
	begin_cause(r, &c, &v);
	r2 = uneven_work(r, work, NULL, &v);
	if (r2 != 0)
		return r2 > 0 ? tell(r, &c, &v) : 0;
	in = pace_input_of(r, c.onset);
	if (in.n_ranks == 0 || in.ns < INPUT_SHARE * in.step_ns)
		return 0;
	name_ranks(&v, in.ranks, in.n_ranks, in.n_all);
	v.f.class_name = "data.late_input";
	v.f.confidence = CONFIDENCE_LIKELY;
	v.f.cost_ratio = in.ns / (in.step_ns - fmin(in.ns, 0.9 * in.step_ns));
	v.f.margin_ns = (int64_t)in.ns;
	snprintf(v.detail, sizeof v.detail, "host side: the device waits for data");
	snprintf(v.sentence, sizeof v.sentence,
		 "%s: the device waits for input, %.1f ms of a step of %.1f ms. More loader workers, "
		 "prefetching or faster storage would help.", v.who, in.ns / 1e6, in.step_ns / 1e6);
	snprintf(v.evidence, sizeof v.evidence,
		 "[{\"view\":\"record\",\"category\":\"loader.batch\"},{\"view\":\"rank_step\",\"step\":%u}]",
		 v.f.step);
	return tell(r, &c, &v);
}

int pace_look(struct rules *r)
{
	struct pace *p = &r->pace;
	struct pace_work work;
	struct pace_change c;
	struct cause v;
	int known;

	if (r->finishing && p->n_steps < BEATS_MAX_STEPS && !p->told_class) {
		int n = beats_play(&r->beats, p);

		if (n < 0)
			return n;
		r->by_calls = n > 0;
	}
	if (r->held || p->n_steps == 0 || (!r->finishing && p->n_steps < p->looked_steps + EVERY))
		return 0;
	p->looked_steps = p->n_steps;
	work = pace_work_of(r);
	if (!pace_find(p, is_throttled, r, &c))
		return look_at_steady(r, &work);
	/* In a pipeline ranks differ by what their stage has to do. */
	if (((c.kind == PACE_ALWAYS || c.kind == PACE_EVERY) && r->ledger.messages.n > 0) || is_known(r, &c) || !lasts(r, &c))
		return 0;
	if (c.kind == PACE_ALL && pace_work_growth(r, &c) >= c.ratio / 2)
		return 0; /* everyone has more to do */
	begin_cause(r, &c, &v);
	known = throttled(r, &c, &v) || late_input(r, &c, &v) ? 1 : uneven_work(r, &work, &c, &v);
	if (known < 0 || (known == 0 && !slower(r, &c, &v)))
		return 0;
	if (p->told_class == v.f.class_name && !r->finishing && p->n_steps < p->told_steps + EVERY_TOLD)
		return 0;
	return tell(r, &c, &v);
}
