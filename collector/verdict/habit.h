/* habit.h - what a group's own past makes of a call: its calls repeat themselves.
 *
 * Of all periods it is the one that holds longest without a gap: a step in which two
 * sizes take turns at the end has a short period there, and a longer one as a whole.
 */
#pragma once

#include "ledger.h"

#define HABIT_MAX_PERIOD 64

/* What the calls before `call` lead to expect at `at` >= call. False when they have no
 * period, or it is not remembered. */
bool habit_expects(const struct page *p, uint64_t call, uint64_t at, struct shape *ret);
