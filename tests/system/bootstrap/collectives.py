"""Every collective once or twice, in the world and in two halves of it."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, n = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(1)
low, high = dist.new_group([0, 1]), dist.new_group([2, 3])
mine = low if rank < 2 else high
t = torch.full((8,), float(rank))

dist.all_reduce(t)
dist.all_reduce(t, op=dist.ReduceOp.MAX, group=mine)
work = dist.all_reduce(torch.ones(5, dtype=torch.int64), group=mine, async_op=True)
work.wait()
dist.all_reduce(t, group=high if rank < 2 else low)  # not a member: nothing happens
dist.broadcast(t, 1)
dist.all_gather([torch.empty(8) for _ in range(n)], t)
dist.reduce(t, 0)
dist.gather(t, [torch.empty(8) for _ in range(n)] if rank == 0 else None)
dist.scatter(t, [torch.ones(8)] * n if rank == 0 else None)
dist.all_gather_object([None] * n, {"rank": rank})
dist.broadcast_object_list([rank, "x"], src=0)
dist.barrier()
dist.monitored_barrier()
dist.barrier(group=mine, async_op=True).wait()
if rank == 0:
    dist.send(t, 3)
    dist.isend(t, 3).wait()
if rank == 3:
    dist.recv(t, 0)
    dist.irecv(t, 0).wait()
try:
    dist.all_reduce("not a tensor")
except Exception as e:
    print(type(e).__name__)
dist.all_reduce(t)
print(t.sum().item())
