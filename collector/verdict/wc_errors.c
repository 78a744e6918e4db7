#include "wc_errors.h"
#include "start.h"
#include "words.h"

static int64_t status_of(const struct side_record *v)
{
	static const struct {
		const char *text;
		int64_t status;
	} names[] = { { "RNR_RETRY", 13 }, { "RETRY_EXC", WC_RETRY_EXCEEDED },
		      { "retry exceeded", WC_RETRY_EXCEEDED },
		      { "retry counter exceeded", WC_RETRY_EXCEEDED },
		      { "LOC_LEN", 1 }, { "local length", 1 },
		      { "REM_INV_REQ", 9 }, { "remote invalid request", 9 } };
	const char *text = side_text(v, "status");

	for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
		if (words_has(text, names[i].text))
			return names[i].status;
	return text ? -1 : side_number(v, "status", -1);
}

bool wc_error_of(const struct rules *r, size_t i, struct wc_error *ret)
{
	const struct side_record *v = &r->side.v[i];
	int64_t peer;

	if (!start_record(r, i, SIDE_WC_ERROR))
		return false;
	peer = side_number(v, "peer", -1);
	*ret = (struct wc_error){ .record = i, .rank = start_rank(r, i),
				  .peer = peer >= 0 && peer < FACT_MAX_RANKS ? (int32_t)peer : -1,
				  .host = start_host_of_rank(r, start_rank(r, i)),
				  .status = status_of(v),
				  .after_bytes = side_number(v, "after_bytes", -1),
				  .kind = side_text(v, "kind") };
	ret->peer_host = start_host_of_rank(r, ret->peer);
	return true;
}
