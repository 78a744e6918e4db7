/* rank_name.h - the rank of a file that only its name tells. */
#pragma once

#include <stdint.h>

/* "rank-34.…", "kineto_ddp_rank0.json", "worker4_step_12…", "rank_3/trace.json": the
 * file's own name first, then its folders'. -1 where no name says it, or says two. A
 * rank within something ("local_rank_1", "tp_rank0") is not the job's. */
int64_t rank_of_path(const char *path);
