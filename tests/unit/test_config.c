/* Which versions, settings and properties of devices are compared: what live probes tell must not differ
 * between ranks of a healthy job. */
#include "unit.h"

#include "../../collector/verdict/config.h"

static void what_is_a_ranks_or_a_hosts_own_is_not_compared(void **state)
{
	static const struct {
		enum config_what what;
		const char *field;
	} own[] = {
		{ CONFIG_SETTING, "RANK" }, { CONFIG_SETTING, "LOCAL_RANK" },
		{ CONFIG_SETTING, "GROUP_RANK" }, { CONFIG_SETTING, "WORLD_SIZE" },
		{ CONFIG_SETTING, "CUDA_VISIBLE_DEVICES" }, { CONFIG_SETTING, "NVIDIA_VISIBLE_DEVICES" },
		{ CONFIG_SETTING, "MASTER_ADDR" }, { CONFIG_SETTING, "MASTER_PORT" },
		{ CONFIG_SETTING, "NCCL_SOCKET_IFNAME" }, { CONFIG_SETTING, "GLOO_SOCKET_IFNAME" },
		{ CONFIG_SETTING, "TP_SOCKET_IFNAME" }, { CONFIG_SETTING, "NCCL_IB_HCA" },
		{ CONFIG_SETTING, "UCX_NET_DEVICES" }, { CONFIG_SETTING, "NCCL_COMM_ID" },
		{ CONFIG_SETTING, "NCCL_HOSTID" }, { CONFIG_SETTING, "NCCL_TOPO_FILE" },
		{ CONFIG_SETTING, "TORCHELASTIC_ERROR_FILE" }, { CONFIG_SETTING, "TORCHELASTIC_RUN_ID" },
		{ CONFIG_SETTING, "TORCH_HOME" }, { CONFIG_SETTING, "TORCHINDUCTOR_CACHE_DIR" },
		{ CONFIG_SETTING, "NCCL_DEBUG" }, { CONFIG_SETTING, "NCCL_DEBUG_SUBSYS" },
		{ CONFIG_SETTING, "SLURM_PROCID" }, { CONFIG_SETTING, "host" },
		{ CONFIG_SETTING, "kernel" }, { CONFIG_SETTING, "timezone" },
		{ CONFIG_SETTING, "OMP_PLACES" },
		{ CONFIG_VERSION, "loaded_from" },
		{ CONFIG_DEVICE, "uuid" }, { CONFIG_DEVICE, "gpu_uuid" },
		{ CONFIG_DEVICE, "n_cpus_allowed" }, { CONFIG_DEVICE, "pci_bus_id" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (config_weigh(own[i].what, own[i].field).order < 255)
			fail_msg("%s is compared", own[i].field);
}

static void what_all_ranks_should_share_is_compared(void **state)
{
	static const struct {
		enum config_what what;
		const char *field;
		bool may_hold;
	} shared[] = {
		{ CONFIG_SETTING, "NCCL_ALGO", true }, { CONFIG_SETTING, "NCCL_PROTO", true },
		{ CONFIG_SETTING, "NCCL_IB_DISABLE", true }, { CONFIG_SETTING, "NCCL_IB_GID_INDEX", true },
		{ CONFIG_SETTING, "TORCH_DISTRIBUTED_DEBUG", true }, { CONFIG_SETTING, "FI_PROVIDER", true },
		{ CONFIG_SETTING, "OMP_NUM_THREADS", false },
		{ CONFIG_SETTING, "PYTORCH_CUDA_ALLOC_CONF", false },
		{ CONFIG_SETTING, "CUDA_DEVICE_MAX_CONNECTIONS", false },
		{ CONFIG_SETTING, "CUDA_LAUNCH_BLOCKING", false },
		{ CONFIG_VERSION, "nccl", true }, { CONFIG_VERSION, "torch", true },
		{ CONFIG_VERSION, "driver", true }, { CONFIG_VERSION, "aws_ofi_plugin", true },
		{ CONFIG_VERSION, "numpy", false }, { CONFIG_VERSION, "python", false },
		{ CONFIG_DEVICE, "gpu", false }, { CONFIG_DEVICE, "memory_gb", false },
		{ CONFIG_DEVICE, "pcie_width", false }, { CONFIG_DEVICE, "cpu", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		struct config_weight w = config_weigh(shared[i].what, shared[i].field);

		if (w.order == 255 || w.may_hold != shared[i].may_hold)
			fail_msg("%s", shared[i].field);
	}
}

static void what_speaks_on_the_wire_comes_first(void **state)
{
	(void)state;
	assert_true(config_weigh(CONFIG_VERSION, "nccl").order < config_weigh(CONFIG_VERSION, "torch").order);
	assert_true(config_weigh(CONFIG_VERSION, "torch").order < config_weigh(CONFIG_VERSION, "cuda").order);
	assert_true(config_weigh(CONFIG_VERSION, "cuda").order < config_weigh(CONFIG_VERSION, "driver").order);
	assert_true(config_weigh(CONFIG_VERSION, "driver").order < config_weigh(CONFIG_VERSION, "numpy").order);
	assert_true(config_weigh(CONFIG_SETTING, "NCCL_ALGO").order <
		    config_weigh(CONFIG_SETTING, "OMP_NUM_THREADS").order);
	assert_true(config_weigh(CONFIG_DEVICE, "gpu").order < config_weigh(CONFIG_DEVICE, "memory_gb").order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_a_ranks_or_a_hosts_own_is_not_compared),
		cmocka_unit_test(what_all_ranks_should_share_is_compared),
		cmocka_unit_test(what_speaks_on_the_wire_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
