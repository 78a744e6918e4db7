/* messages.h - sends and receives: how far each side of each direction has come.
 *
 * A message is in a group of its own ("… p2p SOURCE>TARGET", event.h). The k-th send
 * meets the k-th receive, so a direction is four counts. Both sides' ranks are in
 * the name; a name that does not end like this is no message of ours.
 */
#pragma once

#include "../idmap.h"
#include "../align/roster.h"

struct direction {
	uint32_t life;
	int32_t ranks[2];    /* source, target */
	uint64_t n_begun[2], n_ended[2]; /* behind the last send, receive */
	int64_t news_now_ns;
};

struct messages {
	struct direction *v;
	uint32_t n, n_alloc;
	struct idmap of_text;
};

void messages_fini(struct messages *m);
/* A BEGIN or END of a send or receive. 0 or -ENOMEM. */
int messages_event(struct messages *m, const struct roster *r, const struct proc *p,
		   const struct event *ev, int64_t now_ns);
/* The side (0 source, 1 target) that is in a message which the other has not come to;
 * -1 = neither. */
int messages_waiting(const struct direction *d);
