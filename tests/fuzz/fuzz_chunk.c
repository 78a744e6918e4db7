/* Any bytes: chunk_decode() refuses them or gives events that encode and decode
 * to themselves, within the head's bounds. */
#include "../../proto/chunk.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	static struct event ev[CHUNK_MAX_EVENTS], again[CHUNK_MAX_EVENTS];
	static unsigned char buf[CHUNK_MAX_BYTES(CHUNK_MAX_EVENTS)];
	struct chunk_info info;
	size_t n_ev, n_again, n_bytes;

	if (chunk_decode(data, n, ev, CHUNK_MAX_EVENTS, &n_ev) != CHUNK_OK)
		return 0;
	n_bytes = chunk_encode(ev, n_ev, buf);
	if (chunk_peek(data, n, &info) != CHUNK_OK || info.n_events != n_ev ||
	    chunk_decode(buf, n_bytes, again, CHUNK_MAX_EVENTS, &n_again) != CHUNK_OK ||
	    n_again != n_ev || memcmp(ev, again, n_ev * sizeof *ev) != 0)
		abort();
	for (size_t i = 0; i < n_ev; i++) {
		if ((int64_t)ev[i].tick < info.t_min_ns || (int64_t)ev[i].tick > info.t_max_ns)
			abort();
	}
	return 0;
}
