/* lossy_class.c - net.lossy_class_one_path: one class of traffic, or one kind of queue, loses
 * packets where the others do not.
 *
 * What it says: the class or kind that loses, the ones beside it that do not, and
 * where. Mostly a library opens queues in a traffic class that the switches do
 * not keep lossless.
 *
 * How it decides: from records. Classes: drops that grow in one class while another is
 * counted, or used by queue pairs, without a loss. Kinds of queues: work fails
 * (ib.wc_error, a queue pair in error) on one kind while queue pairs of another kind
 * work; the library's own, of the kind "host", work where calls between hosts end.
 * Failed work needs no more; drops alone must cost something: calls that do not
 * end, or transfers that are slower than before, than elsewhere, or have a tail.
 *
 * Neighbours: net.qp_retry_from_first_use (every queue pair between hosts fails, from
 * the start: nothing beside it works), net.retransmits (a path, not a class),
 * slow.link.
 */
#include "onpath.h"
#include "standstill.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_LANES 16

struct traffic_lane { /* a traffic class or a kind of queue */
	char name[40], tclass[16]; /* tclass: of a kind */
	bool kind;
	int64_t n_lost, n_most; /* packets of a class, failures of a kind; the most at once */
	uint32_t n_fine; /* words of it that say nothing of a loss */
	uint32_t host;	/* of most */
	int32_t rank;	/* that says so, in a job of one host; -1 */
};

struct traffic {
	struct traffic_lane v[MAX_LANES];
	uint32_t n;
};

static struct traffic_lane *lane_of(struct traffic *l, bool kind, const char *name)
{
	if (!name || !*name)
		return NULL;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].kind == kind && strncmp(l->v[i].name, name, sizeof l->v[i].name - 1) == 0)
			return &l->v[i];
	if (l->n == MAX_LANES)
		return NULL;
	l->v[l->n] = (struct traffic_lane){ .kind = kind, .host = UINT32_MAX, .rank = -1 };
	snprintf(l->v[l->n].name, sizeof l->v[l->n].name, "%s", name);
	return &l->v[l->n++];
}

static void lose(struct traffic_lane *l, int64_t n, uint32_t host, int32_t rank)
{
	if (!l)
		return;
	l->n_lost += n;
	if (n > l->n_most) {
		l->n_most = n;
		l->host = host;
		l->rank = rank;
	}
}

static const char *class_of(const struct side_record *v, char out[24])
{
	int64_t n = side_number(v, "tclass", -1);

	if (side_text(v, "tclass"))
		return side_text(v, "tclass");
	if (n < 0)
		return NULL;
	snprintf(out, 24, "%" PRId64, n);
	return out;
}

static bool is_error(const char *state)
{
	return state && (strncasecmp(state, "err", 3) == 0 || strcasecmp(state, "sqe") == 0 ||
			 strcasecmp(state, "fail") == 0 || strcasecmp(state, "failed") == 0);
}

static void take_pair(struct traffic *l, const struct rules *r, const struct side_record *v)
{
	uint32_t host = r->ledger.roster->procs[v->proc].host;
	struct traffic_lane *kind = lane_of(l, true, side_text(v, "kind"));
	bool failed = is_error(side_text(v, "state"));
	struct traffic_lane *class;
	char text[24];

	if (kind && class_of(v, text))
		snprintf(kind->tclass, sizeof kind->tclass, "%.15s", class_of(v, text));
	if (kind && failed)
		lose(kind, 1, host, -1);
	else if (kind)
		kind->n_fine++;
	class = lane_of(l, false, class_of(v, text));
	if (class && !failed)
		class->n_fine++;
}

/* Of a failure that names its queue pair only. */
static const char *kind_of_pair(const struct rules *r, const struct side_record *v)
{
	int64_t qp = side_number(v, "qp", -1);

	if (side_text(v, "kind"))
		return side_text(v, "kind");
	for (size_t i = 0; qp >= 0 && i < r->side.n; i++)
		if (r->side.v[i].kind == SIDE_QP && r->side.v[i].proc == v->proc &&
		    side_number(&r->side.v[i], "qp", -1) == qp)
			return side_text(&r->side.v[i], "kind");
	return NULL;
}

static void gather(const struct rules *r, struct traffic *l)
{
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];

		if (v->kind == SIDE_QP)
			take_pair(l, r, v);
		else if (v->kind == SIDE_WC_ERROR && side_number(v, "status", 1) != 0)
			lose(lane_of(l, true, kind_of_pair(r, v)), 1, r->ledger.roster->procs[v->proc].host, -1);
	}
	for (size_t i = 0; i < r->losses.n; i++) {
		const struct loss *v = &r->losses.v[i];
		struct traffic_lane *class = v->kind == LOSS_DROPS ? lane_of(l, false, v->of) : NULL;

		if (class && loss_grown(v) > 0)
			lose(class, loss_grown(v), v->host,
			     r->ledger.roster->n_hosts > 1 || v->of_host ? -1 : r->ledger.roster->procs[v->proc].rank);
		else if (class)
			class->n_fine++;
	}
}

/* The only one of its sort that loses, while another does not. */
static const struct traffic_lane *find(const struct traffic *l, bool kind, const struct traffic_lane **ret_fine)
{
	const struct traffic_lane *lossy = NULL;

	*ret_fine = NULL;
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->v[i].kind != kind)
			continue;
		if (l->v[i].n_lost > 0) {
			if (lossy)
				return NULL;
			lossy = &l->v[i];
		} else if (l->v[i].n_fine > 0) {
			*ret_fine = &l->v[i];
		}
	}
	return *ret_fine ? lossy : NULL;
}

/* Collectives between hosts have ended, so the library's own queue pairs work. */
static const struct traffic_lane *host_kind(const struct rules *r, const struct traffic *l)
{
	static const struct traffic_lane host = { .name = "host", .kind = true };
	const struct traffic_lane *lossy = NULL;
	bool ended = false;

	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].kind && l->v[i].n_lost > 0) {
			if (lossy || strcasecmp(l->v[i].name, host.name) == 0)
				return NULL;
			lossy = &l->v[i];
		}
	for (uint32_t i = 0; i < r->rates.n_cells && lossy; i++)
		ended |= r->rates.cells[i]->life == r->life &&
			 (r->rates.cells[i]->n_hosts > 1 || r->ledger.roster->n_hosts == 1);
	return ended ? &host : NULL;
}

static bool costs(const struct rules *r, const struct traffic_lane *l)
{
	struct onpath p = { l->host, UINT32_MAX, l->rank };
	struct onpath_change change;
	struct onpath_tail tail;

	return onpath_contrast(r, &p) || onpath_slower(r, &p, &change) || onpath_tails(r, &p, &tail);
}

/* The kind of queue that sends in that class. */
static const struct traffic_lane *kind_of(const struct traffic *l, const struct traffic_lane *class)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].kind && strcmp(l->v[i].tclass, class->name) == 0)
			return &l->v[i];
	return NULL;
}

static int tell(struct rules *r, const struct traffic *l, const struct traffic_lane *lossy, const struct traffic_lane *fine, bool stuck)
{
	char sentence[900], detail[260], what[160], beside[120];
	struct finding f = { .class_name = "net.lossy_class_one_path", .onset_ns = FACT_NONE,
			     .severity = stuck ? SEVERITY_STUCK : lossy->kind ? SEVERITY_WRONG : SEVERITY_SLOW,
			     .confidence = lossy->kind && fine->n_fine > 0 ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
			     .error_kind = ERROR_KIND_NONE, .step = EVENT_STEP_UNKNOWN };
	const struct traffic_lane *kind = lossy->kind ? NULL : kind_of(l, lossy);

	if (lossy->kind)
		snprintf(what, sizeof what, "queue pairs of kind %.40s%s%.15s", lossy->name,
			 lossy->tclass[0] ? ", traffic class " : "", lossy->tclass);
	else
		snprintf(what, sizeof what, "traffic class %.40s%s%.40s", lossy->name, kind ? ", used by " : "",
			 kind ? kind->name : "");
	snprintf(beside, sizeof beside, "%s %.40s%s%.15s", fine->kind ? "kind" : "class", fine->name, fine->kind && fine->tclass[0] ? ", traffic class " : "",
		 fine->kind ? fine->tclass : "");
	snprintf(detail, sizeof detail, "%s: %" PRId64 " %s", what, lossy->n_lost, lossy->kind ? "failures" : "packets lost");
	snprintf(sentence, sizeof sentence,
		 "Only one class of traffic loses packets: %s; %s works beside it%s. Put it into the class that the "
		 "switches keep lossless (NCCL_IB_TC, NVSHMEM_IB_TRAFFIC_CLASS, priority flow control of that class).",
		 detail, beside, stuck ? ", and calls wait for what was lost" : "");
	f.setting = lossy->kind ? lossy->name : NULL;
	f.link = lossy->name;
	f.host = members_host_name(r, lossy->host);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"net.drops\"},{\"view\":\"record\",\"category\":\"ib.qp\"},"
			  "{\"view\":\"record\",\"category\":\"ib.wc_error\"}]";
	f.rules_out_json = "[\"net.qp_retry_from_first_use: other queue pairs between the same hosts work\","
			   "\"slow.link: the same cable carries the other class without loss\"]";
	return rules_tell(r, &f);
}

int lossy_class_look(struct rules *r)
{
	const struct traffic_lane *lossy, *fine;
	struct traffic l = { .n = 0 };
	struct standstill s;
	bool stuck;

	gather(r, &l);
	if (l.n == 0 || r->held)
		return 0;
	stuck = standstill_inside(r, &s) || standstill_find(r, &s);
	lossy = find(&l, true, &fine);
	if (lossy)
		return tell(r, &l, lossy, fine, stuck);
	fine = host_kind(r, &l);
	for (uint32_t i = 0; fine && i < l.n; i++)
		if (l.v[i].kind && l.v[i].n_lost > 0)
			return tell(r, &l, &l.v[i], fine, stuck);
	lossy = find(&l, false, &fine);
	return lossy && (stuck || costs(r, lossy)) ? tell(r, &l, lossy, fine, stuck) : 0;
}
