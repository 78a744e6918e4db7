/* Any bytes: frame_open() refuses them or opens a message that packs and opens
 * again to the same bytes. Nothing is allocated by a declared size: the target
 * runs under a malloc limit (see replay.sh). */
#include "../../proto/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct frame_buf one = { 0 }, two = { 0 };
	struct frame f, g;

	if (frame_open(&f, data, n) != FRAME_OK)
		return 0;
	if (frame_pack(&one, &f) != 0 || frame_open(&g, one.data, one.n_bytes) != FRAME_OK ||
	    frame_pack(&two, &g) != 0 || one.n_bytes != two.n_bytes ||
	    memcmp(one.data, two.data, one.n_bytes) != 0)
		abort();
	frame_close(&g);
	frame_close(&f);
	frame_buf_fini(&one);
	frame_buf_fini(&two);
	return 0;
}
