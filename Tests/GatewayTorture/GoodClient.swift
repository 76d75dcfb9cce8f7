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

    func run(for seconds: Int) async -> Outcome {
        let end = ContinuousClock.now + .seconds(seconds)
        var number = Int.random(in: 0..<1_000_000_000)
        while ContinuousClock.now < end {
            number += 1
            let target = number % 4 == 0 ? "/new/\(number)" : "/small"
            let start = ContinuousClock.now
            do {
                let response = try await within(.seconds(10)) { [port] in
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
