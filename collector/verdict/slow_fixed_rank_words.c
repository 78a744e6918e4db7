/* slow_fixed_rank_words.c - a verdict as a person reads it. */
#include "slow_fixed_rank_internal.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const part_names[] = { "input", "forward", "backward", "optimizer",
					  "outside of the phases" };

/* The parts that grew: each at least a quarter of the largest. */
static void name_parts(const struct standing *v, char *out, size_t n_out)
{
	double most = 0;
	size_t at = 0;

	*out = '\0';
	for (unsigned p = 0; p < N_PARTS; p++)
		if (v->part_ns[p] > most)
			most = v->part_ns[p];
	for (unsigned p = 0; p < N_PARTS; p++)
		if (v->part_ns[p] > 0 && v->part_ns[p] >= most / 4 && at < n_out)
			at += (size_t)snprintf(out + at, n_out - at, "%s%s", at ? " and " : "",
					       part_names[p]);
}

static void name_ranks(const struct standing *v, const char *glue, const char *last_glue, char *out,
		       size_t n_out)
{
	size_t at = 0;

	*out = '\0';
	for (uint32_t i = 0; i < v->n_ranks && at < n_out; i++)
		at += (size_t)snprintf(out + at, n_out - at, "%s%d",
				       i == 0 ? "" : i + 1 == v->n_ranks ? last_glue : glue,
				       v->ranks[i]);
}

static const char *common_host(const struct slow_fixed_rank *s, const struct standing *v)
{
	const char *host = NULL;

	for (uint32_t i = 0; i < v->n_ranks && s->cfg.host_of; i++) {
		const char *h = s->cfg.host_of(s->cfg.arg, v->ranks[i]);

		if (!h || !*h || (host && strcmp(h, host) != 0))
			return NULL;
		host = h;
	}
	return host;
}

/* The host has no ranks but these, two or more. */
static bool is_whole_host(const struct slow_fixed_rank *s, const struct standing *v, const char *host)
{
	uint32_t n = 0;

	for (uint32_t rank = 0; host && rank < s->n_ranks; rank++) {
		const char *h = s->cfg.host_of(s->cfg.arg, (int32_t)rank);

		n += h && strcmp(h, host) == 0;
	}
	return n >= 2 && n == v->n_ranks && n < s->n_ranks;
}

/* The class, and a device's own reason in why. */
static const char *class_of(const struct slow_fixed_rank *s, const struct standing *v,
			    const char *host, char *why, size_t n_why)
{
	bool throttled = s->cfg.throttled != NULL && !v->notice;

	*why = '\0';
	for (uint32_t i = 0; i < v->n_ranks && throttled; i++)
		throttled = s->cfg.throttled(s->cfg.arg, v->ranks[i], why, n_why);
	if (throttled)
		return "slow.throttled";
	*why = '\0';
	return !v->notice && is_whole_host(s, v, host) ? "slow.fixed_host" : "slow.fixed_rank";
}

int slow_tell(struct slow_fixed_rank *s, struct standing *v, struct facts *facts)
{
	char list[MAX_CULPRITS * 8], words[MAX_CULPRITS * 8], parts[128], host_json[160] = "";
	const char *host = common_host(s, v), *verb = v->n_ranks == 1 ? "computes" : "compute";
	char evidence[256], why[120];
	struct fact_verdict *f;

	v->changed = false;
	if (!facts)
		return 0;
	name_ranks(v, ",", ",", list, sizeof list);
	name_ranks(v, ", ", " and ", words, sizeof words);
	name_parts(v, parts, sizeof parts);
	if (host) {
		char quoted[128];

		words_json(host, quoted, sizeof quoted);
		snprintf(host_json, sizeof host_json, "\"host\":\"%s\",", quoted);
	}
	f = FACTS_PUSH(facts, verdicts);
	if (!f)
		return -ENOMEM;
	memcpy(f->key, v->key, sizeof f->key);
	f->class_name = class_of(s, v, host, why, sizeof why);
	if (s->cfg.named && !v->notice)
		s->cfg.named(s->cfg.arg, f->class_name, v->ranks, v->n_ranks, v->first_step);
	f->severity = v->notice ? SEVERITY_NOTICE : SEVERITY_SLOW;
	f->confidence = v->confidence;
	f->error_kind = ERROR_KIND_NONE;
	if (*why) {
		char quoted[160];

		words_json(why, quoted, sizeof quoted);
		f->culprit_json = facts_printf(facts, "{\"ranks\":[%s],%s\"detail\":\"%s\"}", list,
					       host_json, quoted);
	} else {
		bool host_alone = strcmp(f->class_name, "slow.fixed_host") == 0;

		f->culprit_json = facts_printf(facts, "{\"ranks\":[%s],%s\"detail\":\"%s\"}",
					       host_alone ? "" : list, host_json, parts);
	}
	if (v->confidence == CONFIDENCE_INSUFFICIENT)
		f->sentence = facts_printf(
			facts,
			"Rank %s seems slower than its peers since step %u, but %s to be sure.",
			words, v->first_step,
			v->n_peers < 3 ? "there are fewer than three ranks to compare it with"
				       : "too many events are missing");
	else if (v->confidence == CONFIDENCE_TOO_CLOSE)
		f->sentence = facts_printf(
			facts,
			"Rank %s is slower than its peers since step %u by about %.1f ms a step, "
			"but the spread of the others (%.1f ms) is too large to name it.",
			words, v->first_step, v->excess_ns / 1e6, v->error_ns / 1e6);
	else
		f->sentence = facts_printf(
			facts,
			"Rank%s %s%s%s %s %.0f %% longer than the other ranks (%.1f ms a step, in %s) "
			"from step %u %s; the others wait for it and each step takes %.0f %% longer.%s%s%s",
			v->n_ranks == 1 ? "" : "s", words, host ? " on " : "", host ? host : "", verb,
			v->self_ratio * 100, v->excess_ns / 1e6, *parts ? parts : "no single phase",
			v->first_step,
			v->ended ? "on, until it was as fast as they again" : "on", v->cost * 100,
			*why ? " Of its device is said: " : "", why, *why ? "." : "");
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"rank_step\",\"step\":%u,\"rank\":%d},"
		 "{\"view\":\"rank_step\",\"step\":%u,\"rank\":%d},"
		 "{\"view\":\"step\",\"step\":%u}]",
		 v->first_step, v->ranks[0], v->last_step, v->ranks[0], v->first_step);
	f->evidence_json = facts_string(facts, evidence);
	f->rules_out_json = facts_printf(
		facts,
		"[\"slow.global: in the same steps %u other ranks did not slow down with it\","
		"\"slow.rotating_host_pause: the same rank%s in %u steps, correlated over %.0f\","
		"\"slow.link: the time grew in the rank's own work, not in its transfers\"]",
		v->n_peers, v->n_ranks == 1 ? "" : "s", v->n_steps, v->tau);
	f->coverage_json = facts_printf(facts, "{\"events_seen_ratio\":%.4f,\"peers\":%u}",
					v->coverage, v->n_peers);
	f->first_step = v->first_step;
	f->last_step = v->last_step;
	f->onset_ns = v->onset_ns;
	f->detected_ns = v->detected_ns;
	f->cost_ratio = v->cost;
	f->margin_ns = (int64_t)v->margin_ns;
	f->error_ns = (int64_t)v->error_ns;
	return 0;
}
