/* start.h - what the rules about start-up share: has this life come to a stand
 * before anybody called anything, and which records are of it? */
#pragma once

#include "rules.h"

#define START_FIXED_NS INT64_C(10000000000) /* of differences that do not mend by themselves */
#define START_RETRY_NS INT64_C(30000000000) /* of failures that are tried again */

/* Nobody of this life has called a collective, nothing new was said for so long
 * and no cause is told yet. */
bool start_hangs(const struct rules *r, int64_t silent_ns);
/* Record i is of that kind and of this life. */
bool start_record(const struct rules *r, size_t i, enum side_kind kind);
/* The same process says the same kind again later: the last word counts. */
bool start_is_repeated(const struct rules *r, size_t i);
int32_t start_rank(const struct rules *r, size_t i);
/* The host that the record names, or that its process is on; "" unknown. */
const char *start_host(const struct rules *r, size_t i);
/* Where that rank of this life runs; NULL unknown. */
const char *start_host_of_rank(const struct rules *r, int64_t rank);
