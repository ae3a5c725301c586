/* Declares functions for the files that implement matrix instructions. */
#ifndef SIM_PTX_MATRIX_H
#define SIM_PTX_MATRIX_H
#include "common/tensor_core.h"
#include "sim.h"

/* Returns the number of elements in a 32-bit register, e.g. four 8-bit elements. Returns 1 for
 * types of 32 bits and more. */
uint32_t ptx_elements_of(ptx_type type);
double ptx_value_of(ptx_type type, uint64_t bits);
/* Returns the bits of element e of the register value `reg`. */
uint64_t ptx_element_bits(ptx_type type, uint64_t reg, uint32_t e);
/* Rounds a sum in double to the type of the result and returns its bits. */
uint64_t ptx_result_bits(const ptx_inst *i, ptx_type type, double v);
/* Returns true if the vector operand has `count` registers. Otherwise stops the warp with an
 * error. */
bool ptx_has_count(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, uint32_t count);

/* Sets *rule to the rule by which tensor cores of compute capability 9.0 add products of elements
 * of types `a` and `b` to accumulators of type `d`. Returns false if the rule is not known for
 * these types. */
bool ptx_tensor_rule(ptx_type a, ptx_type b, ptx_type d, sim_tensor_rule *rule);
/* Returns sum + a[0] b[0] + ... + a[k - 1] b[k - 1] as the tensor cores round it to type `d`. */
double ptx_tensor_sum(ptx_type d, double sum, const sim_tensor_vector *a,
                      const sim_tensor_vector *b, uint32_t k, sim_tensor_rule rule);
#endif
