import CGatewayEffort
import Foundation
import Synchronization
import TestOrigin

/// Sends the requests, answers those that the gateway forwards, and prints what they cost the gateway.
final class Measurement: Sendable {
    struct Failure: Error { let description: String }

    private let options: Options
    private let process: Int
    private let countsCalls: Bool
    private let orders: FileHandle
    private let answers: FileHandle
    private let forwarded = Atomic<Int>(0)

    init(_ options: Options, process: Int, countsCalls: Bool, orders: FileHandle, answers: FileHandle) {
        self.options = options
        self.process = process
        self.countsCalls = countsCalls
        self.orders = orders
        self.answers = answers
    }

    func run() async throws {
        let origin = try await TestOrigin.start { [self] request in
            forwarded.add(1, ordering: .relaxed)
            return RequestPath.answer(request.target)
        }
        try orders.write(contentsOf: Data("\(origin.url)\n".utf8))
        guard let ports = GatewayPorts(answers.line()) else { throw Failure(description: "the gateway did not start") }
        #if DEBUG
            let build = "debug"
        #else
            let build = "release"
        #endif
        let slices = "\(Options.slices) slices of \(options.sliceRequests) requests for each path"
        say("# a \(build) build; \(slices), after \(options.requests)")
        for path in options.paths { try await measure(path, ports) }
        try orders.close()
        _ = answers.line()
        await origin.stop()
    }

    private func measure(_ path: RequestPath, _ ports: GatewayPorts) async throws {
        let client = try await Client.connect(path.connection, ports)
        if path.isHit { try await client.fill(path) }
        for number in 0..<options.requests { try await client.exchange(path, number) }
        let forwardedBefore = forwarded.load(ordering: .relaxed)
        var moments = [Work(process)]
        for slice in 1...Options.slices {
            for number in 0..<options.sliceRequests {
                try await client.exchange(path, slice * options.requests + number)
            }
            moments.append(Work(process))
        }
        let count = forwarded.load(ordering: .relaxed) - forwardedBefore
        try await client.close()
        guard count == (path.isHit ? 0 : Options.slices * options.sliceRequests) else {
            throw Failure(description: "\(path.name): the origin got \(count) requests")
        }
        report(path, moments)
    }

    private func report(_ path: RequestPath, _ moments: [Work]) {
        func row(_ metric: String, _ count: (Work) -> UInt64) {
            let slices = zip(moments, moments.dropFirst()).map { count($1) - count($0) }.sorted()
            let median = Double(slices[slices.count / 2]) / Double(options.sliceRequests)
            say("\(path.name) \(metric) \(String(format: "%.3f", median))")
        }
        row("allocations") { $0.work.allocations }
        row("jobs") { $0.work.jobs }
        row("tasks") { $0.work.tasks }
        guard countsCalls, let first = moments.first, let last = moments.last else { return }
        // Those of wakeups, whose number depends on the threads, left out.
        row("written") { $0.written + $0.work.sent - 8 * $0.work.wakeups }
        row("calls") { $0.work.calls }
        row("wakeups") { $0.work.wakeups }
        let calls = last.calls.indices.compactMap { number -> String? in
            let count = last.calls[number] - first.calls[number]
            guard count > 0 else { return nil }
            let name = effort_call_name(Int32(number)).map { String(cString: $0) } ?? "call \(number)"
            return String(format: "\(name) %.3f", Double(count) / Double(Options.slices * options.sliceRequests))
        }
        say("# \(path.name): \(calls.joined(separator: ", "))")
    }
}

/// What the gateway had done at one moment.
private struct Work {
    let work = effort_work()
    let calls = (0..<EFFORT_NUMBERS).map { effort_calls($0) }
    /// proc_pid_io(5), `wchar`.
    let written: UInt64

    init(_ process: Int) {
        let text = (try? String(contentsOfFile: "/proc/\(process)/io", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("wchar: ") }
        written = line.flatMap { UInt64($0.dropFirst(7)) } ?? 0
    }
}
