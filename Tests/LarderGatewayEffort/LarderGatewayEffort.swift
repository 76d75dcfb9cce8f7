// Measures what requests cost a gateway, in counts that do not depend on the machine, for the tests' limits.
//
//     LarderGatewayEffort DIRECTORY [--requests N] [PATH...]
//
// Two processes: one is a gateway with one event loop over a store in DIRECTORY, and nothing else; the other is the
// client, the origin behind the gateway, and the one that counts. For each path (`RequestPath.all`, or those named) N
// requests warm up and N are counted (500), one after the other on one connection.
//
// Prints one row `<path> <metric> <count for a request>` a line. The count is that of the median of 50 slices of the
// requests: about once a second the store writes down which entries were used, and some slices would have a part of
// that.
//
//
// allocations    of the whole gateway process
// jobs           given to the global executor of Swift's concurrency: a hop to a thread of its pool
// tasks          made
// calls          system calls, without those that depend on what other threads do at that moment (`effort_work`)
// wakeups        writes to an eventfd: a hop to an event loop
// written        bytes given to write calls, to sockets and files
//
// A line that begins with `#` is for the reader: counts that differ between runs, such as waits and locks among all
// system calls by name. `skipped:` and a reason: nothing was counted, or no system calls. Ends with `done`.

import CGatewayEffort
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

@main
enum LarderGatewayEffort {
    static func main() throws {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            say("usage: LarderGatewayEffort DIRECTORY [--requests N] [PATH...]")
            exit(64)
        }
        guard effort_can_count() else {
            say("skipped: allocations are counted with glibc and without sanitizers only")
            return say("done")
        }
        // The gateway's process reads the origin's port from the first and writes its own to the second.
        let (orders, answers) = (Pipe(), Pipe())
        let process = effort_fork()
        guard process >= 0 else { throw POSIXError(.EAGAIN) }
        guard process > 0 else {
            try orders.fileHandleForWriting.close()
            CountedGateway.run(
                in: options.directory, orders: orders.fileHandleForReading, answers: answers.fileHandleForWriting)
        }
        try answers.fileHandleForWriting.close()
        let canTrace = effort_trace(process)
        if !canTrace { say("skipped: system calls, because ptrace(2) is not allowed here") }
        let measurement = Measurement(
            options, process: Int(process), countsCalls: canTrace, orders: orders.fileHandleForWriting,
            answers: answers.fileHandleForReading)
        wait { try await measurement.run() }
        say("done")
    }

    /// Waits for `body` on a thread that is not one of Swift's executor; ends the process if it throws.
    static func wait(_ body: @escaping @Sendable () async throws -> Void) {
        let end = DispatchSemaphore(value: 0)
        Task {
            do {
                try await body()
            } catch {
                say("LarderGatewayEffort: \(error)")
                effort_exit(1)
            }
            end.signal()
        }
        end.wait()
    }
}

/// Prints a line at once: whatever a process has not printed when it is split in two is printed twice.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

struct Options {
    var directory = ""
    /// Short ones: less than half of them may have a commit in them, which comes once a second.
    static let slices = 50

    var requests = 500
    var sliceRequests: Int { max(1, requests / Self.slices) }
    var paths: [RequestPath] = []

    init?(_ arguments: ArraySlice<String>) {
        var arguments = arguments
        guard let directory = arguments.popFirst() else { return nil }
        self.directory = directory
        while let argument = arguments.popFirst() {
            if argument == "--requests" {
                guard let number = arguments.popFirst().flatMap({ Int($0) }), number > 0 else { return nil }
                requests = number
            } else {
                guard let path = RequestPath.all.first(where: { $0.name == argument }) else { return nil }
                paths.append(path)
            }
        }
        if paths.isEmpty { paths = RequestPath.all }
    }
}

extension FileHandle {
    /// The next line, without its end; nil at the end of the file.
    func line() -> String? {
        var bytes: [UInt8] = []
        while let byte = try? read(upToCount: 1)?.first {
            if byte == 10 { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        return nil
    }
}
