/* Chooses the next token. */
#include "llm.h"

/* Returns a random number in [0, 1), by the generator splitmix64. */
static double next_uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

int32_t llm_sample(float *logits, int64_t count, float temperature, uint64_t *seed) {
    int64_t best = 0, i = 0;
    for (int64_t j = 1; j < count; j++)
        best = logits[j] > logits[best] ? j : best;
    if (temperature <= 0) return (int32_t)best;
    for (int64_t j = 0; j < count; j++)
        logits[j] /= temperature;
    double left = (double)llm_softmax(logits, count) * next_uniform(seed);
    while (i < count - 1 && (left -= (double)logits[i]) >= 0)
        i++;
    return (int32_t)i;
}
