/* peers.c - the two ends of a message's channel, by the name that both give it:
 * "… p2p SOURCE>TARGET" (proto/event.h).
 */
#include "graph_internal.h"

#include <stdio.h>
#include <string.h>

enum { UNPARSED = 0, SAYS_NOTHING = -1 }; /* of source + 1, so that zeroed is unparsed */

static void parse(const char *name, struct channel *c)
{
	const char *at = strrchr(name, ' ');
	int n = 0, source, target;

	c->source = SAYS_NOTHING;
	if (!at || sscanf(at, " %9d>%9d%n", &source, &target, &n) != 2 || at[n] != '\0' ||
	    source < 0 || target < 0 || source >= FACT_MAX_RANKS || target >= FACT_MAX_RANKS)
		return;
	c->source = source + 1;
	c->target = target + 1;
}

int32_t graph_message_peer(struct graph *g, uint32_t group, int32_t rank)
{
	uint32_t text = group & ~GRAPH_MESSAGE;
	struct channel *c;

	if (text == 0 || text > g->roster->n_texts)
		return -1;
	if (text >= g->n_channels) {
		uint32_t n = g->roster->n_texts + 1;
		struct channel *grown = realloc(g->channels, n * sizeof *grown);

		if (!grown)
			return -1;
		memset(grown + g->n_channels, 0, (n - g->n_channels) * sizeof *grown);
		g->channels = grown;
		g->n_channels = n;
	}
	c = &g->channels[text];
	if (c->source == UNPARSED)
		parse(g->roster->texts[text - 1], c);
	if (c->source == SAYS_NOTHING)
		return -1;
	return c->source - 1 == rank ? c->target - 1 : c->source - 1;
}
