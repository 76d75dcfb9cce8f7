import SystemPackage

/// Standard output and standard error.
package enum Output {
    /// True if a person is looking at standard output.
    package static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes text to standard output at once.
    package static func write(_ text: some StringProtocol) throws {
        var text = String(text)
        try text.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
    }

    /// Writes bytes to standard output at once. Throws `brokenPipe` if the reader went away.
    package static func write(_ bytes: UnsafeRawBufferPointer) throws {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch let error as Errno {
            throw CommandError(ExitStatus(error), "writing to standard output failed", cause: error)
        }
    }

    /// Writes text to standard error; there is nowhere to report a failure to.
    package static func complain(_ text: String) {
        var text = text
        text.withUTF8 { _ = try? FileDescriptor.standardError.writeAll(UnsafeRawBufferPointer($0)) }
    }

    /// A note for the person who runs the command, on standard error.
    package static func note(_ text: String) { complain("cachectl: \(text)\n") }
}
