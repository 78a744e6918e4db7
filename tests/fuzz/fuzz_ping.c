/* Any bytes: ping_parse() refuses them, or takes 64 whose packing under any key
 * parses to the same fields and carries that key's digest and no other's. */
#include "../../proto/ping.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	static const struct ping_key one = { { 1 } }, two = { { 2 } };
	uint8_t packed[PING_BYTES];
	struct ping p, q;

	if (ping_parse(&p, data, n) != PING_OK)
		return 0;
	if (n != PING_BYTES)
		abort();
	ping_pack(packed, &p, &one);
	if (ping_parse(&q, packed, sizeof packed) != PING_OK || p.kind != q.kind ||
	    p.flags != q.flags || p.wish != q.wish || p.stream != q.stream || p.seq != q.seq ||
	    p.report_seq != q.report_seq || p.t0_ns != q.t0_ns || p.t3_ns != q.t3_ns)
		abort();
	/* One form for each meaning: what was taken is what would be sent. */
	if (memcmp(packed, data, 48) != 0 || ping_verify(packed, &one) != PING_OK ||
	    ping_verify(packed, &two) == PING_OK)
		abort();
	return 0;
}
