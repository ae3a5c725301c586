/* Defines AMD kernels that call the code that all GPU backends share. The compiler reports missing
 * functions and instructions only in a kernel. tools/check-gpu-shared.sh therefore compiles these
 * kernels, which never run. */
#include "gpu/epilogue.h"
#include "gpu/pack_lane.h"
#include "gpu/recode_lane.h"
#include "gpu/small_m_weights.h"
#include "recipe/rules.h"

#define KERNEL __attribute__((amdgpu_kernel))
#define GLOBAL __attribute__((address_space(1)))

typedef struct epilogue_job {
    bsmm_gpu_epilogue epilogue;
    bsmm_gpu_operand a, b;
    uint32_t k;
} epilogue_job;

KERNEL void store(const GLOBAL epilogue_job *from) {
    const epilogue_job job = *from;
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&job.epilogue);
    const uint32_t row = __builtin_amdgcn_workgroup_id_x(), col = __builtin_amdgcn_workgroup_id_y();
    const double sum = bsmm_gpu_epilogue_sum_again(&job.a, &job.b, row, col, job.k);
    if (bsmm_device_lane() == 0) bsmm_gpu_epilogue_store(&job.epilogue, &factors, row, col, sum);
}

KERNEL void pack(const GLOBAL bsmm_pack_job *from, const GLOBAL uint32_t *codes, int bits, int out,
                 GLOBAL uint32_t *to) {
    const bsmm_pack_job job = *from;
    uint32_t mine[4], packed[4];
    for (int i = 0; i < 4; i++)
        mine[i] = codes[i];
    const bsmm_lane_scale scale = bsmm_lane_scale_of(job.scale, codes[4]);
    const uint32_t maxima = bsmm_lane_look(&job, &scale, mine, 4);
    const bsmm_lane_group group =
        bsmm_lane_decide(&job, &scale, maxima, bsmm_lane_row_top(&job, (int)codes[5]));
    bsmm_lane_item(&job, &scale, &group, mine, bits, out, packed);
    for (int i = 0; i < 4; i++)
        to[i] = packed[i];
}

KERNEL void quantize(const GLOBAL bsmm_quantize_job *from, float amax, float value,
                     GLOBAL uint32_t *to) {
    const bsmm_quantize_job job = *from;
    const bsmm_tensor_step tensor = bsmm_lane_tensor(&job.tensor, &job.steps, amax);
    const bsmm_block_step step = bsmm_block_by(job.steps.block, amax, &tensor);
    const bsmm_lane_encoder encoder = bsmm_lane_encoder_of(&job, step.factor);
    to[0] = step.code;
    to[1] = bsmm_lane_encode(&job, &encoder, value);
}

KERNEL void weights(GLOBAL uint32_t *words) {
    uint32_t pairs[4];
    bsmm_e2m1_pairs(words[0], pairs);
    for (int i = 0; i < 4; i++)
        words[i] = pairs[i] * bsmm_e8m0_factor(words[4]);
    bsmm_e2m3_pairs(words[5], words[6], pairs);
    for (int i = 0; i < 4; i++)
        words[i] += pairs[i];
    bsmm_e3m2_pairs(words[5], words[6], pairs);
    for (int i = 0; i < 4; i++)
        words[i] += pairs[i];
}
