/* say.h - what the agent tells a person: one line to stderr, never a flood. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void say_quiet(bool quiet); /* only say_fatal() is heard */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One line each `every` of this place; the next one says how many were held
 * back. A zeroed one is fine. */
struct say_limit {
	int64_t last_ns;
	uint64_t n_held;
};
void say_limited(struct say_limit *l, int64_t now_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
