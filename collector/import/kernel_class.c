#include "kernel_class.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static bool starts(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), k = strlen(with);

	return n >= k && strcasecmp(text + n - k, with) == 0;
}

static bool has(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

static bool is_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasecmp(text, *words) == 0)
			return true;
	return false;
}

/* ---- the host's side ---- */

/* "nccl:all_reduce": what a backend of torch.distributed calls a collective. */
static bool is_note(const char *name)
{
	static const char *const backends[] = { "nccl:", "rccl:", "hccl:", "xccl:", "ccl:", "ucc:", NULL };

	for (size_t i = 0; backends[i]; i++)
		if (starts(name, backends[i]))
			return true;
	return false;
}

static bool is_host_call(const char *name)
{
	return starts(name, "gloo:") || starts(name, "mpi:");
}

static bool is_annotation(const char *category)
{
	return strcasecmp(category, "user_annotation") == 0;
}

static enum profile_role role_on_host(const char *category, const char *name)
{
	/* Most events are the host's operators, and "aten::…". */
	if (!strchr("pPnNrRhHxXcCuUgGmM", name[0]))
		return is_annotation(category) ? ROLE_RANGE : ROLE_NONE;
	if (starts(name, "ProfilerStep#"))
		return ROLE_STEP;
	if (is_note(name))
		return ROLE_NOTE;
	if (is_host_call(name))
		return ROLE_HOST_CALL;
	if (strcmp(name, "record_param_comms") == 0)
		return ROLE_PARAMS;
	return is_annotation(category) ? ROLE_RANGE : ROLE_NONE;
}

/* ---- the device's side ---- */

bool kernel_is_copy(const char *category)
{
	return ends(category, "memcpy") || ends(category, "memset");
}

/* Beside "kernel" the words of accelerators that are no GPU: MTIA's and Gaudi's. */
static bool is_work(const char *category)
{
	static const char *const words[] = { "kernel", "concurrent_kernel", "mtia_ccp_events", "hpu_op",
					     "collective_comm", NULL };

	return is_any(category, words) || kernel_is_copy(category);
}

/* cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, mtia_runtime, privateuse1_driver;
 * long ago "Runtime". */
static bool is_runtime(const char *category)
{
	return ends(category, "runtime") || ends(category, "driver");
}

enum profile_role profile_role(const char *category, const char *name)
{
	if (strcmp(category, "cpu_op") == 0)
		return role_on_host(category, name);
	if (is_work(category))
		return ROLE_WORK;
	if (is_runtime(category))
		return has(name, "Synchronize") ? ROLE_WAIT : ROLE_LAUNCH;
	if (starts(category, "gpu_") || starts(category, "mtia_"))
		return ends(category, "user_annotation") ? ROLE_DEVICE_RANGE : ROLE_NONE;
	return role_on_host(category, name);
}

/* ---- kernels ---- */

bool kernel_is_call(const char *name)
{
	return starts(name, "nccl") || starts(name, "rccl") || starts(name, "hccl") || has(name, "ncclKernel") ||
	       has(name, "ncclDevKernel") || has(name, "rcclKernel") || has(name, "oneccl") ||
	       starts(name, "msccl");
}

/* Kernels of the programs' own all-reduces, and of the exchanges of experts. */
static bool is_communication(const char *name)
{
	static const char *const parts[] = {
		"deep_ep::", "nvshmem", "rocshmem", "cross_device_reduce", "one_shot_all_reduce",
		"two_shot_all_reduce", "multimem_all_reduce", "allreduce_fusion_kernel", "quickreduce",
	};

	if (kernel_is_call(name))
		return true;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (has(name, parts[i]))
			return true;
	return false;
}

static bool is_memory(const char *name)
{
	static const char *const begins[] = { "Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma",
					      "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice",
					      "FillBuffer" };

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (starts(name, begins[i]))
			return true;
	return false;
}

static bool is_mark(const char *name)
{
	static const char *const marks[] = { "Context Sync", "Event Sync", "Stream Sync", "Stream Wait Event",
					     "Context Synchronize", "Stream Synchronize", "Event Synchronize",
					     "Event Record", "cudaEventRecord", "hipEventRecord",
					     "cudaLaunchKernel", "hipLaunchKernel", NULL };

	return is_any(name, marks);
}

unsigned kernel_class(const char *name)
{
	if (is_mark(name))
		return 0;
	if (is_communication(name))
		return CLASS_COMMUNICATION;
	return is_memory(name) ? CLASS_MEMORY : CLASS_COMPUTE;
}
