/* corruption.c - net.transport_corruption: what the transport received is not what the calls agreed on.
 *
 * What it says: the hosts between which it happened, and the transport's own words.
 *
 * How it decides: the library or a queue pair reports a message of a wrong length,
 * type, identity or checksum, while the ledger of this life has no two ranks that
 * asked for different things, and no variable that the library reads differs between
 * them. Time-outs, refusals, resets and exhausted retries say that nothing arrived,
 * which is another matter. Certain where several ranks say so and the calls they
 * are in are known to agree in size; otherwise likely. A job that goes on all the same
 * gets a notice.
 *
 * Neighbours: mismatch.size and mismatch.op (the calls themselves differ: looked for
 * first), config.setting_differs (ranks that choose another protocol read each
 * other's messages wrongly), net.qp_retry_from_first_use (no byte arrives).
 */
#include "start.h"
#include "wc_errors.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

#define SETTLE_NS INT64_C(5000000000)

static bool has_any(const char *text, const char *const *v)
{
	for (; *v; v++)
		if (words_has(text, *v))
			return true;
	return false;
}

/* Words that libraries have for bytes that came and are not the right ones. */
static bool is_wrong_message(const struct side_record *v)
{
	static const char *const nothing_came[] = {
		"timeout", "timed out", "refused", "reset", "closed", "unreachable", "retry", NULL
	};
	static const char *const wrong[] = {
		"truncat", "length", "size", "corrupt", "checksum", "crc", "mismatch", "wrong",
		"unexpected", "magic", "garbage", "invalid message", "invalid id", "invalid type",
		"not match", "differ", "disagree", NULL
	};
	const char *class_name = side_text(v, "class"), *text = side_text(v, "text");
	int64_t local = side_number(v, "local", -1), remote = side_number(v, "remote", -1);

	if (has_any(class_name, nothing_came) || (!class_name && has_any(text, nothing_came)))
		return false;
	return has_any(class_name, wrong) || has_any(text, wrong) ||
	       (!class_name && !text && local >= 0 && remote >= 0 && local != remote);
}

struct corruption {
	unsigned n_ranks;
	int32_t rank; /* the first to say so */
	const char *host, *peer_host, *words;
};

static void find(const struct rules *r, struct corruption *ret)
{
	*ret = (struct corruption){ .rank = -1 };
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		struct wc_error e = { .rank = -1 };
		bool is = false;

		if (start_record(r, i, SIDE_NCCL_ERROR) && is_wrong_message(v)) {
			is = true;
			e.rank = start_rank(r, i);
			e.host = start_host_of_rank(r, e.rank);
			e.peer_host = start_host_of_rank(r, side_number(v, "peer", -1));
		} else if (wc_error_of(r, i, &e)) {
			is = e.status == WC_LOCAL_LENGTH || e.status == WC_REMOTE_INVALID;
		}
		if (!is)
			continue;
		if (ret->n_ranks == 0) {
			ret->rank = e.rank;
			ret->host = e.host;
			ret->words = side_text(v, "text") ? side_text(v, "text") :
				     side_text(v, "class") ? side_text(v, "class") :
				     v->kind == SIDE_WC_ERROR ? "the adapter reports a message of a wrong length" :
								"what came has another size";
		}
		if (!ret->peer_host && e.peer_host && e.peer_host != ret->host)
			ret->peer_host = e.peer_host;
		if (!ret->peer_host && e.host && e.host != ret->host)
			ret->peer_host = e.host;
		ret->n_ranks += ret->n_ranks == 0 || e.rank != ret->rank;
	}
}

bool corruption_is_said(const struct rules *r)
{
	struct corruption c;

	find(r, &c);
	return c.n_ranks > 0;
}

/* Every call that two ranks asked for is the same; *ret_sized: and somewhere its size is known. */
static bool calls_agree(const struct rules *r, bool *ret_sized)
{
	bool any = false;

	*ret_sized = false;
	for (uint32_t i = 0; i < r->ledger.n_pages; i++) {
		const struct page *p = &r->ledger.pages[i];
		const struct line *v = p->any ? ledger_line(p, p->next - 1) : NULL;

		if (p->first_odd != UINT64_MAX || p->told)
			return false;
		any |= p->any;
		*ret_sized |= v && v->n_entered > 1 && v->shape.sized;
	}
	return any;
}

int corruption_look(struct rules *r)
{
	char sentence[800], detail[300], link[140];
	struct finding f = { .class_name = "net.transport_corruption", .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE, .detail = detail, .sentence = sentence };
	const struct difference *d = &r->config.v[CONFIG_SETTING];
	struct corruption c;
	struct standstill s;
	enum onset onset;
	bool sized;

	if (r->held || r->side.n_of_kind[SIDE_NCCL_ERROR] + r->side.n_of_kind[SIDE_WC_ERROR] == 0 ||
	    (!r->finishing && r->now_ns - r->side.news_now_ns < SETTLE_NS))
		return 0;
	find(r, &c);
	if (c.n_ranks == 0 || !calls_agree(r, &sized) || (*d->field && d->may_hold))
		return 0;
	onset = onset_of(r, SETTLE_NS, &s);
	if (!once_tell(&r->once.corruption, r->life, onset != ONSET_RUNS))
		return 0;
	f.severity = onset == ONSET_RUNS ? SEVERITY_NOTICE : SEVERITY_STUCK;
	f.confidence = c.n_ranks > 1 && sized ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	snprintf(detail, sizeof detail, "%.200s", c.words);
	if (c.host && c.peer_host && strcmp(c.host, c.peer_host) != 0) {
		snprintf(link, sizeof link, "%.60s-%.60s", c.host, c.peer_host);
		f.link = link;
	}
	snprintf(sentence, sizeof sentence,
		 "The ranks' calls agree, and the transport says that what came does not (rank %d%s: %.200s). "
		 "Messages are damaged or mixed up between %.120s. Look at the adapters' errors and firmware there, and "
		 "run with another transport to confirm.%s", c.rank, c.n_ranks > 1 ? " and others" : "", detail,
		 f.link ? f.link : c.host ? c.host : "the ranks",
		 onset == ONSET_RUNS ? " The job goes on all the same." : "");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"nccl.error\"},"
			  "{\"view\":\"record\",\"category\":\"ib.wc_error\"}]";
	f.rules_out_json = "[\"mismatch.size: all ranks ask for the same\","
			   "\"config.setting_differs: no setting of the library is known to differ\"]";
	return rules_tell(r, &f);
}
