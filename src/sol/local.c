/* What this machine offers. */
#include "base/cpu.h"

#include <stdio.h>

bsmm_status bsmm_local_device_at(uint32_t index, bsmm_local_device *info) {
    if (index > 0)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; this machine offers 1 device",
                         index);
    bsmm_local_device cpu = {.cores = (uint32_t)bsmm_thread_count(0)};
    snprintf(cpu.name, sizeof cpu.name, "cpu");
    bsmm_cpu_model(cpu.title, sizeof cpu.title);
    bsmm_cpu_feature_names(bsmm_cpu_features(), cpu.features, sizeof cpu.features);
    return bsmm_give_struct(info, &cpu, sizeof cpu, "info");
}
