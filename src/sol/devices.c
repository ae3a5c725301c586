/* This file has the table of devices with known peaks, and the functions that search it. */
#include "sol/sol.h"

#include <string.h>

/* clang-format off */
static const bsmm_sol_device rows[] = {
#include "sol/devices.def"
};
/* clang-format on */

const bsmm_sol_device *bsmm_sol_device_row(const char *name) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (strcmp(rows[i].info.name, name) == 0) return &rows[i];
    return NULL;
}

bsmm_status bsmm_device_at(uint32_t index, bsmm_device_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu devices", index,
                         BSMM_COUNT(rows));
    return bsmm_give_struct(info, &rows[index].info, sizeof rows[index].info, "info");
}
