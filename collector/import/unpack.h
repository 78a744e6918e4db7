/* unpack.h - what gzip, xz, zstd or bzip2 packed, piece by piece.
 *
 * gzip is zlib's here, since what comes out has to be checked against its sum; the others are
 * libarchive's, whose libraries do that.
 */
#pragma once

#include "format.h"

struct unpack;

/* Is something packed that begins so? */
bool unpack_is_packed(const unsigned char *head, size_t n);
/* raw gives its bytes from the begin. NULL without memory. */
struct unpack *unpack_new(const unsigned char *head, size_t n, bytes_fn raw, void *arg);
void unpack_free(struct unpack *u); /* NULL is fine */
/* Below 0: damaged, or cut off. */
ptrdiff_t unpack_read(struct unpack *u, unsigned char *out, size_t n);
