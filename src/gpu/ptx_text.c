/* Converts PTX text to its stored form and back. In the stored form, the number of a register or
 * label is replaced by its difference from an earlier number. */
#include "gpu/ptx_text.h"

#include <stdint.h>

/* A register has a class, e.g. `r` for `%r17`, and each class has a last number, from which the
 * stored difference is computed. A hash of the class's name selects the table entry with this
 * number. If two classes share an entry, the stored differences become larger, but the text stays
 * correct. */
enum { CLASSES = 64, LABELS = CLASSES, ENTRIES };

typedef struct walk {
    bsmm_ptx_text_form to;
    const char *at, *end;
    char *out;
    size_t room, written;
    bool first; /* `first` is true if no register of this line has been seen. */
    /* Registers are numbered separately in each class. last[i] belongs to class i. It is updated by
     * the first register of each line of the text: if this register is of class i, last[i] becomes
     * its number. */
    uint32_t last[ENTRIES];
} walk;

static void put(walk *w, char c) {
    if (w->written < w->room) w->out[w->written] = c;
    w->written++;
}

static void put_number(walk *w, uint32_t n) {
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + n % 10);
    while (n /= 10);
    while (count)
        put(w, digits[--count]);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Reads a decimal number from the text. If damaged text holds a number that needs more than 32
 * bits, the result wraps around, which C defines for unsigned numbers. */
static uint32_t take_number(walk *w) {
    uint32_t n = 0;
    while (w->at < w->end && is_digit(*w->at))
        n = 10 * n + (uint32_t)(*w->at++ - '0');
    return n;
}

/* Reads the number of a register or label from the input and returns it. If the input is ordinary
 * PTX text, the number itself is read. In stored (compact) text, the number is replaced by its
 * difference from another number, with a sign; `from` is this other number. */
static uint32_t take(walk *w, uint32_t from) {
    if (w->to == BSMM_PTX_TEXT_STORED) return take_number(w);
    const bool less = *w->at++ == '-';
    const uint32_t distance = take_number(w);
    return less ? from - distance : from + distance;
}

/* Writes the number of a register or label to the output. In ordinary PTX text, the function writes
 * the number itself. In the stored form, it writes the difference of this number and the number
 * `from`, with its sign. */
static void give(walk *w, uint32_t number, uint32_t from) {
    if (w->to == BSMM_PTX_TEXT_ORDINARY) {
        put_number(w, number);
        return;
    }
    put(w, number < from ? '-' : '+');
    put_number(w, number < from ? from - number : number - from);
}

/* Returns true if a number begins at the current position. In ordinary PTX text it begins with a
 * digit, in stored text with a sign. */
static bool at_number(const walk *w) {
    if (w->at == w->end) return false;
    if (w->to == BSMM_PTX_TEXT_STORED) return is_digit(*w->at);
    return (*w->at == '+' || *w->at == '-') && w->at + 1 < w->end && is_digit(w->at[1]);
}

/* Copies the lower-case letters that name a register's class to the output, and returns the class's
 * entry in the table. */
static uint32_t copy_class(walk *w) {
    uint32_t hash = 0;
    for (; w->at < w->end && *w->at >= 'a' && *w->at <= 'z'; put(w, *w->at++))
        hash = 7 * hash + (uint8_t)*w->at;
    return hash % CLASSES;
}

static void convert_register(walk *w) {
    const char *name = w->at;
    const uint32_t entry = copy_class(w);
    if (w->at == name || !at_number(w)) return;
    const uint32_t from = w->last[entry];
    const uint32_t number = take(w, from);
    give(w, number, from);
    if (w->first) w->last[entry] = number;
    w->first = false;
}

/* Converts a label such as `$L__BB0_17` between the ordinary and the stored form of PTX text. Only
 * the number at the end of the label (17) differs between the forms: the stored form has its
 * difference from the number of the label before. Other digits of the label belong to its name. */
static void convert_label(walk *w) {
    char before = '$';
    while (w->at < w->end && (is_name(*w->at) || (is_digit(*w->at) && before != '_')))
        put(w, before = *w->at++);
    if (before != '_' || !at_number(w)) return;
    const uint32_t from = w->last[LABELS];
    w->last[LABELS] = take(w, from);
    give(w, w->last[LABELS], from);
}

size_t bsmm_ptx_text_convert(bsmm_ptx_text_form to, const char *text, size_t bytes, char *out,
                             size_t room) {
    walk w = {.to = to, .at = text, .end = text + bytes, .out = out, .room = room, .first = true};
    while (w.at < w.end) {
        const char c = *w.at++;
        put(&w, c);
        if (c == '\n') w.first = true;
        if (c == '%') convert_register(&w);
        if (c == '$') convert_label(&w);
    }
    return w.written;
}
