/* Copies the boxes of tensor maps between device memory and shared memory, as TMA does. */
#include "machine.h"

#include <cstring>

static uint32_t row_bytes(const emulated_map *m) {
    return m->box[0] * m->elem_bytes;
}

/* Applies the swizzle to an address: the index of a 16-byte unit within 128 bytes is XORed with the
 * index of the 128-byte row. */
static uint32_t swizzled(const emulated_map *m, uint32_t address) {
    uint32_t units = m->swizzle_bytes / 16;
    return units ? address ^ (address / 128 % units) << 4 : address;
}

/* Calls the function `unit` for each unit of 16 bytes of a TMA copy's box. Its arguments are the
 * unit's address in shared memory, its address in memory, and the number of its bytes that lie
 * inside the tensor. */
template <typename F>
static void each_unit(const emulated_map *m, int32_t x, int32_t y, uint32_t shared, F unit) {
    const uint32_t bytes = row_bytes(m);
    for (uint32_t at = 0; at < bytes * m->box[1]; at += 16) {
        int64_t row = y + int64_t(at / bytes);
        int64_t column = x * int64_t(m->elem_bytes) + at % bytes;
        int64_t left = int64_t(m->extents[0] * m->elem_bytes) - column;
        bool inside = row >= 0 && uint64_t(row) < m->extents[1] && column >= 0 && left > 0;
        unit(emulated_pointer(swizzled(m, shared + at)),
             m->address + row * int64_t(m->stride) + column,
             size_t(inside ? left < 16 ? left : 16 : 0));
    }
}

void emulated_map_load(const void *map, int32_t x, int32_t y, uint32_t to) {
    each_unit(static_cast<const emulated_map *>(map), x, y, to,
              [](void *shared, const uint8_t *memory, size_t inside) {
                  memset(shared, 0, 16);
                  if (inside) memcpy(shared, memory, inside);
              });
}

void emulated_map_store(const void *map, int32_t x, int32_t y, uint32_t from) {
    each_unit(static_cast<const emulated_map *>(map), x, y, from,
              [](const void *shared, uint8_t *memory, size_t inside) {
                  if (inside) memcpy(memory, shared, inside);
              });
}

uint32_t emulated_map_bytes(const void *map) {
    const emulated_map *m = static_cast<const emulated_map *>(map);
    return row_bytes(m) * m->box[1];
}
