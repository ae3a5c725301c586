#include "layout.h"
#include "access.h"
#include "matrix.h"
#include "races.h"
#include <string.h>

static ptx_layout layout_of(uint64_t d, uint32_t span, bool swizzled, bool transposed) {
    return (ptx_layout){.start = (uint32_t)(d & 0x3fff) << 4,
                        .leading = (uint32_t)(d >> 16 & 0x3fff) << 4,
                        .stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
                        .span = span,
                        .swizzled = swizzled,
                        .transposed = transposed};
}

/* Refuses a descriptor whose base offset is not 0, i.e. whose swizzle pattern does not begin at a
 * multiple of its size. Without a swizzle, the base offset has no meaning and is accepted. */
static bool has_no_base_offset(ptx_warp *w, const ptx_inst *i, uint64_t d, uint32_t span) {
    if ((d >> 49 & 7) == 0 || span < 64) return true;
    ptx_stop(w, i, "descriptor 0x%llx: a base offset (bits 49 to 51) is not executed",
             (unsigned long long)d);
    return false;
}

bool ptx_layout_of_wgmma(ptx_warp *w, const ptx_inst *i, uint64_t d, bool transposed,
                         ptx_layout *y) {
    static const uint8_t spans[] = {16, 128, 64, 32};
    *y = layout_of(d, spans[d >> 62], d >> 62 != 0, transposed);
    return has_no_base_offset(w, i, d, y->span);
}

bool ptx_layout_of_tcgen05(ptx_warp *w, const ptx_inst *i, uint64_t d, bool transposed,
                           ptx_layout *y) {
    static const uint8_t spans[] = {16, 0, 128, 0, 64, 0, 32, 0};
    *y = layout_of(d, spans[d >> 61], d >> 61 != 0, transposed);
    if (!y->span || (d >> 46 & 7) != 1) {
        ptx_stop(w, i, "descriptor 0x%llx: bits 46 to 48 are %u, must be 1; swizzle %u",
                 (unsigned long long)d, (uint32_t)(d >> 46 & 7), (uint32_t)(d >> 61));
        return false;
    }
    if (d >> 52 & 1) {
        ptx_stop(w, i, "descriptor 0x%llx: an absolute leading offset (bit 52) is not executed",
                 (unsigned long long)d);
        return false;
    }
    return has_no_base_offset(w, i, d, y->span);
}

/* An operand is stored in blocks of eight rows. A row of a block has `span` bytes. From a block to
 * the block with the next eight rows, the address grows by `stride`. From a block to the block with
 * the next `span` bytes of the same rows, it grows by `leading`. If a transposed operand has no
 * swizzle, the hardware exchanges these two distances. A swizzle XORs the number of a 16-byte chunk
 * (bits 4 to 6 of the address) with the number of its 128-byte line. */
uint32_t ptx_layout_place(const ptx_layout *y, uint32_t across, uint32_t byte) {
    const bool plain = y->transposed && !y->swizzled;
    const uint32_t at = y->start + across / 8 * (plain ? y->leading : y->stride) +
                        across % 8 * y->span + byte % y->span +
                        byte / y->span * (plain ? y->stride : y->leading);
    return y->swizzled ? at ^ (at / 128 % (y->span / 16)) << 4 : at;
}

static uint32_t bits_of(ptx_type type) {
    return type == T_e2m1 ? 4 : type == T_e3m2 || type == T_e2m3 ? 6 : ptx_types[type].bits;
}

/* Copies up to 16 bytes of shared memory to `unit`, and reports the read to the race detector.
 * Returns false after an error. */
static bool read_unit(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t place, uint32_t bytes,
                      uint8_t unit[20]) {
    const uint8_t *from =
        ptx_shared_async(w, i, place | (uint64_t)b->rank << RANK_SHIFT, bytes, false);
    if (!from || !ptx_race_async(w, i, b, place, bytes, false)) return false;
    memcpy(unit, from, bytes);
    return true;
}

bool ptx_layout_read(ptx_warp *w, const ptx_inst *i, ptx_block *b, const ptx_layout *y, ptx_part p,
                     double *to, uint32_t row_step, uint32_t k_step) {
    const uint32_t bits = bits_of(p.type), each = bits < 8 && !p.packed ? 16 : 128 / bits,
                   lines = y->transposed ? p.k : p.rows, length = y->transposed ? p.rows : p.k,
                   line_step = y->transposed ? k_step : row_step,
                   step = y->transposed ? row_step : k_step,
                   first_line = y->transposed ? 0 : p.first, first = y->transposed ? p.first : 0;
    const uint32_t mask = (uint32_t)((1ull << bits) - 1);
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t done = 0; done < length; done += each) {
            const uint32_t count = length - done < each ? length - done : each;
            const uint32_t place =
                ptx_layout_place(y, first_line + line, (first + done) / each * 16);
            uint8_t unit[20] = {0};
            if (!read_unit(w, i, b, place, (count * bits + 7) / 8, unit)) return false;
            double *at = to + (size_t)line * line_step + (size_t)done * step;
            for (uint32_t e = 0; e < count; e++, at += step) {
                uint32_t word;
                memcpy(&word, unit + e * bits / 8, 4);
                *at = ptx_value_of(p.type, word >> e * bits % 8 & mask);
            }
        }
    return true;
}
