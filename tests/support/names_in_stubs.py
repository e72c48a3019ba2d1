"""Names that generated text uses for its own things, or that mean something elsewhere."""

from __future__ import annotations

NAMES = tuple(
    """
    a args arguments array axes args_size a0 b back begin bound bytes call call_back callback callbacks common checked
    check_bounds check_scalars checks convert count data device differ difference end errmsg error
    fill found frame function gt_x has_new_scalar host i index init INIT install items j
    known leaf LEAVES length library memory memory_symbols name names none other other_args PARAMETERS
    prepare properties program prog RUNNING returned run s s_ sdfg sdfg_init sdfg_program self self_ shape shape0 size
    slots slot stat status stride strides strides0 STUB structure USES FOLLOWS values value version WORKSPACES x_items
    ARGUMENTS SLOTS OTHER_SLOTS LEAF_a LEAF_x to
    COLLECTIONS memcpy memcmp strcmp main printf offsetof int32_t int64_t uint64_t size_t ptrdiff_t bool_
    workspace_0_bytes bytes_0 install_0 callback_a call_a structure_a members a_members x_ n n_ I_ K_ E2V V2E
    real integer type stop exit abs min max module procedure logical kind len
    """.split()  # noqa: SIM905
)
