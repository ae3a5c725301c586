/* Draws an operand of an AMD matrix instruction: the lanes and registers that hold its elements. */
#ifndef CLI_MFMA_H
#define CLI_MFMA_H

#include "command.h"

typedef struct cli_mfma_values {
    const char *operand, *type;
    int64_t block, cdna;
    bool json, svg;
} cli_mfma_values;

extern const cli_column cli_mfma_places[];

/* Draws one operand of the instruction `name`. Returns an exit status. */
int cli_mfma_draw(const char *name, const cli_mfma_values *options);

#endif
