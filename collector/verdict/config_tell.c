/* config_tell.c - a difference of configuration, told as what it does. */
#include "onset.h"
#include "start.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *class_name, *noun, *do_this, *evidence;
} texts[CONFIG_N] = {
	{ "config.version_mismatch", "version of", "Install the same version everywhere.",
	  "[{\"view\":\"record\",\"category\":\"meta.versions\"}]" },
	{ "config.setting_differs", "value of", "Set it alike on all ranks.",
	  "[{\"view\":\"record\",\"category\":\"meta.env\"}]" },
	{ "config.device_differs", "device property", "Take that device out, or give it less work.",
	  "[{\"view\":\"record\",\"category\":\"meta.device\"}]" },
};

static const char *rules_out(enum config_told as)
{
	if (as == CONFIG_STUCK)
		return "[\"init.dataplane_blocked: no connection is known to be closed\","
		       "\"init.missing_rank: all are there\"]";
	if (as == CONFIG_SLOW)
		return "[\"slow.fixed_rank: what is different about these ranks is known\"]";
	return "[]";
}

static enum fact_severity severity(enum config_told as)
{
	return as == CONFIG_STUCK ? SEVERITY_STUCK :
	       as == CONFIG_WRONG ? SEVERITY_WRONG :
	       as == CONFIG_SLOW  ? SEVERITY_SLOW :
				    SEVERITY_NOTICE;
}

int config_tell(struct rules *r, enum config_what what, enum config_told as, const char *effect,
		bool certain, double cost_ratio)
{
	const struct difference *d = &r->config.v[what];
	struct finding f = { .class_name = texts[what].class_name, .severity = severity(as),
			     .confidence = certain ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
			     .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE, .host = d->host,
			     .setting = d->field, .detail = d->values,
			     .cost_ratio = cost_ratio, .evidence_json = texts[what].evidence,
			     .rules_out_json = rules_out(as) };
	char sentence[900], who[160] = "";

	for (uint32_t i = 0; i < d->n_odd && i < CONFIG_MAX_ODD; i++)
		finding_rank(&f, d->odd[i]);
	if (f.n_ranks)
		words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence, "The %s %s differs: %s.%s%s%s%s%s%s %s%s%s", texts[what].noun, d->field,
		 d->values, *who ? " " : "", who,
		 *who ? (f.n_ranks == 1 ? " is the odd one out." : " are the odd ones out.") : "",
		 *d->others ? " So differ: " : "", d->others, *d->others ? "." : "", effect,
		 as == CONFIG_NOTICE ? "" : " ", as == CONFIG_NOTICE ? "" : texts[what].do_this);
	f.sentence = sentence;
	r->config.told[what] = as;
	return rules_tell(r, &f);
}

/* Without an error, a runtime or a driver is a weak suspect: a large job may just be slow to start. */
#define START_LONG_NS INT64_C(45000000000)

/* An error of the kind that a difference on the wire makes. */
static bool any_error(const struct rules *r)
{
	for (size_t i = 0; i < r->side.n; i++)
		if (start_record(r, i, SIDE_BOOTSTRAP_ERROR) || start_record(r, i, SIDE_NCCL_ERROR))
			return true;
	return false;
}

/* What was told to hold the job up did not: calls came out. */
static int take_back(struct rules *r, enum config_what what)
{
	const struct config *c = &r->config;
	const struct page *p = c->stuck_group < r->ledger.n_pages ? &r->ledger.pages[c->stuck_group] : NULL;
	bool went_on = !c->stuck_in_call && onset_calls_came_out(r);

	for (uint32_t i = 0; p && c->stuck_in_call && i < p->n_seats; i++)
		went_on |= p->seats[i].seen && p->seats[i].n_left > c->stuck_call;
	if (!went_on)
		return 0;
	r->held = false;
	return config_tell(r, what, CONFIG_NOTICE, "The job went on all the same.", false, 0);
}

int config_hold_look(struct rules *r, enum config_what what)
{
	struct difference *d = &r->config.v[what];
	enum config_told told = r->config.told[what];
	bool error = any_error(r);
	struct standstill s;
	enum onset onset;
	bool misread;

	if (told == CONFIG_STUCK)
		return take_back(r, what);
	if (!*d->field || told == CONFIG_SLOW || told == CONFIG_WRONG)
		return 0;
	onset = onset_of(r, error ? START_FIXED_NS : d->on_wire ? START_RETRY_NS : START_LONG_NS, &s);
	/* Ranks that chose another protocol read each other's messages wrongly, in any call. */
	misread = onset == ONSET_LATER_CALL && what == CONFIG_SETTING && corruption_is_said(r);
	if (d->may_hold && !r->held &&
	    (onset == ONSET_NO_CALL || onset == ONSET_FIRST_CALLS || misread)) {
		r->config.stuck_in_call = onset != ONSET_NO_CALL;
		r->config.stuck_group = r->config.stuck_in_call ? s.group : 0;
		r->config.stuck_call = r->config.stuck_in_call ? s.call : 0;
		return config_tell(r, what, CONFIG_STUCK,
				   onset == ONSET_NO_CALL ?
					   "No rank got through the start." :
					   misread ? "The job stands, and the transport says that messages "
						     "are not what was expected." :
						     "All ranks stand in one of their first calls.",
				   error && d->n_odd > 0, 0);
	}
	if (told != CONFIG_UNTOLD || (onset != ONSET_RUNS && !r->finishing))
		return 0;
	return config_tell(r, what, CONFIG_NOTICE,
			   onset == ONSET_RUNS ? "The job runs all the same." : "", true, 0);
}

int config_slow_look(struct rules *r, enum config_what what)
{
	const struct difference *d = &r->config.v[what];
	char effect[200], late[32];
	double ratio;
	int64_t ns;

	if (!*d->field || !d->may_slow || d->n_odd == 0 || d->n_odd > CONFIG_MAX_ODD || r->held ||
	    r->config.told[what] > CONFIG_NOTICE || rules_explained(r, d->odd[0]) ||
	    !latecomers_of(&r->latecomers, r->ledger.match, d->odd, d->n_odd,
			 r->finishing ? CONFIG_LEAST_CALLS : CONFIG_LEAST_CALLS_LIVE, &ns, &ratio))
		return 0;
	words_ns(ns, late, sizeof late);
	snprintf(effect, sizeof effect,
		 "%s last to the collectives, %s behind the others in the mean, and the others wait.",
		 d->n_odd == 1 ? "It comes" : "They come", late);
	return config_tell(r, what, CONFIG_SLOW, effect, false, ratio);
}
