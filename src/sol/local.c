/* Lists the devices of this computer: the CPU and the devices of all other backends. */
#include "core/describe.h"

bsmm_status bsmm_local_device_at(uint32_t index, bsmm_local_device *info) {
    const bsmm_backend *backend;
    bsmm_message before;
    uint32_t found = 0;
    bsmm_message_keep(&before);
    for (uint32_t i = 0; (backend = bsmm_backend_at(i)); i++) {
        bsmm_local_device device = {0};
        for (uint32_t ordinal = 0; backend->describe(ordinal, &device) == BSMM_OK; ordinal++) {
            if (found++ < index) continue;
            bsmm_message_restore(&before);
            return bsmm_give_struct(info, &device, sizeof device, "info");
        }
    }
    return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; this machine offers %u device%s", index,
                     found, found == 1 ? "" : "s");
}
