/* Lists the tables of PTX instructions. The parser searches them for an opcode in this order. */
#include "sim.h"

const ptx_table *const ptx_tables[] = {
    &ptx_alu_table,     &ptx_compare_table,  &ptx_convert_table,
    &ptx_control_table, &ptx_lanes_table,    &ptx_access_table,
    &ptx_atomics_table, &ptx_copy_table,     &ptx_matrix_table,
    &ptx_wgmma_table,   &ptx_mbarrier_table, &ptx_bulk_table,
    &ptx_tma_table,     &ptx_cluster_table,  &ptx_launch_control_table,
    &ptx_tmem_table,    &ptx_tcgen05_table,  NULL};
