/* This is the kernel of client.c: out[i] = factor * in[i] + i, in workgroups of 64 lanes. */
typedef unsigned int u32;
__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64))) void
scale(__attribute__((address_space(1))) const u32 *in, __attribute__((address_space(1))) u32 *out,
      u32 factor) {
    const u32 i = 64 * __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workitem_id_x();
    out[i] = factor * in[i] + i;
}
