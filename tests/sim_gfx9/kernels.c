/* Contains kernels for tests of the simulator of AMD GPUs. The kernels use instructions that
 * Triton does not emit. clang-22 compiles them, and test_c.py has their expected results. Each
 * kernel reads `in`, writes `out` and runs as one workgroup, unless its comment says otherwise. */
#define GLOBAL __attribute__((address_space(1)))
#define LDS    __attribute__((address_space(3)))
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 256)))
typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned char u8;
typedef int i32x2 __attribute__((ext_vector_type(2)));
typedef int i32x3 __attribute__((ext_vector_type(3)));
typedef u32 u32x6 __attribute__((ext_vector_type(6)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef float f32x32 __attribute__((ext_vector_type(32)));
typedef _Float16 f16;
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
#define TID __builtin_amdgcn_workitem_id_x()
static LDS __attribute__((loader_uninitialized)) u32 tile[4096];

static __attribute__((noinline)) u32 collatz(u32 n) {
    u32 steps = 0;
    for (; n > 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}
KERNEL void calls(GLOBAL const u32 *in, GLOBAL u32 *out) {
    out[TID] = collatz(in[TID]) + collatz(in[TID] + 1);
}

/* The array `own` is indexed by a variable, so the compiler puts it into scratch memory. */
KERNEL void scratch(GLOBAL const u32 *in, GLOBAL u32 *out) {
    volatile u32 own[32];
    for (u32 k = 0; k < 32; k++)
        own[k] = in[TID] * k;
    for (u32 k = 0; k < 32; k++)
        own[in[TID] + k & 31] += own[k];
    u32 sum = 0;
    for (u32 k = 0; k < 32; k++)
        sum = sum * 31 + own[k];
    out[TID] = sum;
}

/* The flat pointer p points to LDS, scratch or global memory, depending on the lane. */
KERNEL void flat(GLOBAL const u32 *in, GLOBAL u32 *out) {
    volatile u32 own[4] = {in[TID], 7, 9, 11};
    tile[TID] = in[TID] + 1;
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    volatile u32 *p = TID % 3 == 0   ? (volatile u32 *)&tile[TID]
                      : TID % 3 == 1 ? (volatile u32 *)&own[0]
                                     : (volatile u32 *)(GLOBAL u32 *)&in[TID];
    out[TID] = *p;
}

KERNEL void atomics64(GLOBAL const u64 *in, GLOBAL u64 *out) {
    __atomic_fetch_add(&out[0], in[TID], __ATOMIC_RELAXED);
    __atomic_fetch_max(&out[1], in[TID], __ATOMIC_RELAXED);
    __atomic_fetch_min((GLOBAL long *)&out[2], (long)in[TID], __ATOMIC_RELAXED);
    __atomic_fetch_xor(&out[3], in[TID], __ATOMIC_RELAXED);
    LDS u64 *sum = (LDS u64 *)tile;
    if (TID == 0) *sum = 0;
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    __atomic_fetch_add(sum, in[TID], __ATOMIC_RELAXED);
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    if (TID == 0) out[4] = *sum;
    u64 old = 0;
    while (!__atomic_compare_exchange_n(&out[5], &old, old * 3 + 1, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

KERNEL void lanes(GLOBAL const int *in, GLOBAL int *out) {
    const int v = in[TID];
    /* With this swizzle, each lane reads the value of the lane whose number is its own XOR 1. */
    out[TID] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
    /* This swizzle reverses the lanes of each group of four. */
    out[64 + TID] = __builtin_amdgcn_ds_swizzle(v, 0x801b);
    /* DPP row_shr:1 moves values one lane up within each row of 16 lanes. */
    out[128 + TID] = __builtin_amdgcn_update_dpp(-1, v, 0x111, 0xf, 0xf, 0);
    /* DPP row_shl:4 moves values four lanes down within each row of 16 lanes. */
    out[192 + TID] = __builtin_amdgcn_update_dpp(-1, v, 0x104, 0xf, 0xf, 1);
    /* DPP row_bcast:15 copies the value of the last lane of each row of 16 lanes to all lanes of
       the next row. */
    out[256 + TID] = __builtin_amdgcn_update_dpp(-1, v, 0x142, 0xa, 0xf, 0);
    /* DPP row_mirror reverses the order of the lanes of each row of 16 lanes. */
    out[320 + TID] = __builtin_amdgcn_update_dpp(-1, v, 0x140, 0xf, 0xf, 0);
    /* DPP row_ror:3 rotates values by three lanes within each row of 16 lanes. The bank mask, the
       last but one argument, selects the groups of four lanes that are written. */
    out[384 + TID] = __builtin_amdgcn_update_dpp(-1, v, 0x123, 0xf, 0x5, 0);
    out[448 + TID] = __builtin_amdgcn_ds_permute((int)(63 - TID) * 4, v);
    out[512 + TID] = (int)(__builtin_amdgcn_ballot_w64(v > 0) >> TID & 1);
    /* DPP quad_perm:[3,2,1,0] reverses the lanes of each group of four. */
    out[576 + TID] = __builtin_amdgcn_mov_dpp(v, 0x1b, 0xf, 0xf, 1);
}

/* The compiler keeps this vector in registers. If its index is a variable, the compiler uses
 * s_set_gpr_idx or s_movrel, which the test needs. */
typedef u32 u32x16 __attribute__((ext_vector_type(16)));
KERNEL void indexed(GLOBAL const u32 *in, GLOBAL u32 *out) {
    const u32 k = __builtin_amdgcn_readfirstlane(in[0]) & 15;
    u32x16 v = ((GLOBAL const u32x16 *)in)[TID & 3];
    v[k] += 100;
    const u32 x = v[(k + 5) & 15];
    v[(k + 9) & 15] = x * 3;
    u32 sum = 0;
    for (u32 n = 0; n < 16; n++)
        sum = sum * 7 + v[n];
    out[TID] = sum + v[in[TID & 3] & 15];
}

/* Multiplies with several rounding modes, which the kernel sets in the MODE register. */
KERNEL void rounding(GLOBAL const float *in, GLOBAL float *out) {
    const float a = in[TID], b = in[64 + TID];
    __builtin_amdgcn_s_setreg(1 | 3 << 11, 0xf);
    out[TID] = a * b;
    __asm__ volatile("" ::: "memory");
    __builtin_amdgcn_s_setreg(1 | 3 << 11, 0x5);
    out[64 + TID] = *(volatile GLOBAL const float *)&in[TID] * b;
    __builtin_amdgcn_s_setreg(1 | 3 << 11, 0x0);
}

KERNEL void grid3(GLOBAL const u32 *in, GLOBAL u32 *out) {
    const u32 x = __builtin_amdgcn_workgroup_id_x(), y = __builtin_amdgcn_workgroup_id_y(),
              z = __builtin_amdgcn_workgroup_id_z();
    const u32 i = __builtin_amdgcn_workitem_id_x(), j = __builtin_amdgcn_workitem_id_y(),
              k = __builtin_amdgcn_workitem_id_z();
    const u32 nx = __builtin_amdgcn_workgroup_size_x(), ny = __builtin_amdgcn_workgroup_size_y(),
              nz = __builtin_amdgcn_workgroup_size_z();
    const u32 group = (z * 3 + y) * 2 + x, item = (k * ny + j) * nx + i;
    out[group * nx * ny * nz + item] = in[0] + (group << 16 | item);
}

KERNEL void bytes(GLOBAL const u32 *in, GLOBAL u32 *out) {
    const u32 v = in[TID];
    GLOBAL u8 *to = (GLOBAL u8 *)(out + TID);
    to[0] = (u8)(v >> 24) + (u8)v;
    to[1] = (u8)((v >> 8 & 255) * 3);
    *(GLOBAL unsigned short *)(to + 2) = (unsigned short)((short)(v >> 16) >> 2);
}

KERNEL void quotients(GLOBAL const float *in, GLOBAL float *out) {
    for (u32 i = TID; i < 4096; i += 64)
        out[i] = in[i] / in[4096 + i];
}

KERNEL void halves(GLOBAL const f16x2 *in, GLOBAL f16x2 *out) {
    const f16x2 a = in[TID], b = in[64 + TID];
    out[TID] = a * b + (f16x2){b.y, a.x};
    out[64 + TID] = (f16x2){a.y - b.x, a.x / (b.y * b.y + (f16)1)};
}

KERNEL void buffer_to_lds(GLOBAL const u32 *in, GLOBAL u32 *out) {
    __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc((void *)in, 0, 200, 0x27000);
    __builtin_amdgcn_raw_ptr_buffer_load_lds(r, (LDS void *)tile, 4, (int)(TID * 4), 0, 0, 0);
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    out[TID] = tile[TID];
}

#ifdef __gfx950__
KERNEL void transpose4(GLOBAL const i32x2 *in, GLOBAL i32x2 *out) {
    ((LDS i32x2 *)tile)[TID] = in[TID];
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    out[TID] = __builtin_amdgcn_ds_read_tr4_b64_v2i32((LDS i32x2 *)tile + TID);
}
KERNEL void transpose8(GLOBAL const i32x2 *in, GLOBAL i32x2 *out) {
    ((LDS i32x2 *)tile)[TID] = in[TID];
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    out[TID] = __builtin_amdgcn_ds_read_tr8_b64_v2i32((LDS i32x2 *)tile + TID);
}
KERNEL void six_bits(GLOBAL const float *in, GLOBAL u32 *out) {
    const f32x16 a = ((GLOBAL const f32x16 *)in)[2 * TID],
                 b = ((GLOBAL const f32x16 *)in)[2 * TID + 1];
    const u32x6 e2m3 = __builtin_amdgcn_cvt_scalef32_2xpk16_fp6_f32(a, b, 2.0f),
                e3m2 = __builtin_amdgcn_cvt_scalef32_2xpk16_bf6_f32(a, b, 0.5f);
    for (u32 k = 0; k < 6; k++)
        out[TID * 76 + k] = e2m3[k], out[TID * 76 + 6 + k] = e3m2[k];
    const f32x32 x = __builtin_amdgcn_cvt_scalef32_pk32_f32_fp6(e2m3, 2.0f),
                 y = __builtin_amdgcn_cvt_scalef32_pk32_f32_bf6(e3m2, 0.5f);
    for (u32 k = 0; k < 32; k++)
        ((GLOBAL float *)out)[TID * 76 + 12 + k] = x[k],
                                              ((GLOBAL float *)out)[TID * 76 + 44 + k] = y[k];
}
#endif
