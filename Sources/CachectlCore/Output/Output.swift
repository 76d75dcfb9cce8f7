import SystemPackage

/// Standard output and standard error.
package enum Output {
    /// True if standard output is a terminal.
    package static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes text to standard output, unbuffered.
    package static func write(_ text: some StringProtocol) throws {
        var text = String(text)
        try text.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
    }

    /// Writes bytes to standard output, unbuffered.
    /// - Throws: `brokenPipe` if the reader closed it.
    package static func write(_ bytes: UnsafeRawBufferPointer) throws {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch let error as Errno {
            throw CommandError(ExitStatus(error), "writing to standard output failed", cause: error)
        }
    }

    /// Writes text to standard error. A failure is ignored: there is nowhere to report it.
    package static func complain(_ text: String) {
        var text = text
        text.withUTF8 { _ = try? FileDescriptor.standardError.writeAll(UnsafeRawBufferPointer($0)) }
    }

    /// Writes a note for the user to standard error.
    package static func note(_ text: String) { complain("cachectl: \(text)\n") }
}
