"""Collectives: `read` is what this rank sends from, `written` what it receives into; links are priced elsewhere."""

from __future__ import annotations

from ridgepole.work.cost import NotRecorded, formula
from ridgepole.work.op import Call, Cost

_SPACES = ("c10d::", "_c10d_functional::", "nccl:", "symm_mem::", "vllm::", "_C_custom_ar::")
_VERBS = (
    "allreduce_ all_reduce all_reduce_ allreduce allgather_ all_gather_into_tensor _allgather_base_ all_gather "
    "_all_gather_base all_gather_base all_gather_v reduce_scatter_v _reduce_scatter_base reduce_scatter_base "
    "allgather_into_tensor_coalesced_ reduce_scatter_ reduce_scatter_tensor _reduce_scatter_base_ reduce_scatter "
    "broadcast_ broadcast alltoall_ all_to_all_single alltoall_base_ all_to_all alltoall alltoall_base reduce reduce_ "
    "send recv_ scatter scatter_ gather gather_ barrier all_reduce_coalesced_ all_reduce_reg all_reduce_unreg "
    "all_reduce_barrier two_shot_all_reduce one_shot_all_reduce"
)
_ALIKE = ("all_reduce", "allreduce", "broadcast")
"""Collectives that leave every rank with as much as it gave."""


@formula(
    *(f"{space}{verb}" for space in _SPACES for verb in _VERBS.split()),
    "record_param_comms",
    "aten::record_param_comms",
)
def collective(call: Call) -> Cost:
    tensors = call.tensors
    if not tensors:
        raise NotRecorded("message size not recorded")
    size = sum(t.nbytes for t in tensors)
    out = sum(t.nbytes for t in call.outputs)
    said = "" if out or any(word in call.operator for word in _ALIKE) else "as much is taken to come in as goes out"
    return Cost(0, size, out or size, tensors[0].dtype, "vector", "collective", assumed=said)


@formula("_c10d_functional::wait_tensor", "c10d::monitored_barrier_")
def wait(call: Call) -> Cost:
    return Cost(0, 0, 0, "float32", "vector", "view", 0)
