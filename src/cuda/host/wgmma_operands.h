/* Operands of the sm_90a engine: as they are stored where the copy engine can read them, else
 * packed into a workspace or ahead of time. */
#ifndef BSMM_CUDA_HOST_WGMMA_OPERANDS_H
#define BSMM_CUDA_HOST_WGMMA_OPERANDS_H

#include "cuda/host/wgmma.h"

/* Where one operand comes from. */
typedef struct bsmm_wgmma_source {
    bsmm_pack_route route;
    bool stored; /* elements are read where they lie */
    bool scaled; /* the engine's kind has scales */
    bool by_row; /* 1 x 128, else 128 x 128 */
    bool stored_scales;
    uint64_t bytes;                  /* of workspace that it needs; a multiple of 1024 */
    uint64_t elements_at, scales_at; /* in it, of those that are not stored */
    bsmm_wgmma_form form;
} bsmm_wgmma_source;

/* is_b: B, whose scales are 128 x 128 in BSMM_WGMMA_BLOCK. */
bsmm_wgmma_source bsmm_wgmma_source_of(const bsmm_product *p, bsmm_wgmma_kind kind, bool is_b,
                                       bsmm_pack_route route);

/* What a plan keeps of an operand's packing. */
typedef struct bsmm_wgmma_packer {
    bsmm_pack_launch elements;      /* where elements are not stored */
    bsmm_pack_scales_launch scales; /* where scales are moved by themselves */
    bool packs_scales;
} bsmm_wgmma_packer;

/* Loads what bsmm_wgmma_fill will launch. */
bsmm_status bsmm_wgmma_packer_make(const bsmm_product *p, const bsmm_operand *o,
                                   const bsmm_wgmma_source *source, bsmm_wgmma_packer *made);

/* What packing needs beside its operand and room; all may be 0. */
typedef struct bsmm_wgmma_packing {
    bsmm_pack_header *header; /* apart from the room, and already zero; NULL: the room's */
    bool overlaps;            /* as in bsmm_pack_launch */
} bsmm_wgmma_packing;

/* Queues the packing, if any, into `room` (device memory, aligned to 64 bytes; places in it count
 * from its start, so that packed weights may be moved), with the device's context current. */
bsmm_status bsmm_wgmma_fill(const bsmm_product *p, const bsmm_operand *o,
                            const bsmm_wgmma_source *source, const bsmm_wgmma_packer *made,
                            const bsmm_wgmma_packing *how, void *room);

/* The side that bsmm_wgmma_fill has made of `room`. */
bsmm_wgmma_side bsmm_wgmma_side_of(const bsmm_operand *o, const bsmm_wgmma_source *source,
                                   uint8_t *room);

#endif
