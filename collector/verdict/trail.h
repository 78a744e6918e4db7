/* trail.h - which work of a rank lies between two of its calls? */
#pragma once

#include "ledger.h"

/* The first work that `theirs` launched between two calls of the group and `mine` did
 * not, although it had launched it before; 0 when there is none or the trails do
 * not reach so far back. Returns the roster's text + 1. */
uint32_t trail_left_out(const struct ledger_proc *mine, const struct ledger_proc *theirs,
			uint32_t group, uint64_t from, uint64_t to);
