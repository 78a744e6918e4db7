"""One DDP after another, each with another use of the place for a communication hook."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
dist._DEFAULT_FIRST_BUCKET_BYTES = 1024
torch.set_num_threads(1)
kinds = dist.BuiltinCommHookType
calls = []


def halving(state, bucket):
    """Not what DDP does by itself: the losses show whether it is in effect."""
    state.append(bucket.index())
    tensor = bucket.buffer().div_(2 * world)
    return dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0])


def silent(state, bucket):
    """Sends nothing."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def build(**options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                        nn.Linear(32, 1))
    ddp = DDP(net, bucket_cap_mb=0.002, **options)
    torch.manual_seed(1 + rank)
    return ddp, torch.optim.AdamW(ddp.parameters(), 1e-2)


def train(name, ddp, opt, n):
    for _ in range(n):
        x, y = torch.randn(4, 16), torch.randn(4, 1)
        opt.zero_grad()
        loss = nn.functional.mse_loss(ddp(x), y)
        loss.backward()
        opt.step()
        print(name, loss.item().hex())


def refused(name, register):
    try:
        register()
        print(name, "accepted")
    except Exception as e:
        print(name, "refused", type(e).__name__, str(e).splitlines()[0])


def done(name, ddp):
    print(name, [p.double().abs().sum().item().hex() for p in ddp.module.parameters()])


ddp, opt = build()  # 0
train("plain", ddp, opt, 6)
done("plain", ddp)

ddp, opt = build()  # 1
ddp.register_comm_hook(calls, halving)
train("before", ddp, opt, 6)
refused("before", lambda: ddp.register_comm_hook(calls, halving))
done("before", ddp)
print("before", len(calls))

ddp, opt = build()  # 2
train("after", ddp, opt, 3)
ddp.register_comm_hook(calls, halving)
train("after", ddp, opt, 3)
refused("after", lambda: ddp.register_comm_hook(calls, halving))
refused("after", lambda: ddp._register_builtin_comm_hook(kinds.ALLREDUCE))
done("after", ddp)
print("after", len(calls))

ddp, opt = build()  # 3
ddp._register_builtin_comm_hook(kinds.FP16_COMPRESS)
train("builtin", ddp, opt, 6)
refused("builtin", lambda: ddp.register_comm_hook(calls, halving))
done("builtin", ddp)

ddp, opt = build()  # 4
train("builtin late", ddp, opt, 3)
ddp._register_builtin_comm_hook(kinds.ALLREDUCE)
train("builtin late", ddp, opt, 3)
done("builtin late", ddp)

ddp, opt = build()  # 5: rank 0 runs out of data first
with ddp.join():
    train("join", ddp, opt, 4 + rank)
done("join", ddp)

ddp, opt = build()  # 6: the same when the place has been taken, with a shrinking divisor
train("join late", ddp, opt, 2)
with ddp.join(divide_by_initial_world_size=False):
    train("join late", ddp, opt, 4 + rank)
done("join late", ddp)

ddp, opt = build(gradient_as_bucket_view=True)  # 7
train("views", ddp, opt, 4)
done("views", ddp)

ddp, opt = build(find_unused_parameters=True)  # 8
train("unused", ddp, opt, 4)
done("unused", ddp)

ddp, opt = build(static_graph=True)  # 9
train("static", ddp, opt, 4)
done("static", ddp)

ddp, opt = build()  # 10
ddp.register_comm_hook(None, silent)
train("silent", ddp, opt, 2)
