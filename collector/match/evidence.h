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
/* What the host's clock says at t, which is now; taken once a second. 0 or negative errno. */
int evidence_clock(struct evidence *e, uint32_t host, host_time t, fleet_time now);
/* Hosts of which nothing was heard lately: their clocks are asked all the same. */
int evidence_tick(struct evidence *e, fleet_time now);

/* host i = host j + offset at fleet time t. 0, or PAIRS_REFUSED for a host that
 * neither a probe nor a collective has named. */
int evidence_ask(const struct evidence *e, uint32_t i, uint32_t j, int64_t t_ns,
		 struct pairs_answer *ret);
/* An instant of host i less one of host j. PAIRS_REFUSED where nothing is known, and
 * for instants before the last step of either clock. */
int evidence_between(const struct evidence *e, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		     struct pairs_answer *ret);
/* What to add to the host's offset around t so that all hosts are placed as exits
 * have them, with the collector's own host where it is. Inside the clock's bounds. */
int64_t evidence_shift(const struct evidence *e, uint32_t host, host_time t, int64_t offset_ns);

/* Communicators of match that are believed no more since the last look, and those
 * that are again. 0, negative errno, or what tell returned below 0. */
int evidence_look(struct evidence *e,
		  int (*tell)(void *arg, uint32_t group, bool lifted, const struct pairs_proof *),
		  void *arg);

/* What is new of it as facts: contradictions, and every few seconds each host against
 * the reference. 0 or -ENOMEM. */
int evidence_tell(struct evidence *e, int64_t now_ns, struct facts *facts);
