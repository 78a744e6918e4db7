/* evidence.h - closed collectives become evidence about the hosts' clocks.
 *
 * Sits behind match: what every member entered and left goes to pairs, with what
 * its operation proves. A host is a node, whatever number of ranks it has. Probes'
 * bounds come from whoever estimates them.
 */
#pragma once

#include "match.h"
#include "../align/pairs.h"

struct evidence;

/* 0 or negative errno. */
int evidence_new(struct evidence **ret, const struct roster *r);
void evidence_free(struct evidence *e); /* NULL is fine */

/* For match.closed, with the evidence as its argument. 0 or negative errno. */
int evidence_closed(void *evidence, const struct match *m, uint32_t group, const struct coll *c);

/* host: index in the roster. */
int evidence_probe(struct evidence *e, uint32_t host, const struct pairs_probe *k);
void evidence_step(struct evidence *e, uint32_t host);
/* host i = host j + offset at fleet time t. 0, or PAIRS_REFUSED for a host that
 * neither a probe nor a collective has named. */
int evidence_ask(const struct evidence *e, uint32_t i, uint32_t j, int64_t t_ns,
		 struct pairs_answer *ret);

/* Called for each contradiction, group is match's. */
void evidence_on_proof(struct evidence *e,
		       void (*told)(void *arg, uint32_t group, const struct pairs_proof *), void *arg);
