/* qp_retry.c - net.qp_retry_from_first_use: a pair's RDMA connection never carried a byte.
 *
 * What it says: that the queue pairs between which hosts fail, which index and type
 * of address (GID) they use, and nobody's rank: it is a setting.
 *
 * How it decides: queue pairs gave up after all retries (status 12) without having
 * carried a byte, between ranks of different hosts where hosts are known, and no
 * collective between those ranks has ever come out. Every such error of this life
 * has to be of that kind, and no kind of queue may work on the way where another
 * fails. Certain with two errors and the address index known; likely otherwise. In
 * a job that runs all the same it is a notice.
 *
 * Neighbours: net.lossy_class_one_path (it carried bytes before, or only one kind of
 * queue fails), slow.link (it works, slowly), net.transport_corruption (bytes arrive,
 * wrong ones). The collective that stands is its consequence.
 */
#include "start.h"
#include "wc_errors.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

#define SETTLE_NS INT64_C(3000000000)

struct failing {
	unsigned n, n_pairs;
	const char *a, *b; /* the first pair's hosts; NULL unknown */
	const char *kind;
	bool all_explicit; /* each says that it carried nothing */
	bool common_a, common_b; /* host a or b is an end of every pair */
	int32_t rank; /* the first to say so */
};

static bool is_end(const struct wc_error *e, const char *host)
{
	return host && ((e->host && strcmp(e->host, host) == 0) ||
			(e->peer_host && strcmp(e->peer_host, host) == 0));
}

/* False: at least one error is of another kind. */
static bool find(const struct rules *r, struct failing *f)
{
	*f = (struct failing){ .all_explicit = true, .common_a = true, .common_b = true };
	for (size_t i = 0; i < r->side.n; i++) {
		struct wc_error e;

		if (!wc_error_of(r, i, &e) || e.status != WC_RETRY_EXCEEDED)
			continue;
		if (e.after_bytes > 0 || (e.host && e.peer_host && e.host == e.peer_host &&
					  r->ledger.roster->n_hosts > 1) ||
		    (e.after_bytes < 0 && e.peer >= 0 && onset_pair_has_met(r, e.rank, e.peer)))
			return false;
		if (f->n++ == 0) {
			f->a = e.host;
			f->b = e.peer_host;
			f->kind = e.kind;
			f->rank = e.rank;
		}
		f->all_explicit &= e.after_bytes == 0;
		f->n_pairs += f->n == 1 || !is_end(&e, f->a) || !is_end(&e, f->b);
		f->common_a &= is_end(&e, f->a);
		f->common_b &= is_end(&e, f->b);
		if (!e.kind || !f->kind || strcmp(e.kind, f->kind) != 0)
			f->kind = NULL;
	}
	return f->n > 0;
}

/* Only this kind of queue fails although others are there. */
static bool other_kind_works(const struct rules *r, const char *kind)
{
	for (size_t i = 0; kind && i < r->side.n; i++) {
		const char *other = start_record(r, i, SIDE_QP) ?
					    side_text(&r->side.v[i], "kind") : NULL;
		const char *state = side_text(&r->side.v[i], "state");

		if (other && strcmp(other, kind) != 0 && !words_has(state, "err"))
			return true;
	}
	return false;
}

struct address {
	int64_t index;
	const char *type, *dev;
	bool known, differs;
};

static void address_of(const struct rules *r, struct address *ret)
{
	*ret = (struct address){ .index = -1 };
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		int64_t index;

		if (!start_record(r, i, SIDE_IB_CONN))
			continue;
		index = side_number(v, "gid_index", -1);
		if (ret->known && index != ret->index)
			ret->differs = true;
		if (ret->known)
			continue;
		*ret = (struct address){ index, side_text(v, "gid_type"), side_text(v, "dev"), true,
					 false };
	}
}

static void describe(const struct failing *f, const struct address *a, char *detail, size_t n_detail)
{
	size_t at = a->known && a->index >= 0 ?
			    (size_t)snprintf(detail, n_detail, "GID index %lld%s%s%.30s%s",
					     (long long)a->index, a->differs ? " and others" : "",
					     a->type ? ", type " : "", a->type ? a->type : "",
					     a->dev ? " on " : "") : 0;

	if (at > 0 && a->dev && at < n_detail)
		at += (size_t)snprintf(detail + at, n_detail - at, "%.30s", a->dev);
	if (at < n_detail)
		snprintf(detail + at, n_detail - at, "%s%s", at ? "; " : "",
			 !f->a || !f->b || f->a == f->b ? "pairs from their first use" :
			 f->n_pairs == 1	       ? "one pair of hosts from its first use" :
							 "pairs of several hosts from their first use");
}

/* One host at the end of all failing pairs, where there are several, is the odd one. */
static const char *odd_host(const struct failing *f)
{
	if (f->n_pairs < 2 || f->common_a == f->common_b)
		return NULL;
	return f->common_a ? f->a : f->b;
}

int qp_retry_look(struct rules *r)
{
	char sentence[700], detail[200], link[140], ends[160];
	struct failing v;
	struct address a;
	struct standstill s;
	enum onset onset;
	struct finding f = { .class_name = "net.qp_retry_from_first_use", .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE, .detail = detail, .sentence = sentence,
			     .setting = "GID index" };

	if (r->held || r->side.n_of_kind[SIDE_WC_ERROR] == 0 ||
	    (!r->finishing && r->now_ns - r->side.news_now_ns < SETTLE_NS) || !find(r, &v) ||
	    other_kind_works(r, v.kind))
		return 0;
	onset = onset_of(r, SETTLE_NS, &s);
	if ((onset == ONSET_UNKNOWN && !r->finishing) ||
	    !once_tell(&r->once.qp_retry, r->life, onset != ONSET_RUNS))
		return 0;
	address_of(r, &a);
	describe(&v, &a, detail, sizeof detail);
	if (v.a && v.b && v.a != v.b) {
		snprintf(ends, sizeof ends, "hosts %.50s and %.50s", v.a, v.b);
		snprintf(link, sizeof link, "%.60s-%.60s", v.a, v.b);
		f.link = link;
	} else {
		snprintf(ends, sizeof ends, "rank %d and its peers", v.rank);
	}
	f.host = odd_host(&v);
	f.severity = onset == ONSET_RUNS ? SEVERITY_NOTICE : SEVERITY_STUCK;
	f.confidence = v.n > 1 && v.all_explicit && a.known ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	snprintf(sentence, sizeof sentence,
		 "RDMA between %s%s gave up after all retries without having carried a byte (%s): it never "
		 "worked, which is no cable that went bad. Choose an address index (NCCL_IB_GID_INDEX) whose "
		 "address the switches route, the same kind on every host.%s", ends,
		 v.n_pairs > 1 ? " and others" : "", detail,
		 onset == ONSET_RUNS ? " The job runs all the same." : "");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"ib.wc_error\"},"
			  "{\"view\":\"record\",\"category\":\"nccl.ib_conn\"}]";
	f.rules_out_json = "[\"slow.link: nothing ever passed\","
			   "\"stuck.localised_cause_unknown: the call stands behind the pair that fails\"]";
	return rules_tell(r, &f);
}
