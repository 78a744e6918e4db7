/* stamp.h - when did the kernel send or receive a packet, on CLOCK_MONOTONIC_RAW?
 *
 * The kernel stamps packets in CLOCK_REALTIME, which people and daemons step and
 * slew. So a stamp counts only between two brackets (RAW read before and after
 * REALTIME) that agree about how the two clocks run, and its error is stated.
 *
 * Arithmetic here is pure; stamp_bracket_now() is the only clock, the functions
 * at the end the only system calls: agent and collector stamp alike.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msghdr;

/* REALTIME showed real_ns when RAW showed raw_ns, give or take half_ns. */
struct stamp_bracket {
	int64_t raw_ns, real_ns, half_ns;
};

#define STAMP_N_TRIES 5
#define STAMP_MAX_BEND_NS 1000 /* brackets further apart than that do not agree */
#define STAMP_N_BRACKETS 16

/* The newest brackets, and how fast REALTIME runs against RAW. */
struct stamp_line {
	struct stamp_bracket v[STAMP_N_BRACKETS]; /* a ring */
	unsigned n, next;
	struct stamp_bracket anchor; /* an older one, for the rate */
	double rate;		     /* d(REALTIME - RAW) / d RAW */
	bool has_rate;
};

enum stamp_outcome {
	STAMP_OK = 0,
	STAMP_NO_BRACKET, /* older than the brackets that are kept, or newer */
	STAMP_UNSURE,	  /* REALTIME was stepped or slewed around it */
};

void stamp_add(struct stamp_line *l, const struct stamp_bracket *b);
/* ret_raw_ns is off by ret_err_ns at most. */
enum stamp_outcome stamp_to_raw(const struct stamp_line *l, int64_t real_ns, int64_t *ret_raw_ns,
				int64_t *ret_err_ns);

/* The shortest of STAMP_N_TRIES. */
struct stamp_bracket stamp_bracket_now(void);
/* When a packet with that stamp came, on RAW and not too early: the kernel's word, or
 * now_ns without one. 0: the wall clock was moved around it. Adds a bracket where it
 * came after the last. */
int64_t stamp_received(struct stamp_line *l, int64_t real_ns, int64_t now_ns, bool *ret_kernel);

/* Ask the kernel for stamps on this UDP socket and for its place at the front of
 * the sender's queues. False: it has none; the caller's own times are used. */
bool stamp_enable(int fd);
/* The count of sent packets, from which stamps get their number, begins at 0 again. */
void stamp_restart(int fd);

#define STAMP_CONTROL_BYTES 256
/* REALTIME ns of the kernel's software stamp beside a received message; 0 = none. */
int64_t stamp_of(struct msghdr *m);
/* The next stamp of a sent packet: which one since stamp_restart(), and when.
 * False = none is waiting. */
bool stamp_sent(int fd, uint32_t *ret_number, int64_t *ret_real_ns);
