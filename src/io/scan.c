#include "io/scan.h"

#include <string.h>

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void bsmm_scan_space(bsmm_scan *s) {
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

bool bsmm_scan_take(bsmm_scan *s, char token) {
    bsmm_scan_space(s);
    if (s->at == s->end || *s->at != token) return false;
    s->at++;
    return true;
}

bool bsmm_scan_string(bsmm_scan *s, bsmm_span *text) {
    bsmm_scan_space(s);
    const char *at = s->at;
    if (at == s->end || *at++ != '"') return false;
    text->at = at;
    for (; at < s->end && *at != '"'; at++)
        if (*at == '\\' || (unsigned char)*at < ' ') return false;
    if (at == s->end) return false;
    text->length = (size_t)(at - text->at);
    s->at = at + 1;
    return true;
}

bool bsmm_scan_count(bsmm_scan *s, uint64_t *value) {
    static const ptrdiff_t most = 18;
    bsmm_scan_space(s);
    const char *at = s->at;
    for (*value = 0; at < s->end && *at >= '0' && *at <= '9' && at - s->at <= most; at++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    ptrdiff_t digits = at - s->at;
    bool padded = digits > 1 && *s->at == '0';
    bool fraction = at < s->end && strchr(".eE", *at) && *at;
    if (digits == 0 || digits > most || padded || fraction) return false;
    s->at = at;
    return true;
}

/* Returns the position after the closing quote of the string whose opening quote is at `at`. */
static const char *skip_string(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\') at++;
    return at < end ? at + 1 : end;
}

bool bsmm_scan_value(bsmm_scan *s, bsmm_span *value) {
    size_t depth = 0;
    bsmm_scan_space(s);
    const char *at = s->at;
    while (at < s->end) {
        char c = *at;
        if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']')) break;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        at = c == '"' ? skip_string(at, s->end) : at + 1;
        if (depth == 0 && (c == '"' || c == '}' || c == ']')) break;
    }
    *value = (bsmm_span){s->at, (size_t)(at - s->at)};
    s->at = at;
    return value->length > 0;
}
