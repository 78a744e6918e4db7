#include "ping.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>

#define MAGIC UINT32_C(0x504c5953) /* "SYLP" */
#define VERSION 1
#define DIGEST_AT 48
#define DIGEST_BYTES 16
#define LABEL "syncline clock probe 1"

static void put(uint8_t *out, uint64_t v, unsigned n_bytes)
{
	for (unsigned i = 0; i < n_bytes; i++)
		out[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *in, unsigned n_bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n_bytes; i++)
		v |= (uint64_t)in[i] << 8 * i;
	return v;
}

void ping_derive_key(struct ping_key *ret, const char *token, uint64_t stream,
		     const uint8_t secret[PING_SECRET_BYTES])
{
	struct hmac_sha256_ctx ctx;
	uint8_t name[8];

	put(name, stream, sizeof name);
	hmac_sha256_set_key(&ctx, strlen(token), (const uint8_t *)token);
	hmac_sha256_update(&ctx, sizeof LABEL, (const uint8_t *)LABEL);
	hmac_sha256_update(&ctx, sizeof name, name);
	hmac_sha256_update(&ctx, PING_SECRET_BYTES, secret);
	hmac_sha256_digest(&ctx, sizeof ret->bytes, ret->bytes);
}

static void digest(uint8_t out[DIGEST_BYTES], const uint8_t *data, const struct ping_key *key)
{
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, sizeof key->bytes, key->bytes);
	hmac_sha256_update(&ctx, DIGEST_AT, data);
	hmac_sha256_digest(&ctx, DIGEST_BYTES, out);
}

void ping_pack(uint8_t out[PING_BYTES], const struct ping *p, const struct ping_key *key)
{
	bool report = p->flags & PING_HAS_REPORT;

	put(out, MAGIC, 4);
	out[4] = VERSION;
	out[5] = (uint8_t)p->kind;
	out[6] = p->flags;
	out[7] = p->wish;
	put(out + 8, p->stream, 8);
	put(out + 16, p->seq, 8);
	put(out + 24, report ? p->report_seq : 0, 8);
	put(out + 32, report ? (uint64_t)p->t0_ns : 0, 8);
	put(out + 40, report ? (uint64_t)p->t3_ns : 0, 8);
	digest(out + DIGEST_AT, out, key);
}

static bool fits(const struct ping *p)
{
	if (p->stream == 0 || p->seq == 0 || p->flags & ~PING_ALL_FLAGS)
		return false;
	if (p->kind != PING_ANSWER && (p->kind != PING_REQUEST || p->wish != 0))
		return false;
	if (!(p->flags & PING_HAS_REPORT))
		return !(p->flags & (PING_KERNEL_T0 | PING_KERNEL_T3)) && p->report_seq == 0 &&
		       p->t0_ns == 0 && p->t3_ns == 0;
	return p->report_seq > 0 && p->report_seq < p->seq && p->t0_ns > 0 &&
	       p->t3_ns >= p->t0_ns && p->t3_ns < PING_MAX_NS;
}

enum ping_outcome ping_parse(struct ping *ret, const void *data, size_t n_bytes)
{
	const uint8_t *in = data;
	struct ping p;

	if (n_bytes != PING_BYTES || get(in, 4) != MAGIC || in[4] != VERSION)
		return PING_MALFORMED;
	p = (struct ping){
		.kind = (enum ping_kind)in[5],
		.flags = in[6],
		.wish = in[7],
		.stream = get(in + 8, 8),
		.seq = get(in + 16, 8),
		.report_seq = get(in + 24, 8),
		.t0_ns = (int64_t)get(in + 32, 8),
		.t3_ns = (int64_t)get(in + 40, 8),
	};
	if (!fits(&p))
		return PING_MALFORMED;
	*ret = p;
	return PING_OK;
}

enum ping_outcome ping_verify(const void *data, const struct ping_key *key)
{
	uint8_t want[DIGEST_BYTES];

	digest(want, data, key);
	return memeql_sec(want, (const uint8_t *)data + DIGEST_AT, DIGEST_BYTES) ? PING_OK :
										    PING_FORGED;
}

bool ping_window_take(struct ping_window *w, uint64_t seq)
{
	uint64_t bit, ahead;

	if (seq > w->newest) {
		ahead = seq - w->newest;
		w->seen = ahead < PING_WINDOW ? w->seen << ahead | 1 : 1;
		w->newest = seq;
		return true;
	}
	if (w->newest - seq >= PING_WINDOW)
		return false;
	bit = UINT64_C(1) << (w->newest - seq);
	if (w->seen & bit)
		return false;
	w->seen |= bit;
	return true;
}
