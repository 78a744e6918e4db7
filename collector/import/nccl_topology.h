/* nccl_topology.h - NCCL's view of a machine (NCCL_TOPO_DUMP_FILE) and the channels that it
 * laid over it (NCCL_GRAPH_DUMP_FILE): both XML, read by expat.
 *
 * Such a file declares no document type and no entities; one that does is refused, so
 * nothing in it can grow.
 */
#pragma once

#include "nccl.h"

#define TOPOLOGY_MAX_BYTES (64u << 20)
#define TOPOLOGY_MAX_DEPTH 64
#define TOPOLOGY_MAX_DEVICES 4096
#define TOPOLOGY_MAX_STOPS 200000 /* devices of all channels of a graph file */

struct topology_device { /* of PCI, or a card that is none */
	char bus[40], name[64], above[40]; /* above: what it hangs on */
	char host[NCCL_HOST];
	int32_t parent; /* index; -1 = a CPU */
	uint32_t cpu, depth;
	int64_t numa;
	bool is_gpu, is_card;
	double speed_gts; /* NaN = not told */
	int64_t width;
	int64_t device, rank, sm, gdr, port, speed_mbps, n_nvlinks; /* TRACE_NULL = not told */
};

struct topology {
	struct trace *trace;
	char file[256];
	struct topology_device *v;
	uint32_t n, n_cpus;
	bool is_graph, full;
};

bool topology_put(struct topology *t);
/* The records of topologies that are of all ranks. */
bool topology_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
