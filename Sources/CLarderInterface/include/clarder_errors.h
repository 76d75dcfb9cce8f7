// The latest error of each thread. For the Swift part of the library only: this header is not installed.
#ifndef CLARDER_ERRORS_H
#define CLARDER_ERRORS_H

#include <stddef.h>

/// Keeps the text of an error, cut at 2,047 bytes between characters, and an errno, for the calling thread.
void clarder_note_error(const char *text, size_t length, int number);

#endif
