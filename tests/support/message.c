#include "message.h"

#include "bsmm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void expect_message(const char *part) {
    if (!strstr(bsmm_error_message(), part))
        fail_msg("\"%s\" is not in \"%s\"", part, bsmm_error_message());
}
