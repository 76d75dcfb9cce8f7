#include "clarder_errors.h"
#include "larder.h"

#include <string.h>

// Of a fixed length, so that nothing has to be freed when a thread ends.
static _Thread_local char message[2048];
static _Thread_local int number;

void clarder_note_error(const char *text, size_t length, int error_number) {
    size_t count = length < sizeof message ? length : sizeof message - 1;
    // Not in the middle of a UTF-8 character: bytes 10xxxxxx continue one.
    if (count < length)
        while (count > 0 && ((unsigned char)text[count] & 0xC0) == 0x80) count--;
    memcpy(message, text, count);
    message[count] = 0;
    number = error_number;
}

const char *larder_error_message(void) { return message; }

int larder_error_number(void) { return number; }

const char *larder_version(void) { return LARDER_VERSION; }

const char *larder_status_name(larder_status status) {
    switch (status) {
    case LARDER_OK: return "OK";
    case LARDER_ABSENT: return "ABSENT";
    case LARDER_PRESENT: return "PRESENT";
    case LARDER_CHANGED: return "CHANGED";
    case LARDER_SHORT: return "SHORT";
    case LARDER_STOPPED: return "STOPPED";
    case LARDER_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case LARDER_CLOSED: return "CLOSED";
    case LARDER_LOCKED: return "LOCKED";
    case LARDER_IO: return "IO";
    case LARDER_NO_SPACE: return "NO_SPACE";
    case LARDER_MAP_FULL: return "MAP_FULL";
    case LARDER_READERS_FULL: return "READERS_FULL";
    case LARDER_CORRUPTION: return "CORRUPTION";
    case LARDER_FORMAT_MISMATCH: return "FORMAT_MISMATCH";
    case LARDER_DIGEST_MISMATCH: return "DIGEST_MISMATCH";
    case LARDER_LENGTH_MISMATCH: return "LENGTH_MISMATCH";
    case LARDER_TOO_LARGE: return "TOO_LARGE";
    case LARDER_READ_ONLY: return "READ_ONLY";
    case LARDER_UNSUPPORTED: return "UNSUPPORTED";
    case LARDER_MUST_REOPEN: return "MUST_REOPEN";
    case LARDER_INCOMPLETE: return "INCOMPLETE";
    case LARDER_GONE: return "GONE";
    case LARDER_WRONG_KEY: return "WRONG_KEY";
    case LARDER_FAILED: return "FAILED";
    }
    return "UNKNOWN";
}
