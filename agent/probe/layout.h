/* layout.h - how the areas of the shared file share its bytes.
 *
 * A pure function of the budget, so that every size can be tested. What a small
 * budget shrinks is the rings' depth first, their number last: a thread without
 * a ring loses everything, a short ring only bursts.
 */
#pragma once

#include "../../proto/shm.h"

#include <stdbool.h>
#include <stddef.h>

/* Fill the layout fields of *h (all others stay) for a file of at most n_bytes.
 * False when n_bytes is less than SHM_MIN_BYTES. */
bool layout_plan(size_t n_bytes, struct shm_header *h);
