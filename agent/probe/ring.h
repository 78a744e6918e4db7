/* ring.h - threads and the rings they own. Start and exit only; events are emit.h. */
#pragma once

#include <stdint.h>

/* Make the key whose destructor gives a thread's ring back; 0 or errno. */
int ring_start(void);
/* Events that came while the file was being made; reset to 0. */
uint64_t ring_take_n_early(void);
