/* Stores the last error message of each thread and defines the names of the status values. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[sizeof(bsmm_message)];

const char *bsmm_error_message(void) {
    return message;
}

void bsmm_message_keep(bsmm_message *to) {
    memcpy(to->text, message, sizeof message);
}

void bsmm_message_restore(const bsmm_message *from) {
    memcpy(message, from->text, sizeof message);
}

bsmm_status bsmm_fail(bsmm_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return status;
}

bsmm_status bsmm_fail_within(bsmm_status status, const char *prefix) {
    char inner[sizeof message];
    memcpy(inner, message, sizeof inner);
    return bsmm_fail(status, "%s: %s", prefix, inner);
}

const char *bsmm_reason(char *why, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    return why;
}

static const char *const status_names[] = {
    [BSMM_OK] = "BSMM_OK",
    [BSMM_E_INVALID] = "BSMM_E_INVALID",
    [BSMM_E_UNSUPPORTED] = "BSMM_E_UNSUPPORTED",
    [BSMM_E_MEMORY] = "BSMM_E_MEMORY",
    [BSMM_E_IO] = "BSMM_E_IO",
    [BSMM_E_FORMAT] = "BSMM_E_FORMAT",
    [BSMM_E_NOT_FOUND] = "BSMM_E_NOT_FOUND",
    [BSMM_E_RANGE] = "BSMM_E_RANGE",
    [BSMM_E_DEVICE] = "BSMM_E_DEVICE",
};

const char *bsmm_status_name(bsmm_status status) {
    return (size_t)status < BSMM_COUNT(status_names) ? status_names[status] : "unknown";
}

uint32_t bsmm_version(void) {
    return BSMM_VERSION;
}
