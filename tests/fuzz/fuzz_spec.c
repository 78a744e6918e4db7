/* Any bytes as a case: spec_parse() refuses them with a sentence, or gives a case
 * whose play keeps its promises: hosts and streams are in order, a collective
 * ends at once on all its ranks and not before the last of them began, and what
 * the probes say is in order of time with names that exist. */
#include "../../sim/tale.h"

#include "../../proto/shm.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES 4096

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

static void check_order(const struct play *p, uint32_t rank)
{
	int64_t *stream_ns = calloc(p->spec->n_streams, sizeof *stream_ns), host_ns = 0;

	CHECK(stream_ns);
	for (uint32_t i = p->first_node[rank]; i < p->first_node[rank + 1]; i++) {
		const struct play_node *n = &p->nodes[i];
		bool device = play_is_device((enum play_kind)n->kind);
		int64_t *before_ns = device ? &stream_ns[n->stream] : &host_ns;

		CHECK(n->rank == rank && n->start_ns >= 0 && n->end_ns >= n->start_ns);
		CHECK(n->start_ns >= *before_ns);
		CHECK(n->start_ns != PLAY_NEVER || n->end_ns == PLAY_NEVER);
		*before_ns = n->end_ns;
	}
	free(stream_ns);
}

static void check_calls(const struct play *p)
{
	for (uint32_t i = 0; i < p->n_nodes; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct play_node *a = &p->nodes[i], *b = &p->nodes[k];

			if (a->kind != PLAY_COLL || b->kind != PLAY_COLL || a->group != b->group ||
			    a->call != b->call)
				continue;
			CHECK(a->rank != b->rank && a->end_ns == b->end_ns);
			CHECK(a->end_ns >= b->start_ns);
		}
}

static void check_tale(const struct play *p, uint32_t rank)
{
	struct tale t;

	CHECK(tale_tell(&t, p, rank) == 0);
	for (unsigned ring = 0; ring < TALE_RINGS; ring++)
		for (size_t i = 0; i < t.n_events[ring]; i++) {
			const struct event *ev = &t.events[ring][i];

			CHECK(event_kind_is_known(ev->kind) && ev->name <= t.n_names);
			CHECK(ev->tick <= (uint64_t)PLAY_MAX_NS);
			CHECK(i == 0 || ev->tick >= ev[-1].tick);
		}
	for (size_t i = 0; i < t.n_texts; i++) {
		CHECK(strlen(t.texts[i].text) <= SHM_MAX_TEXT);
		CHECK(i == 0 || t.texts[i].at_ns >= t.texts[i - 1].at_ns);
	}
	for (uint32_t i = 0; i < t.n_names; i++)
		CHECK(t.names[i][0] && strlen(t.names[i]) <= SHM_MAX_STRING);
	tale_fini(&t);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	char why[400] = "";
	struct spec *s;
	struct play *p;
	int r = spec_parse(&s, (const char *)data, n, why, sizeof why);

	if (r != SPEC_OK) {
		CHECK(r == SPEC_REFUSED && why[0] && memchr(why, '\0', sizeof why));
		return 0;
	}
	if (n % 2)
		spec_add_noise(s, 0.5, n);
	r = play_run(&p, s, MAX_NODES, why, sizeof why);
	if (r == PLAY_OK) {
		for (uint32_t rank = 0; rank < s->world; rank++)
			check_order(p, rank);
		for (uint32_t rank = 0; rank < s->world && rank < 16; rank++)
			check_tale(p, rank);
		if (p->n_nodes < 500)
			check_calls(p);
		play_free(p);
	} else {
		CHECK(r == PLAY_REFUSED && why[0]);
	}
	spec_free(s);
	return 0;
}
