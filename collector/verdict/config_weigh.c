/* config_weigh.c - which versions, settings and properties of devices count, by the names that
 * libraries and operating systems gave them. */
#include "config.h"
#include "words.h"

#include <string.h>

static bool has_any(const char *text, const char *const *v)
{
	for (; *v; v++)
		if (words_has(text, *v))
			return true;
	return false;
}

static bool begins_any(const char *text, const char *const *v)
{
	for (; *v; v++)
		if (strncmp(text, *v, strlen(*v)) == 0)
			return true;
	return false;
}

/* What speaks on the wire comes first; what only computes cannot hold up a start. */
static struct config_weight of_version(const char *field)
{
	static const char *const by_order[][7] = {
		{ "nccl", "rccl", "hccl", NULL },
		{ "ofi", "plugin", "ucx", "mpi", "fabric", "gloo", NULL },
		{ "torch", "jax", "tensorflow", NULL },
		{ "cuda", "hip", "rocm", NULL },
		{ "driver", "firmware", "ofed", NULL },
	};
	static const char *const no_version[] = { "loaded_from", "path", "host", "_dir", "file", NULL };

	if (has_any(field, no_version))
		return (struct config_weight){ .order = 255 };
	for (uint8_t i = 0; i < sizeof by_order / sizeof *by_order; i++)
		if (has_any(field, by_order[i]))
			return (struct config_weight){ i, true, true };
	return (struct config_weight){ .order = 10 };
}

/* What is each rank's or each host's own by its nature, and what only changes what is
 * logged, is not compared. */
static struct config_weight of_setting(const char *field)
{
	static const char *const own[] = {
		"TORCHELASTIC_", "NCCL_DEBUG", "OMP_PLACES", "OMP_DISPLAY", NULL
	};
	static const char *const own_parts[] = {
		"RANK", "IFNAME", "HCA", "HOST", "COMM_ID", "ADDR", "PORT", "_FILE", "_DIR", "_PATH",
		"_HOME", "CACHE", "LOG", "DEVICES", "AFFINITY", "PREFIX", NULL
	};
	static const char *const wire[] = { "NCCL_", "TORCH_", "GLOO_", "FI_", "UCX_", NULL };
	static const char *const compute[] = {
		"OMP_", "MKL_", "OPENBLAS_", "PYTORCH_", "TORCH", "CUDA_", "CUBLAS", "PYTHONHASHSEED", NULL
	};

	if (begins_any(field, own) || has_any(field, own_parts))
		return (struct config_weight){ .order = 255 };
	if (begins_any(field, wire))
		return (struct config_weight){ field[0] == 'N' ? 0 : 1, true, true };
	if (begins_any(field, compute))
		return (struct config_weight){ 2, false, true };
	return (struct config_weight){ .order = 255 };
}

static struct config_weight of_device(const char *field)
{
	static const char *const own[] = {
		"uuid", "serial", "index", "addr", "allowed", "bus_id", "local", "host", NULL
	};
	static const char *const by_order[][6] = {
		{ "gpu", "model", "name", NULL },
		{ "memory", "cores", "sm_count", "multiprocessor", NULL },
		{ "width", "speed", "link", "gen", NULL },
		{ "cpu", NULL },
	};

	if (has_any(field, own))
		return (struct config_weight){ .order = 255 };
	for (uint8_t i = 0; i < sizeof by_order / sizeof *by_order; i++)
		if (has_any(field, by_order[i]))
			return (struct config_weight){ i, false, true };
	return (struct config_weight){ .order = 255 };
}

struct config_weight config_weigh(enum config_what what, const char *field)
{
	switch (what) {
	case CONFIG_VERSION:
		return of_version(field);
	case CONFIG_SETTING:
		return of_setting(field);
	case CONFIG_DEVICE:
		return of_device(field);
	case CONFIG_N:
		break;
	}
	return (struct config_weight){ .order = 255 };
}
