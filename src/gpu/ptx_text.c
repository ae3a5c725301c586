/* Converts PTX text to its stored form and back. In the stored form, the number of a register or
 * label is replaced by its position in a list of the numbers that were used most recently. */
#include "gpu/ptx_text.h"

#include <stdint.h>
#include <string.h>

/* A class is the registers whose names begin with the same letters, e.g. `r` for `%r17`. They are
 * numbered separately from those of other classes. The registers of classes that are declared after
 * the first CLASSES classes keep their numbers. RECENT is the length of the list of a class. */
enum { CLASSES = 16, RECENT = 256, LETTERS = 8 };

typedef struct numbers {
    char letters[LETTERS];
    size_t length;
    uint32_t largest; /* `largest` is the largest number that the text has used. */
    /* recent[0 .. count) are the numbers that were used most recently, the latest first. */
    size_t count;
    uint32_t recent[RECENT];
} numbers;

typedef struct walk {
    bsmm_ptx_text_form to;
    const char *at, *end;
    char *out;
    size_t room, written;
    size_t classes;
    numbers registers[CLASSES], labels;
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

/* Reads a decimal number from the text. If damaged text holds a number that needs more than 32
 * bits, the result wraps around, which C defines for unsigned numbers. */
static uint32_t take_number(walk *w) {
    uint32_t n = 0;
    while (w->at < w->end && is_digit(*w->at))
        n = 10 * n + (uint32_t)(*w->at++ - '0');
    return n;
}

/* Returns the position of `number` in the list of recent numbers, or the length of the list if it
 * does not have the number. */
static size_t find_recent(const numbers *n, uint32_t number) {
    size_t i = 0;
    while (i < n->count && n->recent[i] != number)
        i++;
    return i;
}

/* Moves `number` to the front of the list of recent numbers. `position` is its position in the
 * list, or the length of the list if it does not have the number. A full list loses its last
 * number. */
static void use(numbers *n, uint32_t number, size_t position) {
    if (position == n->count && n->count < RECENT) n->count++;
    if (position == RECENT) position--;
    memmove(n->recent + 1, n->recent, position * sizeof n->recent[0]);
    n->recent[0] = number;
    if (number > n->largest) n->largest = number;
}

static void store_number(walk *w, numbers *n) {
    const uint32_t number = take_number(w);
    const size_t position = find_recent(n, number);
    if (position < n->count) {
        put_number(w, (uint32_t)position);
    } else if (number == n->largest + 1) {
        put(w, '+');
    } else {
        put(w, '=');
        put_number(w, number);
    }
    use(n, number, position);
}

static void restore_number(walk *w, numbers *n) {
    uint32_t number = n->largest + 1;
    size_t position = n->count;
    if (is_digit(*w->at)) {
        const uint32_t stored = take_number(w);
        /* Only damaged text has a position past the end of the list. */
        position = stored < n->count ? stored : 0;
        number = n->recent[position];
    } else if (*w->at++ == '=') {
        number = take_number(w);
    }
    put_number(w, number);
    use(n, number, position);
}

/* Converts the number of a register or label at the current position, if there is one. */
static void convert_number(walk *w, numbers *n) {
    if (w->at == w->end) return;
    const bool is_number = is_digit(*w->at);
    if (w->to == BSMM_PTX_TEXT_STORED) {
        if (is_number) store_number(w, n);
    } else if (is_number || *w->at == '+' || *w->at == '=') {
        restore_number(w, n);
    }
}

/* Returns the class of registers whose name has these letters, or NULL. */
static numbers *find_class(walk *w, const char *letters, size_t length) {
    for (size_t i = 0; i < w->classes; i++)
        if (w->registers[i].length == length &&
            memcmp(w->registers[i].letters, letters, length) == 0)
            return &w->registers[i];
    return NULL;
}

/* Handles the declaration of a class of registers, such as `%r<100>`. Each function of the text
 * declares its registers, so a class that is known begins again without recent numbers. */
static void declare_class(walk *w, const char *letters, size_t length) {
    numbers *n = find_class(w, letters, length);
    if (!n) {
        if (length > LETTERS || w->classes == CLASSES) return;
        n = &w->registers[w->classes++];
        memcpy(n->letters, letters, length);
        n->length = length;
    }
    n->count = 0;
    n->largest = 0;
}

/* Copies the letters after a '%', and converts the number after them if they name a class of
 * registers that has been declared. Special registers, such as `%clock64`, are not declared. */
static void convert_register(walk *w) {
    const char *letters = w->at;
    while (w->at < w->end && *w->at >= 'a' && *w->at <= 'z')
        put(w, *w->at++);
    const size_t length = (size_t)(w->at - letters);
    if (w->at < w->end && *w->at == '<') {
        declare_class(w, letters, length);
        return;
    }
    numbers *n = find_class(w, letters, length);
    if (n) convert_number(w, n);
}

/* Converts the number of a label such as `$L17`. */
static void convert_label(walk *w) {
    if (w->at == w->end || *w->at != 'L') return;
    put(w, *w->at++);
    convert_number(w, &w->labels);
}

size_t bsmm_ptx_text_convert(bsmm_ptx_text_form to, const char *text, size_t bytes, char *out,
                             size_t room) {
    walk w = {.to = to, .at = text, .end = text + bytes, .out = out, .room = room};
    while (w.at < w.end) {
        const char c = *w.at++;
        put(&w, c);
        if (c == '%') convert_register(&w);
        if (c == '$') convert_label(&w);
    }
    return w.written;
}
