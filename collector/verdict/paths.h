/* paths.h - by what ranks reach each other, as records tell it.
 *
 * Made anew from the side records when there are new ones. Everything may be
 * missing: a rule asks and takes NULL, 0 or false for "nobody said".
 */
#pragma once

#include "side.h"
#include "../match/match.h"

struct path_link { /* topo.link: one end's word */
	uint32_t proc;
	const char *kind;
	int64_t peer; /* -1 = none, or not a number */
	double width, speed, gbs; /* bytes a ns of it; 0 = not known */
	uint32_t next; /* of the same process; index + 1 */
};

struct path_port { /* ib.port */
	uint32_t proc, host;
	const char *dev, *state;
	double gbs;
};

struct path_pci { /* host.pci */
	bool said, detour; /* peer traffic goes through the root complex */
	const char *host;  /* as the record names it; NULL = the process's own */
	const char *acs, *iommu;
};

struct path_proc {
	const char *nic, *dist; /* topo.gpu_nic */
	uint32_t links; /* index + 1 */
	struct path_pci pci; /* of a host that only its word knows of */
};

struct paths {
	struct path_proc *procs;
	struct path_pci *hosts;
	struct path_link *links;
	struct path_port *ports;
	uint32_t *proc_of_rank; /* index + 1 of the newest process; by rank */
	uint32_t n_procs, n_hosts, n_ranks;
	size_t n_links, n_links_alloc, n_ports, n_ports_alloc;
	size_t n_records; /* of which it was made */
};

void paths_fini(struct paths *p);
/* 0 or -ENOMEM. */
int paths_look(struct paths *p, const struct side *s, const struct roster *r);

/* The process of a rank, by index; UINT32_MAX = unknown. */
uint32_t paths_proc(const struct paths *p, int32_t rank);
/* How many processes of this host say that they use it. */
uint32_t paths_n_users(const struct paths *p, const struct roster *r, uint32_t host, const char *nic);
/* What is known of the PCI bridges below this process. */
const struct path_pci *paths_pci(const struct paths *p, const struct roster *r, uint32_t proc);
/* Medians of all that was said; 0 = nobody did. */
double paths_inside_gbs(const struct paths *p);
double paths_between_gbs(const struct paths *p);
