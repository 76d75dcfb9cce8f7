import Foundation
import HTTPTestSupport
import Synchronization

/// A client that asks for what it may ask for, about a hundred times a second, three hits for each miss.
final class GoodClient: Sendable {
    struct Outcome: Sendable {
        var microseconds: [Double] = []
        var errors: [String] = []

        /// The time within which 99 of 100 answers came.
        var p99: Double {
            let sorted = microseconds.sorted()
            return sorted.isEmpty ? .infinity : sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
        }
    }

    private let port: Int
    private let outcome = Mutex(Outcome())

    init(port: Int) { self.port = port }

    /// Asks for this long, and on until it has had `answers`, or an error: on a busy machine the attackers are slow,
    /// too, so its rate says nothing there. A client that is starved gets no answer in two minutes.
    func run(for seconds: Int, answers: Int = 0) async -> Outcome {
        let end = ContinuousClock.now + .seconds(seconds)
        var number = Int.random(in: 0..<1_000_000_000)
        while ContinuousClock.now < end
            || outcome.withLock({ $0.errors.isEmpty && $0.microseconds.count < answers })
        {
            number += 1
            let target = number % 4 == 0 ? "/new/\(number)" : "/small"
            let start = ContinuousClock.now
            do {
                let response = try await within(.seconds(120)) { [port] in
                    try await exchange(port, "GET \(target) HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
                }
                let time = (ContinuousClock.now - start) / .microseconds(1)
                outcome.withLock { outcome in
                    outcome.microseconds.append(time)
                    if response.status != 200 { outcome.errors.append("\(target): \(response.status)") }
                }
            } catch {
                outcome.withLock { $0.errors.append("\(target): \(error)") }
            }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return outcome.withLock { $0 }
    }
}

/// No answer in time.
struct TooLate: Error {}

/// What `body` returns, or ``TooLate``.
func within<R: Sendable>(_ limit: Duration, _ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await withThrowingTaskGroup(of: R.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw TooLate()
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { throw TooLate() }
        return first
    }
}
