/* json_repair.h - what profilers write where JSON should be, made JSON.
 *
 * Their writers print names and numbers as they are: bytes that are no UTF-8, raw control
 * characters, backslashes that escape nothing, halves of characters, NaN and infinities. The
 * event around such a thing is as true as any other, so it is not thrown away: bytes become
 * U+FFFD, control characters spaces, backslashes themselves, such numbers null.
 */
#pragma once

#include <stddef.h>

#define JSON_REPAIR_GROWS 3 /* times, at most */

/* Into out, which has room for JSON_REPAIR_GROWS times n. Returns how much it is. What is wrong
 * otherwise stays wrong. */
size_t json_repair(const char *text, size_t n, char *out);
