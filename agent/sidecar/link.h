/* link.h - requests to the collector and their answers, on two channels.
 *
 * All that the rest of the agent knows of the transport. Another one replaces
 * this file: ask, get told on a descriptor, take the answer. An answered
 * request is answered once; an unanswered one is asked again by the transport
 * until it is, over new connections too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum link_channel {
	LINK_CONTROL, /* one request at a time; times out */
	LINK_DATA,    /* n_window requests at a time; waits as long as it takes */
	LINK_N_CHANNELS,
};

#define LINK_MAX_WINDOW 8

struct link_answer {
	enum link_channel channel;
	uint64_t tag;  /* of the request */
	int result;    /* 0, -ETIMEDOUT (nobody there) or -EIO */
	int64_t at_ns; /* RAW, when it arrived */
	void *data;
	size_t n_bytes;
};

struct link;

/* -EINVAL: a URL that the transport cannot use; -EIO: it does not start. The
 * peer need not be there. */
int link_open(struct link **ret, const char *control_url, const char *data_url, unsigned n_window);
void link_close(struct link *l); /* from the thread that opened; NULL is fine */

/* To be called now and then: NNG 1.5.2 was seen to stop trying, for ever, after a
 * connection was lost, so one that stays away is dialled anew. Returns how many were. */
unsigned link_tend(struct link *l, int64_t now_ns);
/* Copies data. 0, -EBUSY while all its requests are out, -ENOMEM. */
int link_ask(struct link *l, enum link_channel c, uint64_t tag, const void *data, size_t n_bytes);
int link_fd(const struct link *l); /* readable: there are answers */
/* The next answer, to be freed by link_answer_free(); false = none. */
bool link_next(struct link *l, struct link_answer *ret);
void link_answer_free(struct link_answer *a);
bool link_connected(struct link *l, enum link_channel c);
/* Whom the control channel was last connected to; false: to nobody with an
 * internet address. */
struct sockaddr_storage;
bool link_peer(struct link *l, struct sockaddr_storage *ret);
