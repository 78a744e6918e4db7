/* guard.h - touching a file that someone else may cut short.
 *
 * A page of a mapping beyond the end of its file raises SIGBUS. Inside
 * guarded() that ends the call instead of the program. fn may only copy: it
 * must hold no lock and own nothing when it is left halfway.
 */
#pragma once

#include <stdbool.h>

void guard_init(void);
bool guarded(void (*fn)(void *arg), void *arg); /* false = it was cut short */
