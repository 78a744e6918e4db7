#include "repair.h"

#include <stdbool.h>

void repair_start(int64_t *slack_ns, size_t n)
{
	for (size_t i = 0; i < n * n; i++)
		slack_ns[i] = REPAIR_FREE;
}

void repair_call(int64_t *slack_ns, size_t n, const int64_t *enter_ns, const int64_t *exit_ns)
{
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++) {
			int64_t *slack = &slack_ns[a * n + b];

			if (a == b || exit_ns[a] == INT64_MIN || enter_ns[b] == INT64_MIN)
				continue;
			if (exit_ns[a] - enter_ns[b] < *slack)
				*slack = exit_ns[a] - enter_ns[b];
		}
}

/* The greatest solution that is nowhere above h. false: a circle forbids all. */
static bool lower(const int64_t *slack_ns, size_t n, int64_t *h)
{
	for (size_t round = 0; round <= n; round++) {
		bool moved = false;

		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < n; b++) {
				int64_t slack = slack_ns[a * n + b];

				if (a == b || slack >= REPAIR_MAX_NS || h[b] <= h[a] + slack)
					continue;
				h[b] = h[a] + slack;
				if (h[b] < -4 * REPAIR_MAX_NS)
					return false;
				moved = true;
			}
		if (!moved)
			return true;
	}
	return false;
}

/* The least solution that is nowhere below h. */
static bool raise(const int64_t *slack_ns, size_t n, int64_t *h)
{
	for (size_t round = 0; round <= n; round++) {
		bool moved = false;

		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < n; b++) {
				int64_t slack = slack_ns[a * n + b];

				if (a == b || slack >= REPAIR_MAX_NS || h[a] >= h[b] - slack)
					continue;
				h[a] = h[b] - slack;
				if (h[a] > 4 * REPAIR_MAX_NS)
					return false;
				moved = true;
			}
		if (!moved)
			return true;
	}
	return false;
}

static bool is_in_order(const int64_t *slack_ns, size_t n)
{
	for (size_t i = 0; i < n * n; i++)
		if (slack_ns[i] < 0 && i / n != i % n)
			return false;
	return true;
}

/* Solutions of difference constraints are closed under min, max and the mean, and
 * a mean rounded down stays one. So: the greatest one below nothing and the least
 * one above nothing, each brought inside the bars, and their mean. */
enum repair_outcome repair(const int64_t *slack_ns, size_t n, const int64_t *soft_ns,
			   int64_t *scratch, int64_t *ret_shift_ns)
{
	int64_t *most = scratch, *least = scratch + n, *down = scratch + 2 * n,
		*up = scratch + 3 * n;

	for (size_t i = 0; i < n; i++) {
		most[i] = soft_ns[i] < REPAIR_MAX_NS ? soft_ns[i] : REPAIR_MAX_NS;
		least[i] = -most[i];
		ret_shift_ns[i] = down[i] = up[i] = 0;
	}
	if (is_in_order(slack_ns, n))
		return REPAIR_NOT_NEEDED;
	if (!lower(slack_ns, n, most) || !raise(slack_ns, n, least) || !lower(slack_ns, n, down) ||
	    !raise(slack_ns, n, up))
		return REPAIR_IMPOSSIBLE;
	for (size_t i = 0; i < n; i++) {
		int64_t bar = soft_ns[i] < REPAIR_MAX_NS ? soft_ns[i] : REPAIR_MAX_NS;

		if (most[i] < -bar || least[i] > bar)
			return REPAIR_IMPOSSIBLE;
	}
	for (size_t i = 0; i < n; i++) {
		int64_t a = down[i] > least[i] ? down[i] : least[i];
		int64_t b = up[i] < most[i] ? up[i] : most[i];

		ret_shift_ns[i] = (a + b) >> 1;
	}
	return REPAIR_DONE;
}
