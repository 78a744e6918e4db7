#include "pack.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

int pack_gzip(const void *data, size_t n, unsigned char **ret, size_t *ret_n)
{
	z_stream z = { 0 };
	unsigned char *out;
	size_t room;

	if (n > UINT_MAX / 2)
		return -ENOMEM;
	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&z, (uLong)n);
	out = malloc(room);
	if (!out) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (z_const Bytef *)data;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
		deflateEnd(&z);
		free(out);
		return -ENOMEM;
	}
	*ret = out;
	*ret_n = room - z.avail_out;
	deflateEnd(&z);
	return 0;
}
