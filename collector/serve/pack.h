/* pack.h - gzip for the way out: the fastest level, since the network is near. */
#pragma once

#include <stddef.h>

/* A gzip file in memory of the caller (free). 0 or -ENOMEM. */
int pack_gzip(const void *data, size_t n, unsigned char **ret, size_t *ret_n);
