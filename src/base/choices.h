/* Lists the values of bsmm.h's enums that have no table of their own, so that range checks and
 * messages derive from one list. A list without a value of its enum does not compile. */
#ifndef BSMM_CHOICES_H
#define BSMM_CHOICES_H

#include "base/base.h"

/* Each of these lists has the values of one enum: 0, 1, 2 and so on, or flags of one bit each. */
#define BSMM_ORDERS(V)       V(BSMM_ORDER_ROW) V(BSMM_ORDER_COL)
#define BSMM_GLOBALS(V)      V(BSMM_GLOBAL_MULTIPLIER) V(BSMM_GLOBAL_DIVISOR)
#define BSMM_COMPUTES(V)     V(BSMM_COMPUTE_EXACT) V(BSMM_COMPUTE_FAST)
#define BSMM_HALVES(V)       V(BSMM_HALVES_SPLIT) V(BSMM_HALVES_INTERLEAVED)
#define BSMM_SCALES_BY(V)    V(BSMM_SCALE_BY_ROW) V(BSMM_SCALE_BY_COL)
#define BSMM_MATMUL_FLAGS(V) V(BSMM_MATMUL_ANY_ROWS) V(BSMM_MATMUL_BATCH_INVARIANT)
#define BSMM_GROUP_FLAGS(V)                                                                        \
    V(BSMM_GROUP_EACH_ALPHA)                                                                       \
    V(BSMM_GROUP_EACH_BIAS)                                                                        \
    V(BSMM_GROUP_EACH_A_GLOBAL)                                                                    \
    V(BSMM_GROUP_EACH_B_GLOBAL)                                                                    \
    V(BSMM_GROUP_EACH_D_GLOBAL)                                                                    \
    V(BSMM_GROUP_EACH_COL_SCALE)                                                                   \
    V(BSMM_GROUP_GATHER_A)                                                                         \
    V(BSMM_GROUP_SCALES_APART)

#define BSMM_COUNT_CHOICE(value) +1
#define BSMM_ADD_FLAG(value)     | value
enum {
    BSMM_ORDER_COUNT = BSMM_ORDERS(BSMM_COUNT_CHOICE),
    BSMM_GLOBAL_COUNT = BSMM_GLOBALS(BSMM_COUNT_CHOICE),
    BSMM_COMPUTE_COUNT = BSMM_COMPUTES(BSMM_COUNT_CHOICE),
    BSMM_HALVES_COUNT = BSMM_HALVES(BSMM_COUNT_CHOICE),
    BSMM_ALL_SCALES_BY = 0 BSMM_SCALES_BY(BSMM_ADD_FLAG),
    BSMM_ALL_MATMUL_FLAGS = 0 BSMM_MATMUL_FLAGS(BSMM_ADD_FLAG),
    BSMM_ALL_GROUP_FLAGS = 0 BSMM_GROUP_FLAGS(BSMM_ADD_FLAG)
};

/* These functions check the lists at compile time. Each function has a switch whose cases are the
 * values of a list. If an enum of bsmm.h has a value that is missing in its list, the compiler
 * rejects the switch and names the value. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
#define BSMM_CASE(value) case value:
#define BSMM_CHECK_LIST(type, list)                                                                \
    static inline void type##_is_listed(type value) {                                              \
        switch (value) { list(BSMM_CASE) break; }                                                  \
    }
BSMM_CHECK_LIST(bsmm_order, BSMM_ORDERS)
BSMM_CHECK_LIST(bsmm_global, BSMM_GLOBALS)
BSMM_CHECK_LIST(bsmm_compute, BSMM_COMPUTES)
BSMM_CHECK_LIST(bsmm_halves, BSMM_HALVES)
BSMM_CHECK_LIST(bsmm_scale_by, BSMM_SCALES_BY)
BSMM_CHECK_LIST(bsmm_matmul_flags, BSMM_MATMUL_FLAGS)
BSMM_CHECK_LIST(bsmm_group_flags, BSMM_GROUP_FLAGS)
#pragma GCC diagnostic pop

#endif
