/* Declares the state of the PTX parser, which the parser's files share. */
#ifndef SIM_PTX_PARSE_H
#define SIM_PTX_PARSE_H
#include "lex.h"
#include "sim.h"

enum symbol_kind { SYM_REG, SYM_PRED, SYM_RANGE, SYM_VARIABLE, SYM_LABEL, SYM_TARGETS };
typedef struct {
    const char *name;
    size_t length;
    /* `width` is the number of bytes of a register, or 0 for a predicate. */
    uint8_t kind, space, width;
    /* `dynamic` is true for .extern .shared variables, and `formal` is true for parameters of a
     * kernel. */
    bool dynamic, formal;
    /* `outer` is true for shared variables that are not a kernel's own. */
    bool outer;
    /* A symbol of the kind RANGE stands for `count` registers, %r0 to %r(count - 1). */
    uint32_t at, count;
    /* For a VARIABLE, `value` is its address in its state space. For a LABEL, it is the index of
     * its instruction. */
    uint64_t value;
    ptx_operand *targets;
    uint32_t next; /* `next` is the index plus 1 of the next symbol in the same hash bucket. */
} ptx_symbol;

/* Names the kinds of operands in PTX text. The parser first reads the operands of an instruction
 * without checking their widths, because the instruction's table entry, which gives the widths,
 * depends on the number of operands. */
enum raw_kind {
    RAW_REG,
    RAW_PRED,
    RAW_SINK,
    RAW_NUMBER,
    RAW_ADDRESS,
    RAW_BRACKET,
    RAW_NAME,
    RAW_VECTOR,
    RAW_LIST,
    RAW_SPECIAL
};
typedef struct {
    uint8_t kind, width;
    bool negated, joined, minus;
    uint32_t at;
    /* A vector, a list or an address in brackets has `count` elements, which begin at index `first`
     * of the parser's array `raw`. Element 0 of an address is its base: a register, a variable or a
     * number. Element 1, if there is one, is a vector of coordinates. */
    uint16_t first, count;
    ptx_token token;
    ptx_symbol symbol; /* For an ADDRESS, `symbol` is the symbol of the variable. */
    int64_t offset;
} ptx_raw;

enum { BUCKETS = 4096, MOST_RAW = 640, MOST_SCOPES = 64 };
typedef struct {
    const char *name;
    size_t length;
    int64_t *to;
    uint32_t line;
} ptx_reference;

typedef struct {
    ptx_lexer x;
    ptx_module *m;
    char *error;
    bool failed;
    ptx_function *f; /* `f` is the function whose body the parser reads. */
    uint32_t function;
    ptx_symbol *symbols;
    uint32_t symbol_count, symbol_room, bucket[BUCKETS];
    struct {
        uint32_t symbols, references;
    } scopes[MOST_SCOPES];
    uint32_t depth;
    ptx_reference *references;
    uint32_t reference_count, reference_room;
    ptx_slot *slots;
    uint32_t slot_count, slot_room;
    ptx_raw raw[MOST_RAW];
    uint32_t raw_count;
    uint32_t file, source_line;
    uint32_t function_room, variable_room, opcode_room, file_room;
    /* `shared_most` is the largest offset in bytes at which the shared variables of a kernel end.
     * It is the maximum over all kernels that have been parsed so far. */
    uint32_t shared_most;
} ptx_parser;

/* Stores the message of the first failure with its line in the PTX text. The parser ignores later
 * failures. */
void ptx_fail(ptx_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for one more element of an array. If there is not enough memory, records a failure and
 * returns false. */
bool ptx_grow(ptx_parser *p, void **array, uint32_t count, uint32_t *room, size_t each);
bool ptx_accept(ptx_parser *p, char punct);
void ptx_expect(ptx_parser *p, char punct);
bool ptx_word_is(const ptx_parser *p, const char *word);
bool ptx_token_is(const ptx_token *token, const char *word);
int64_t ptx_integer(ptx_parser *p); /* Reads a constant, which may be a sum of numbers. */

ptx_symbol *ptx_define(ptx_parser *p, const ptx_token *name, int kind);
const ptx_symbol *ptx_lookup(const ptx_parser *p, const char *name, size_t length);
void ptx_open_scope(ptx_parser *p);
void ptx_close_scope(ptx_parser *p);
void ptx_refer(ptx_parser *p, const ptx_token *name, int64_t *to);

/* Reads operands up to ';' into p->raw and returns their number. The elements of vectors and lists
 * are stored after the operands in p->raw. */
uint32_t ptx_read_operands(ptx_parser *p);
int ptx_special_number(const char *name, size_t length);

void ptx_bind(ptx_parser *p, ptx_inst *inst, uint32_t operand_count);
uint32_t ptx_slot_at(ptx_parser *p, int kind, uint64_t value, uint32_t width);

void ptx_read_body(ptx_parser *p);
/* These functions read declarations. The current token is the directive, such as ".reg" or
 * ".shared". */
bool ptx_read_variable(ptx_parser *p, bool is_extern);
void ptx_read_parameters(ptx_parser *p, ptx_function *f, bool results);
int ptx_find_function(const ptx_parser *p, const char *name, size_t length);
#endif
