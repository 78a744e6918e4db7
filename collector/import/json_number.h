/* json_number.h - decimal texts as integers: exact, where a double would not be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal number times 10^power, rounded half away from zero. False when it is no number or
 * does not fit. */
bool json_integer_of(const char *text, size_t n, int power, int64_t *ret);
