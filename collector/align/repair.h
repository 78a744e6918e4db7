/* repair.h - an order of events that can have been, for display.
 *
 * Even with good clocks an exit may be drawn before the entry that it waited for,
 * by less than the soft error. A picture may move each host inside its soft error
 * so that every "before" holds, those that are in the way and no others, half
 * from either side. Where that is impossible nothing is moved and the caller
 * flags it. Never stored: facts keep the times and their errors.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define REPAIR_FREE INT64_MAX
#define REPAIR_MAX_NS (INT64_C(1) << 50) /* larger slack is none, larger softness as much */

enum repair_outcome {
	REPAIR_NOT_NEEDED = 0,
	REPAIR_DONE,
	REPAIR_IMPOSSIBLE, /* shifts are 0 */
};

/* slack_ns[a * n + b]: by how much b may move against a; below 0 it must move
 * back. All start as REPAIR_FREE. */
void repair_start(int64_t *slack_ns, size_t n);
/* Placed on one time line: b entered before a left, for all a, b. INT64_MIN: not seen. */
void repair_call(int64_t *slack_ns, size_t n, const int64_t *enter_ns, const int64_t *exit_ns);

/* soft_ns: most that each may move, either way. scratch: 4 n values. */
enum repair_outcome repair(const int64_t *slack_ns, size_t n, const int64_t *soft_ns,
			   int64_t *scratch, int64_t *ret_shift_ns);
